"""Everything that is wrong with a definition, found at once.

The checks walk the document itself, not a compiled graph, so that one bad place does not hide the
next: `check_envelope`, `check_activities`, `check_values`, `check_connections`. Compiling comes last
and adds only what no check has seen. That an HTTP path is taken already is the server's concern.
"""

from typing import Any

from holdfast.authoring import ActivityTypes
from holdfast.codec import JsonInvalid, decode, is_list, is_object
from holdfast.definitions.check_activities import ActivityChecks
from holdfast.definitions.check_envelope import check_envelope
from holdfast.definitions.compiler import compile_definition
from holdfast.definitions.document import Definition, load_definition
from holdfast.definitions.evaluators import Expressions
from holdfast.definitions.graph import Graph, Node
from holdfast.definitions.paths import Locator
from holdfast.definitions.problems import Problem, Problems, in_document_order
from holdfast.definitions.reader import DefinitionInvalid
from holdfast.errors import HoldfastError

__all__ = ["Problem", "validate", "validate_source"]

_MOST_REPAIRS = 100


def validate(definition: Definition, types: ActivityTypes, expressions: Expressions) -> list[Problem]:
    """All problems, errors and warnings, in the order of the document."""
    problems = Problems()
    check_envelope(definition, types, problems)
    checks = ActivityChecks(definition, types, expressions, problems)
    checks.check()
    try:
        graph = compile_definition(definition, types, expressions)
    except HoldfastError as problem:
        path, reason = "$.root", str(problem)
        if isinstance(problem, DefinitionInvalid):
            path, reason = problem.path, problem.problem
        if all(path != known.path for known in problems.found):
            problems.error(
                "definition.invalid", path, f"This cannot be compiled: {reason}. Correct it there."
            )
    else:
        _check_recursion(graph, checks.paths, problems)
    return in_document_order(problems.found, definition.source)


def validate_source(source: bytes | str, types: ActivityTypes, expressions: Expressions) -> list[Problem]:
    """The same for text that may be no definition at all, or no JSON. Raises nothing."""
    problems = Problems()
    try:
        document = decode(source)
    except JsonInvalid as problem:
        problems.error("json.invalid", "$", str(problem))
        return problems.found
    if not is_object(document):
        problems.error("definition.invalid", "$", "A definition is a JSON object. Put its members in { }.")
        return problems.found
    for _ in range(_MOST_REPAIRS):
        try:
            definition = load_definition(document)
        except DefinitionInvalid as problem:
            problems.error(
                "definition.invalid",
                problem.path,
                f"This cannot be read: {problem.problem}. Correct it, or remove it.",
            )
            if not _blank(document, problem.path):
                break
        else:
            unreadable = [known.path for known in in_document_order(problems.found, document)]
            problems.found += [
                found
                for found in validate(definition, types, expressions)
                if not any(_is_within(found.path, path) for path in unreadable)
            ]
            break
    return in_document_order(problems.found, document)


def _is_within(path: str, around: str) -> bool:
    return path.startswith(around) and path[len(around) : len(around) + 1] in ("", ".", "[")


def _blank(document: Any, path: str) -> bool:
    """Put nothing in the place of what cannot be read, so that the rest can be looked at."""
    steps = Locator(document).locate(path)
    here, key = (steps[-1].inside, steps[-1].key) if steps else (None, None)
    if is_list(here) and isinstance(key, int):
        here[key] = "" if here[key] == {} else {}
        return True
    if is_object(here) and isinstance(key, str) and here[key] is not None:
        here[key] = None
        return True
    return False


def _check_recursion(graph: Graph, paths: dict[str, str], problems: Problems) -> None:
    reported: set[str] = set()
    for node in graph.nodes:
        chain = node.fixed.get("recursive")
        user = _outermost(node) if chain else node
        if not chain or user.id in reported:
            continue
        reported.add(user.id)
        problems.error(
            "activity.recursive",
            paths.get(user.id, "$.root"),
            f"This workflow-activity contains itself ({chain}), so it faults when it is reached. "
            f"Start the workflow with Elsa.DispatchWorkflow or Elsa.ExecuteWorkflow instead.",
            user.id,
        )


def _outermost(node: Node) -> Node:
    """The workflow-activity of the document itself in which a node was unfolded."""
    found = node
    outer: Node | None = node
    while outer is not None:
        if outer.type.definition is not None:
            found = outer
        outer = outer.parent
    return found
