"""How a run ended, for people: status, outputs, where it waits and how to get on, what went wrong."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from holdfast.cli.output import clean, show_span, show_value, wrap
from holdfast.cli.session import Session
from holdfast.cli.waits import describe_event, describe_wait, way_on
from holdfast.cli.wording import label_in, title_of
from holdfast.definitions.graph import Graph
from holdfast.instance import Incident, SubStatus
from holdfast.local import HostedInstance

if TYPE_CHECKING:
    from rich.console import Console

_ENDINGS = {
    SubStatus.FINISHED: ("✓", "green", "Finished"),
    SubStatus.FAULTED: ("✗", "red", "Faulted"),
    SubStatus.CANCELLED: ("↷", "magenta", "Cancelled"),
}


def print_summary(
    session: Session, instance: HostedInstance, console: "Console", *, has_waited: bool
) -> None:
    symbol, color, word = _ENDINGS.get(instance.state.sub_status, ("⏸", "yellow", "Suspended"))
    took = show_span(session.clock.now() - session.begun_at)
    console.print()
    console.print(Text.assemble((f"{symbol} {word}", f"bold {color}"), (f" after {took}", "dim")))
    for about, said in _rows(session, instance):
        style = "red" if about == "incident" else ""
        row = Text.assemble((f"  {about:<8}  ", "dim"), (wrap(said, console.width, 12), style))
        console.print(row, soft_wrap=True)
    bookmarks = [b for i in session.host.instances.values() for b in i.bookmarks if i.status == "Running"]
    ways = dict.fromkeys(way for b in bookmarks if (way := way_on(b)) is not None)
    if has_waited:
        ways.pop("--wait", None)
    if ways:
        console.print(Text(f"  To go on, add {' or '.join(ways)}.", "dim"), soft_wrap=True)


def reason_of(instance: HostedInstance) -> tuple[str, str | None]:
    """Why an instance has faulted, in one line, and the code of that fault."""
    incident = next(iter(instance.incidents), None)
    if incident is None:
        return "The workflow has faulted.", None
    return _describe_incident(instance.graphs[-1], incident), incident.code


def _rows(session: Session, instance: HostedInstance) -> Iterator[tuple[str, str]]:
    for name, value in instance.output.items():
        yield "output", f"{clean(name)} = {show_value(value, 200)}"
    everybody = session.host.instances.values()
    for each in everybody:
        for said in _waits(session, each):
            yield "waits at", said if each is instance else f"{_title(each)}: {said}"
    for each in everybody:
        # The reason why the instance itself has faulted is said last, on stderr.
        for incident in each.incidents if each is not instance or instance.sub_status != "Faulted" else ():
            yield "incident", _describe_incident(each.graphs[-1], incident)
    for incident in instance.incidents[1:] if instance.sub_status == "Faulted" else ():
        yield "incident", _describe_incident(instance.graphs[-1], incident)
    for stimulus in session.host.unmatched:
        yield "unused", f"{describe_event(stimulus.payload)}: nobody waited for it"


def _waits(session: Session, instance: HostedInstance) -> Iterator[str]:
    state = instance.state
    if state.sub_status is not SubStatus.SUSPENDED:
        return
    graph, now = instance.graphs[-1], session.clock.now()
    for bookmark in state.bookmarks:
        said = describe_wait(bookmark, now, session.host.tasks)
        yield clean(f"{label_in(graph, bookmark.activity_id)}, for {said}")
    if not state.bookmarks and not state.incidents:
        yield "a join that nothing can reach any more"


def _title(instance: HostedInstance) -> str:
    return title_of(instance.graphs[-1].definition)


def _describe_incident(graph: Graph, incident: Incident) -> str:
    return clean(f"{label_in(graph, incident.activity_id)}: {incident.message}")
