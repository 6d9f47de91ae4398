"""What a workflow does, told while it does it: one line per activity, and what it wrote between them.

The trace stands around bursts and activities as middleware and reads the journal as it grows. An
activity gets its line when it has ended, or, with ●, as soon as something nested in it begins; so the
order on the screen is the order in which things happened. What a line says is `wording`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.text import Text

from holdfast.authoring import ActivityContext
from holdfast.cli.output import clean, show_span, wrap
from holdfast.cli.waits import describe_wait
from holdfast.cli.wording import label_of, outcomes_of, short_type, title_of, values_of
from holdfast.definitions.compiler import WORKFLOW
from holdfast.definitions.graph import Graph, Node
from holdfast.engine import Burst
from holdfast.engine.journal import shown_inputs
from holdfast.instance import Record
from holdfast.message import HandOver

if TYPE_CHECKING:
    from rich.console import Console

LONGEST_LABEL = 44
LONGEST_TYPE = 20
INDENT = "  "

_STYLES = {"●": "cyan", "✓": "green", "✗": "bold red", "⏸": "yellow", "↷": "magenta"}


class _Execution:
    """One execution as far as it has been told."""

    __slots__ = ("begun_at", "depth", "has_faulted", "is_open", "is_shown", "node", "number")

    def __init__(self, number: int, node: Node, depth: int, begun_at: datetime) -> None:
        self.number = number
        self.node = node
        self.depth = depth
        self.begun_at = begun_at
        self.is_shown = self.is_open = node.type_name == WORKFLOW
        """Whether it has a line, and whether that line is the one above what is nested in it."""
        self.has_faulted = False


class _Instance:
    """One instance as far as it has been told, and where its columns begin."""

    def __init__(self, graph: Graph, depth: int, width: int) -> None:
        self.graph = graph
        self.depth = depth
        self.executions: dict[int, _Execution] = {}
        # Known beforehand, since all activities are: so lines can be written one by one and still align.
        shown = [node for node in graph.nodes if node.type_name != WORKFLOW]
        labels = [2 * (depth + _nesting(node)) + max(8, len(label_of(node))) for node in shown]
        self.label_width = min(max(labels, default=8), LONGEST_LABEL, max(16, width // 3))
        self.type_width = min(max((len(short_type(node)) for node in shown), default=4), LONGEST_TYPE)


class _Telling:
    """A burst that is under way: how many of its records were told, and what it executes now."""

    __slots__ = ("burst", "executing", "told")

    def __init__(self, burst: Burst) -> None:
        self.burst = burst
        self.told = 0
        self.executing = 0


class Trace:
    """Prints what happens. Its two middlewares are registered with the host's plugins."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._instances: dict[str, _Instance] = {}
        self._tellings: list[_Telling] = []
        """Innermost last: a child's burst may happen inside its parent's."""
        self._written: list[str] = []
        self._speaker = ""
        self._has_noted = False

    async def around_burst(self, burst: Burst, call: Callable[[], Awaitable[None]]) -> None:
        self._introduce(burst)
        self._tellings.append(_Telling(burst))
        try:
            await call()
        finally:
            self._catch_up()
            self._tellings.pop()

    async def around_activity(self, context: ActivityContext, call: Callable[[], Awaitable[None]]) -> None:
        self._catch_up()
        telling = self._tellings[-1]
        telling.executing = telling.burst.records[-1].execution  # that it was started, or resumed
        try:
            await call()
        finally:
            self._catch_up()

    def wrote(self, text: str) -> None:
        """A line the workflow wrote. It is shown below the activity that wrote it, once that has a line."""
        self._written.append(text)
        if not self._tellings:  # in the background
            self._show_written(1)

    def note(self, text: str) -> None:
        """Something that came from outside."""
        self._print(Text.assemble("\n", ("▶ ", "bold"), (clean(text), "bold")))
        self._has_noted = True

    def note_quietly(self, text: str) -> None:
        self._print(Text(f"{INDENT}{clean(text)}", "dim"))

    # --- instances --------------------------------------------------------------------------------

    def _introduce(self, burst: Burst) -> None:
        """Say whose turn it is, where that is not obvious."""
        definition = burst.graph.definition
        line = Text.assemble(("▶ ", "bold"), (title_of(definition), "bold"))
        outer = self._tellings[-1] if self._tellings else None
        apart = "\n" if outer is None and self._speaker and not self._has_noted else ""
        if burst.instance_id not in self._instances:
            about = [definition.definition_id, f"version {definition.version}"]
            depth = 0
            if outer is not None:
                depth = self._open_executing(outer) + 1
            elif burst.parent_id in self._instances:
                about.append(f"started by {title_of(self._instances[burst.parent_id].graph.definition)}")
            self._instances[burst.instance_id] = _Instance(burst.graph, depth, self._console.width)
            line.append("  " + clean(" · ".join(about)), "dim")
            self._print(Text.assemble(apart, INDENT * depth, line))
        elif outer is None and self._speaker != burst.instance_id:
            self._print(Text.assemble(apart, line, ("  goes on", "dim")))
        self._speaker = burst.instance_id
        self._has_noted = False

    def _open_executing(self, telling: _Telling) -> int:
        """Give the activity that is executing its line, and say how deep it is nested."""
        told = self._instances[telling.burst.instance_id]
        execution = told.executions[telling.executing]
        self._open(telling.burst, told, execution)
        return execution.depth

    # --- records ----------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Tell what the innermost burst has recorded since."""
        telling = self._tellings[-1]
        records = telling.burst.records[telling.told :]
        telling.told += len(records)
        for record in records:
            self._tell(telling.burst, record)

    def _tell(self, burst: Burst, record: Record) -> None:
        told = self._instances[burst.instance_id]
        if record.event == "Started":
            self._begin(burst, told, record)
            return
        execution = told.executions.get(record.execution)
        if execution is None or (execution.node.type_name == WORKFLOW and record.event != "Faulted"):
            return
        match record.event:
            case "Resumed":
                execution.has_faulted = False  # this is another attempt
                return
            case "Completed":
                self._complete(told, execution, record)
            case "Faulted":
                execution.has_faulted = True
                self._line(told, execution, "✗", at=record.at)
                self._paragraph(execution.depth + 1, record.message or "", "red")
            case "Suspended":
                waits = [b for b in burst.bookmarks.values() if b.execution == record.execution]
                tasks = [effect for effect in burst.effects if isinstance(effect, HandOver)]
                said = "; ".join(describe_wait(b, burst.clock.now(), tasks) for b in waits)
                self._line(told, execution, "⏸", said=f"waits for {said}")
            case "Canceled":
                if not execution.has_faulted:
                    self._line(told, execution, "↷", at=record.at, said="cancelled")
            case "Precondition Failed":
                self._line(told, execution, "↷", said="not executed: its precondition is false")
            case _:
                said = f"{record.event}: {record.message}" if record.message else record.event
                self._line(told, execution, "●", said=said)
        self._show_written(execution.depth + 1)

    def _begin(self, burst: Burst, told: _Instance, record: Record) -> None:
        owner = told.executions.get(record.owner)
        depth = told.depth
        if owner is not None:
            self._open(burst, told, owner)
            depth = owner.depth + (owner.node.type_name != WORKFLOW)
        node = told.graph.nodes[record.node]
        told.executions[record.execution] = _Execution(record.execution, node, depth, record.at)

    def _open(self, burst: Burst, told: _Instance, execution: _Execution) -> None:
        """Give an activity its line because something nested in it begins."""
        if execution.is_open:
            return
        frame = burst.frames.get(execution.number)
        shown: Mapping[str, Any] = (None if frame is None else shown_inputs(burst, frame)) or {}
        if not execution.is_shown:
            self._line(told, execution, "●", values=values_of(execution.node, shown, {}, self._written))
            self._show_written(execution.depth + 1)
        execution.is_open = True

    def _complete(self, told: _Instance, execution: _Execution, record: Record) -> None:
        outcomes = outcomes_of(record)
        if execution.has_faulted:
            self._line(told, execution, "↷", at=record.at, said="goes on", outcomes=outcomes)
        elif not execution.is_open:
            inputs = {} if execution.is_shown else record.inputs or {}  # it has said them before it waited
            if outcomes:  # what was decided is said by the outcome
                inputs = {name: value for name, value in inputs.items() if not isinstance(value, bool)}
            values = values_of(execution.node, inputs, record.outputs or {}, self._written)
            self._line(told, execution, "✓", at=record.at, values=values, outcomes=outcomes)
        elif outcomes:  # that a container has ended is seen by what follows
            self._line(told, execution, "✓", at=record.at, outcomes=outcomes)

    # --- lines ------------------------------------------------------------------------------------

    def _line(
        self,
        told: _Instance,
        execution: _Execution,
        symbol: str,
        *,
        at: datetime | None = None,
        values: Text | None = None,
        outcomes: Sequence[str] = (),
        said: str = "",
    ) -> None:
        execution.is_shown = True
        name = Text(label_of(execution.node), "bold" if symbol == "✗" else "")
        name.truncate(max(8, told.label_width - 2 * execution.depth), overflow="ellipsis", pad=True)
        kind = Text(short_type(execution.node), "dim")
        kind.truncate(told.type_width, overflow="ellipsis", pad=True)
        took = "" if at is None else show_span(at - execution.begun_at)
        line = Text.assemble(
            INDENT * (execution.depth + 1),
            (f"{symbol} ", _STYLES[symbol]),
            name,
            "  ",
            kind,
            (f"{took:>9}  ", "dim"),
        )
        if said:
            line.append(f"{clean(said)} ", _STYLES[symbol])
        if values is not None:
            line.append(values)
        if outcomes:
            line.append(f"→ {clean(', '.join(outcomes))}", "cyan")
        line.rstrip()
        line.truncate(self._console.width, overflow="ellipsis")
        self._print(line)

    def _paragraph(self, depth: int, text: str, style: str) -> None:
        indent = len(INDENT) * (depth + 1)
        self._print(Text(" " * indent + wrap(text, self._console.width, indent), style))

    def _show_written(self, depth: int) -> None:
        """What the workflow wrote, set apart. Its lines are shown whole, however long."""
        written, self._written = self._written, []
        for text in written:
            for part in text.split("\n"):
                self._print(Text.assemble(INDENT * (depth + 1), ("│ ", "blue"), (clean(part), "bold")))

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True)


def _nesting(node: Node) -> int:
    """How deep an activity is nested, workflow nodes not counted."""
    depth = 0
    while node.parent is not None:
        node = node.parent
        depth += node.type_name != WORKFLOW
    return depth
