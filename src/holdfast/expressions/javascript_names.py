"""Names that the scope gives to a script: `getTotal`, `setTotal`, `getResultFromFetch`, host functions.

They differ from scope to scope, so they are resolved for each evaluation, and become declarations in
front of the script (`javascript_source.wrap`). As in Elsa arguments hide outputs, outputs hide
inputs, inputs hide variables, and a variable hides one of our own functions without parameters:
with a variable `CorrelationId` in scope, `getCorrelationId()` is that variable.
"""

import json
import re
from collections.abc import Iterable
from functools import lru_cache

from holdfast.expression import Scope
from holdfast.expressions.javascript_facts import WANTED
from holdfast.expressions.javascript_source import KEYWORDS
from holdfast.expressions.javascript_values import Raw, send

# Our own functions that need their parameter, so that nothing hides them.
_OWN = frozenset(
    ("getVariable", "setVariable", "getInput", "getOutputFrom", "getConfig", "setOutcome", "setOutcomes")
)
_HIDEABLE = frozenset((*WANTED, "setCorrelationId", "setWorkflowInstanceName"))

_OLD_RULE = re.compile(r"(?:^|_| +)(.)")
_NEW_RULE = re.compile(r"(?:[ _-]+|^)([a-zA-Z])")
_FIT = re.compile(r"[\w$]+")

Accessor = tuple[str, str, str, bool]  # the word, what it is after get or set, the same in camelCase, ours


def accessors_in(names: Iterable[str]) -> tuple[Accessor, ...]:
    """Those names in a script that may stand for a variable, an input, an output or an argument."""
    return tuple(
        (word, word[3:], word[3].lower() + word[4:], word in _HIDEABLE)
        for word in sorted(names)
        if len(word) > 3 and word[:3] in ("get", "set") and word not in _OWN
    )


def resolve(scope: Scope, accessors: tuple[Accessor, ...]) -> tuple[tuple[str, ...], list[Raw]]:
    """The declarations for those that stand for something here, and the facts behind them."""
    declarations: list[str] = []
    facts: list[Raw] = []
    arguments = scope.arguments
    for accessor in accessors:
        word, spelling, camel, is_ours = accessor
        key = value = None
        if word[0] == "g":
            if arguments and (argument := accessible(arguments).get(spelling)) is not None:
                declarations.append(_argument(word, argument))
                facts += ("arguments", send(dict(arguments)))
                continue
            if "From" in spelling and (output := scope.output_accessor(word)) is not None:
                key, value = f"output:{output[0]}\0{output[1]}", scope.get_output(*output)
            elif spelling in scope.input_names():
                key, value = f"input:{spelling}", scope.get_input(spelling)
        if key is None:
            # Nearly always one of these two; all others have an underscore in their name, or no value.
            name = spelling
            value = scope.get_variable(name)
            if value is None:
                name = camel
                value = scope.get_variable(name)
                if value is None:
                    found = None if is_ours else accessible(scope.variable_names()).get(spelling)
                    if found is None:
                        continue
                    name, value = found, scope.get_variable(found)
            key = f"variable:{name}"
        declarations.append(_declaration(word, key))
        facts.append(key)
        facts.append(send(value))
    return tuple(declarations), facts


def host_function(name: str) -> str:
    return f"{name}=$call({json.dumps(name)})"


def everything(scope: Scope) -> tuple[str, ...]:
    """Declarations for all there is, for scripts that look for names while they run."""
    variables = accessible(scope.variable_names())
    found = {f"get{spelling}": f"variable:{name}" for spelling, name in variables.items()}
    found |= {f"set{spelling}": f"variable:{name}" for spelling, name in variables.items()}
    found |= {f"get{name}": f"input:{name}" for name in scope.input_names()}
    arguments = {f"get{spelling}": name for spelling, name in accessible(scope.arguments).items()}
    return (
        *(_declaration(word, key) for word, key in found.items() if _is_name(word) and word not in _OWN),
        *(_argument(word, name) for word, name in arguments.items() if _is_name(word)),
        *(host_function(name) for name in scope.functions if _is_name(name)),
    )


def accessible(names: Iterable[str]) -> dict[str, str]:
    """By accessor without its `get`, the name it stands for; the first of equal ones counts."""
    found: dict[str, str] = {}
    for name in names:
        for spelling in _spellings(name):
            found.setdefault(spelling, name)
    return found


def _is_name(word: str) -> bool:
    return word.replace("$", "_").isidentifier() and word not in KEYWORDS


def _argument(word: str, name: str) -> str:
    return f'{word}=$get("arguments",{json.dumps(name)})'


@lru_cache(maxsize=4096)
def _declaration(word: str, key: str) -> str:
    if word[0] == "g":
        return f"{word}=$get({json.dumps(key)})"
    return f"{word}=$set({json.dumps(key.removeprefix('variable:'))})"


@lru_cache(maxsize=4096)
def _spellings(name: str) -> tuple[str, ...]:
    """The name in PascalCase, by the rules of older and of newer Elsa; none for unfit names."""
    if not _FIT.fullmatch(name):
        return ()
    new = _NEW_RULE.sub(lambda found: found[1].upper(), name)
    old = _OLD_RULE.sub(lambda found: found[1].upper(), name)
    return (new,) if new == old else (new, old)
