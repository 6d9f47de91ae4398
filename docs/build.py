"""The reference pages that are made from the code: activities, errors, commands.

`make docs` writes them; a test fails when they are behind. The same code always gives the same text:
nothing here depends on the order of imports, the terminal or the time.
"""

import ast
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import click

import holdfast
from docs import pictures
from holdfast.activities import BUILT_IN
from holdfast.authoring import (
    Activity,
    ActivityDescriptor,
    ActivityType,
    Child,
    InputDescriptor,
    activity_type,
)
from holdfast.cli import cli
from holdfast.codec import format_timespan
from holdfast.definitions.problems import BLOCKING
from holdfast.errors import HoldfastError

REFERENCE = Path(__file__).parent / "reference"
SOURCE = Path(inspect.getfile(holdfast)).parent
ROOT = HoldfastError.__module__

_NOTE = "<!-- Made by `make docs` from the code. Do not edit: what you change here is lost. -->"


def pages() -> dict[Path, str]:
    """Every generated page and its text."""
    return {
        REFERENCE / "activities.md": activities_page(),
        REFERENCE / "errors.md": errors_page(),
        REFERENCE / "commands.md": commands_page(),
    }


def main() -> None:
    for path, text in pages().items():
        path.write_text(text, "utf-8")
    pictures.write()


# --- activities ---------------------------------------------------------------------------------------


def activities_page() -> str:
    types = sorted(map(activity_type, BUILT_IN), key=lambda kind: (kind.descriptor.category, kind.name))
    shown = [kind for kind in types if kind.descriptor.is_browsable]
    hidden = [kind for kind in types if not kind.descriptor.is_browsable]
    categories = list(dict.fromkeys(kind.descriptor.category for kind in shown))
    lines = [
        "# Activities",
        _NOTE,
        "Every activity type that comes with Holdfast. `holdfast activities NAME` shows the same on the "
        "command line, together with yours if you name them with `--activities`.",
        "In a definition an input is an expression, unless it is marked *plain*: then it is ordinary JSON. "
        "An input without a default must be given. Any activity of a flowchart has the outcome `Error` as "
        "well, for its faults ([handle errors](../how-to/handle-errors.md)). What else an activity can have, "
        "and how inputs and outputs are written, is in [definitions](definitions.md).",
        _table(("Category", "Types"), [(c, ", ".join(_links(shown, c))) for c in categories]),
    ]
    for category in categories:
        lines.append(f"## {category}")
        for kind in shown:
            if kind.descriptor.category == category:
                lines += _activity(kind)
    lines += [
        "## Behind the scenes",
        "Types that nobody places by hand: the node around a workflow's root, and stand-ins for what a "
        "definition names and this host cannot run.",
    ]
    for kind in hidden:
        lines += _activity(kind)
    return _page(lines)


def _links(types: Iterable[ActivityType], category: str) -> Iterator[str]:
    for kind in types:
        if kind.descriptor.category == category:
            short = kind.name.rpartition(".")[2]
            yield f"[{short}](#{kind.name.lower().replace('.', '')})"


def _activity(kind: ActivityType) -> Iterator[str]:
    descriptor = kind.descriptor
    yield f"### {kind.name}"
    yield descriptor.description
    yield from _rest_of_docstring(kind)
    facts = [_KINDS[descriptor.kind]] if descriptor.kind in _KINDS else []
    if descriptor.is_terminal:
        facts.append("It is terminal: completing it ends the container it stands in.")
    if kind.implementation.declares_variables:
        facts.append("It may declare `variables`.")
    if facts:
        yield " ".join(facts)
    if descriptor.inputs:
        rows = [
            (f"`{i.json_name}`", _type_name(i), _default(i), _input_meaning(kind, i))
            for i in descriptor.inputs
        ]
        yield _table(("Input", "Type", "Default", "What it is"), rows)
    if descriptor.outputs:
        rows = [
            (f"`{output.json_name}`", f"`{output.type.name}`", _escaped(output.description))
            for output in descriptor.outputs
        ]
        yield _table(("Output", "Type", "What it is"), rows)
    if descriptor.ports:
        rows = [
            (f"`{port.json_name}`", "a list of activities" if port.many else "one activity, or null")
            for port in descriptor.ports
        ]
        yield _table(("Port", "Holds"), rows)
    if kind.implementation.prepare.__func__ is not Activity.prepare.__func__:
        shapes = "definitions.md#members-with-a-shape-of-their-own"
        yield f"It has members with a shape of their own: [definitions]({shapes})."
    yield f"Outcomes: {_outcomes(descriptor)}."


_KINDS = {
    "Trigger": "A trigger: with `canStartWorkflow` it starts instances, elsewhere it waits.",
    "Task": "With `runAsynchronously` it executes in the background, outside its burst.",
    "Job": "It always executes in the background, outside its burst.",
}


def _rest_of_docstring(kind: ActivityType) -> Iterator[str]:
    paragraphs = inspect.cleandoc(kind.implementation.__doc__ or "").split("\n\n")
    for paragraph in paragraphs[1:]:
        yield " ".join(paragraph.split())


def _type_name(descriptor: InputDescriptor) -> str:
    plain = "" if descriptor.wrapped else ", plain"
    on_demand = ", evaluated each time it is needed" if descriptor.on_demand else ""
    return f"`{descriptor.type.name}`{plain}{on_demand}"


def _input_meaning(kind: ActivityType, descriptor: InputDescriptor) -> str:
    hints = get_type_hints(kind.implementation, localns=_FORWARD, include_extras=True)
    choices = ", ".join(f"`{choice}`" for choice in _choices(hints.get(descriptor.attribute)))
    return " ".join(filter(None, [_escaped(descriptor.description), choices and f"One of {choices}."]))


_FORWARD = {"Child": Child, "Sequence": Sequence}


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The values of a Literal, wherever in an annotation it stands."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return next((found for part in get_args(annotation) if (found := _choices(part))), ())


def _default(descriptor: InputDescriptor) -> str:
    value = descriptor.default
    if descriptor.required:
        return ""
    if isinstance(value, timedelta):
        return f"`{format_timespan(value)}`"
    if isinstance(value, Decimal):
        return f"`{value}`"
    return f"`{json.dumps(value)}`"


def _outcomes(descriptor: ActivityDescriptor) -> str:
    if descriptor.dynamic_outcomes is None:
        return ", ".join(f"`{name}`" for name in descriptor.outcomes)
    always = descriptor.dynamic_outcomes({})
    return f"those the activity names in its definition; without any, {', '.join(f'`{n}`' for n in always)}"


# --- errors -------------------------------------------------------------------------------------------


class ProblemCode(NamedTuple):
    """What validation can say under one code."""

    code: str
    severities: tuple[str, ...]
    messages: tuple[str, ...]


def errors_page() -> str:
    errors = error_classes()
    branches = [kind for kind in errors if kind.__bases__ == (HoldfastError,) and kind.__module__ == ROOT]
    rows = [
        (f"`{kind.code}`", f"`{kind.__name__}`", _branch(kind, branches), _meaning(kind))
        for kind in errors
        if kind not in (HoldfastError, *branches)
    ]
    problems = [
        (
            f"`{problem.code}`",
            ", ".join(problem.severities),
            "yes" if problem.code in BLOCKING else "",
            "<br>".join(problem.messages),
        )
        for problem in problem_codes()
    ]
    return _page(
        [
            "# Errors",
            _NOTE,
            "Every code is stable; the wording around it may get better any day.",
            "## Branches",
            "All errors that Holdfast raises on purpose are a `HoldfastError`. The branch says who must act.",
            _table(
                ("Branch", "Code", "Meaning"),
                [
                    (f"`{kind.__name__}`", f"`{kind.code}`", _meaning(kind))
                    for kind in (HoldfastError, *branches)
                ],
            ),
            "## Codes",
            _table(("Code", "Error", "Branch", "Meaning"), sorted(rows)),
            "## Codes of faults",
            "A fault has the code it was raised with (`Fault(..., fault_code=...)`), else the code of the "
            "error it is, else the name of the Python exception. Activities that come with Holdfast raise "
            "these besides, and `Elsa.Fault` whatever it is given. `…` stands for what is at the place.",
            _table(("Code", "What it says"), [(f"`{code}`", said) for code, said in fault_codes()]),
            "## What validation finds",
            "`holdfast validate` reports problems with these codes. An error keeps `holdfast run` from "
            "starting the workflow; some also keep a version from being published.",
            _table(("Code", "Severity", "Blocks publishing", "What it says"), problems),
        ]
    )


def error_classes() -> list[type[HoldfastError]]:
    """Every error of the package, one per code, by code."""
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: dict[str, type[HoldfastError]] = {}
    waiting: list[type[HoldfastError]] = [HoldfastError]
    while waiting:
        kind = waiting.pop(0)
        waiting += sorted(kind.__subclasses__(), key=lambda k: (k.__module__, k.__name__))
        if kind.__module__.startswith("holdfast.") and "code" in vars(kind):
            found.setdefault(kind.code, kind)
    return sorted(found.values(), key=lambda kind: kind.code)


def _branch(kind: type[HoldfastError], branches: Sequence[type[HoldfastError]]) -> str:
    return next((f"`{branch.__name__}`" for branch in branches if issubclass(kind, branch)), "")


def _meaning(kind: type[HoldfastError]) -> str:
    """Its docstring; where it has none of its own, what it says to whoever meets it."""
    own = vars(kind).get("__doc__")
    if own:
        return " ".join(inspect.cleandoc(own).partition("\n\n")[0].split())
    said: dict[str, None] = {}
    for call in _calls(Path(inspect.getfile(kind))):
        if call.args and _called(call) in (kind.__name__, "__init__"):
            words = _said(call.args[0])
            if _called(call) == kind.__name__ or _is_within(call, kind):
                said[words] = None
    return "<br>".join(words for words in said if words.strip("… "))


def _is_within(call: ast.Call, kind: type[Any]) -> bool:
    lines, first = inspect.getsourcelines(kind)
    return first <= call.lineno < first + len(lines)


def fault_codes() -> list[tuple[str, str]]:
    """Codes that our own activities give to faults, each with what the fault says."""
    found: dict[str, str] = {}
    for path in sorted((SOURCE / "activities").glob("*.py")):
        for call in _calls(path):
            for keyword in call.keywords:
                if keyword.arg == "fault_code" and isinstance(keyword.value, ast.Constant):
                    found.setdefault(str(keyword.value.value), _said(call.args[0]))
    return sorted(found.items())


def problem_codes() -> list[ProblemCode]:
    """What the checks can report, read from the calls by which they do."""
    found: dict[str, tuple[set[str], dict[str, None]]] = {}
    for path in sorted((SOURCE / "definitions").glob("*.py")):
        for call in _calls(path):
            severities = _SEVERITIES.get(_called(call))
            if severities is None or len(call.args) < 3:
                continue
            code = call.args[0]
            if not isinstance(code, ast.Constant) or not isinstance(code.value, str):
                continue
            known, messages = found.setdefault(code.value, (set(), {}))
            known.update(severities)
            said = _said(call.args[2])
            if said.strip("…. "):
                messages[said] = None
    return [
        ProblemCode(code, tuple(sorted(severities)), tuple(messages))
        for code, (severities, messages) in sorted(found.items())
    ]


_SEVERITIES = {"error": ("error",), "warn": ("warning",), "report": ("error", "warning")}


def _calls(path: Path) -> Iterator[ast.Call]:
    """Every call in a file, in the order of its lines."""
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    yield from sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _said(message: ast.expr) -> str:
    """The words of a message, with `…` for what is put into it."""
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    words = "".join(
        str(part.value) if isinstance(part, ast.Constant) and isinstance(part.value, str) else "…"
        for part in parts
    )
    return _escaped(re.sub(r"…(?=[A-Z])", "… ", re.sub("…+", "…", " ".join(words.split()))))


# --- commands -----------------------------------------------------------------------------------------


def commands_page() -> str:
    lines = ["# Commands", _NOTE, _help_of(cli), *_options(cli)]
    commands = [
        (f"[`{name}`](#holdfast-{name.replace(' ', '-')})", _help_of(c).partition("\n")[0])
        for name, c in _commands(cli)
    ]
    lines.append(_table(("Command", "What it does"), commands))
    for name, command in _commands(cli):
        lines += _command(name, command)
    lines += [
        "## How a command ends",
        _table(
            ("Exit code", "Meaning"),
            [
                ("0", "It did what it was asked. An instance that waits counts as such."),
                ("1", "It did not: the instance faulted, or there are errors in what was validated."),
                ("2", "It was used wrongly: an option, a file or a definition that cannot be used."),
                ("130", "You stopped it with Ctrl-C."),
            ],
        ),
        "Every error is one line on the standard error output, with its [code](errors.md) at the end. "
        "Colours are left out where the output is no terminal, with `--no-color`, or when the environment "
        "variable `NO_COLOR` is set.",
    ]
    return _page(lines)


def _command(name: str, command: click.Command) -> Iterator[str]:
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    inside = ["[COMMAND]"] if isinstance(command, click.Group) else []
    usage = " ".join(["holdfast", name, "[OPTIONS]", *map(_argument, arguments), *inside])
    heading = "###" if " " in name else "##"
    yield from (f"{heading} holdfast {name}", f"```text\n{usage}\n```", _help_of(command), *_options(command))


def _commands(group: click.Command, above: str = "") -> list[tuple[str, click.Command]]:
    """All of them by name, those of a group behind it."""
    commands: Mapping[str, click.Command] = group.commands if isinstance(group, click.Group) else {}
    found: list[tuple[str, click.Command]] = []
    for name, command in sorted(commands.items()):
        if not command.hidden:
            found += [(above + name, command), *_commands(command, f"{above}{name} ")]
    return found


def _help_of(command: click.Command) -> str:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(_paragraph(paragraph) for paragraph in paragraphs)


def _paragraph(text: str) -> str:
    if "\b" in text:  # click's mark for lines that stay as they are
        return "```text\n" + text.replace("\b", "").strip("\n") + "\n```"
    return " ".join(text.split()).replace("```", r"\`\`\`")


def _argument(argument: click.Argument) -> str:
    name = str(argument.name).upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _options(command: click.Command) -> Iterator[str]:
    rows: list[tuple[str, str]] = []
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            value = "" if option.is_flag else f" {option.metavar or str(option.name).upper()}"
            several = " May be given several times." if option.multiple else ""
            rows.append(
                (f"`{', '.join(sorted(option.opts, key=len))}{value}`", f"{option.help or ''}{several}")
            )
    if rows:
        yield _table(("Option", "What it does"), sorted(rows, key=lambda row: row[0].strip("`-")))


# --- Markdown -----------------------------------------------------------------------------------------


def _page(lines: Iterable[str]) -> str:
    return "\n\n".join(line.rstrip() for line in lines if line) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in lines
    )


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("\n", " ")


if __name__ == "__main__":
    main()
