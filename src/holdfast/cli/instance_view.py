"""Instances as the command line shows them: a line in a list, or everything about one."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from rich.text import Text

from holdfast.cli.files import import_activities
from holdfast.cli.output import clean, count, print_rows, print_table, show_span, show_value
from holdfast.cli.report import encodable, waits_and_faults
from holdfast.cli.waits import describe_wait
from holdfast.cli.wording import label_in, label_of
from holdfast.codec import decode_payload, read_payload
from holdfast.definitions.graph import Graph
from holdfast.engine import decode_state
from holdfast.errors import HoldfastError
from holdfast.instance import Record, State, SubStatus
from holdfast.machines.state import KeptRun, decode_run
from holdfast.runtime.coded import VERSION
from holdfast.runtime.results import InstanceNotFound
from holdfast.store import Loaded, Page, Store, Summary

if TYPE_CHECKING:
    from rich.console import Console

COLORS = {
    SubStatus.FINISHED: "green",
    SubStatus.FAULTED: "red",
    SubStatus.CANCELLED: "magenta",
    SubStatus.INTERRUPTED: "red",
}


class Examined(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All that is known of one instance."""

    loaded: Loaded
    state: State | KeptRun | None
    """None while it has not begun, or when it is none of ours to read."""
    graph: Graph | None
    """None when its version is gone or cannot be compiled here."""
    records: Sequence[Record]
    total: int
    """How many records its journal has."""


async def examine(store: Store, key: tuple[str, str], modules: Sequence[str], tail: int) -> Examined:
    """Raises InstanceNotFound."""
    found = await store.load([key])
    if not found:
        raise InstanceNotFound(key[1])
    [loaded] = found
    records, total = await _last_records(store, key, tail)
    return Examined(
        loaded=loaded,
        state=state_of(loaded),
        graph=await _graph(store, loaded, modules),
        records=records,
        total=total,
    )


def state_of(loaded: Loaded) -> State | KeptRun | None:
    try:
        if loaded.state is not None and loaded.columns.version_id.startswith(VERSION):
            return decode_run(loaded.state)
        return None if loaded.state is None else decode_state(loaded.state)
    except (HoldfastError, msgspec.MsgspecError):
        return None


async def _graph(store: Store, loaded: Loaded, modules: Sequence[str]) -> Graph | None:
    from holdfast.activities.composites import workflow_activity_types
    from holdfast.assembly import load_plugins
    from holdfast.runtime.drawn import Drawn
    from holdfast.runtime.library import Library

    library = Library(store, load_plugins(import_activities(modules)), workflow_activity_types)
    try:
        program = await library.find(loaded.tenant, loaded.columns.version_id)
    except HoldfastError:
        return None
    return program.graph if isinstance(program, Drawn) else None


async def _last_records(store: Store, key: tuple[str, str], tail: int) -> tuple[list[Record], int]:
    summaries = await store.journal_summaries(*key)
    total = sum(records for _, records, _ in summaries)
    wanted, first = tail, None
    for sequence, records, _ in reversed(summaries):
        if wanted <= 0:
            break
        first, wanted = sequence, wanted - records
    if first is None:
        return [], total
    segments = await store.journal_of(*key, after=first - 1, limit=len(summaries))
    rows: list[Any] = [row for segment in segments for row in decode_payload(segment.body)]
    return [msgspec.convert(row, Record) for row in rows[-tail:]], total


# --- a list -------------------------------------------------------------------------------------------


def print_list(out: "Console", page: Page[Summary], loaded: Mapping[str, Loaded], now: datetime) -> None:
    if not page.items:
        out.print(Text("No instances.", "dim"))
        return
    rows = [
        (
            one.instance_id,
            one.columns.definition_id,
            str(one.columns.version),
            one.columns.sub_status.value,
            show_span(now - one.columns.created_at),
            waiting_for(one, loaded.get(one.instance_id), now),
        )
        for one in page.items
    ]
    headings = ("ID", "DEFINITION", "VERSION", "STATUS", "AGE", "WAITING FOR")
    print_table(out, headings, rows, ("cyan", "", "dim", "bold", "dim", ""))
    total = f"more than {page.total}" if page.is_capped else str(page.total)
    shown = "" if len(page.items) == page.total else f"{len(page.items)} of {total}; --limit shows more. "
    out.print(Text(f"\n{shown or count(page.total, 'instance')}".rstrip(), "dim"))


def waiting_for(summary: Summary, loaded: Loaded | None, now: datetime) -> str:
    """In a few words, why an open instance is not moving."""
    columns = summary.columns
    if columns.finished_at is not None:
        return ""
    if columns.is_paused:
        return "to be unpaused"
    if columns.sub_status is SubStatus.INTERRUPTED:
        return "a dead letter to be replayed"
    state = None if loaded is None else state_of(loaded)
    if state is None:
        return "its first turn" if columns.sub_status is SubStatus.PENDING else ""
    said = [describe_wait(bookmark, now) for bookmark in state.bookmarks]
    if state.incidents:
        said.append(count(len(state.incidents), "incident"))
    return "; ".join(said)


def list_document(page: Page[Summary], loaded: Mapping[str, Loaded], now: datetime) -> dict[str, Any]:
    return {
        "instances": [
            {
                **_columns(one),
                "ageSeconds": round((now - one.columns.created_at).total_seconds(), 3),
                "waitingFor": waiting_for(one, loaded.get(one.instance_id), now) or None,
            }
            for one in page.items
        ],
        "total": page.total,
        "isCapped": page.is_capped,
    }


def _columns(one: Summary | Loaded) -> dict[str, Any]:
    columns = one.columns
    return {
        "id": one.instance_id,
        "tenant": one.tenant,
        "definitionId": columns.definition_id,
        "versionId": columns.version_id,
        "version": columns.version,
        "status": columns.sub_status.status.value,
        "subStatus": columns.sub_status.value,
        "correlationId": columns.correlation_id,
        "name": columns.name,
        "parentId": columns.parent_id,
        "isPaused": columns.is_paused,
        "incidentCount": columns.incident_count,
        "createdAt": columns.created_at,
        "updatedAt": columns.updated_at,
        "finishedAt": columns.finished_at,
        "shard": one.shard,
        "revision": one.revision,
    }


# --- one of them --------------------------------------------------------------------------------------


def print_instance(out: "Console", found: Examined, now: datetime) -> None:
    loaded, columns = found.loaded, found.loaded.columns
    status = columns.sub_status
    about = f"{columns.definition_id} · version {columns.version}"
    out.print(Text.assemble((clean(loaded.instance_id), "bold cyan"), (f"  {clean(about)}", "dim")))
    age = show_span((columns.finished_at or now) - columns.created_at)
    words = f"after {age}" if columns.finished_at is not None else f"for {age}"
    paused = ", paused" if columns.is_paused else ""
    out.print(
        Text.assemble((status.value + paused, f"bold {COLORS.get(status, 'yellow')}"), (f" {words}", "dim"))
    )
    rows = list(_facts(found, now))
    if rows:
        print_rows(out, rows, ("dim", ""))
    if found.records:
        shown = f"the last {len(found.records)} of {found.total}" if len(found.records) < found.total else ""
        out.print(Text.assemble(("\nJournal", "bold"), (f"  {shown}", "dim")))
        print_rows(out, [_line(found.graph, record) for record in found.records], ("dim", "", "cyan", "dim"))


def _facts(found: Examined, now: datetime) -> Iterator[tuple[str, str]]:
    columns, state = found.loaded.columns, found.state
    for name, value in (
        ("correlation", columns.correlation_id),
        ("name", columns.name),
        ("parent", columns.parent_id),
    ):
        if value:
            yield name, clean(value)
    if state is None:
        if columns.finished_at is None:
            yield "waits", "for its first turn"
        return
    for name, value in read_payload(dict(state.output)).items():
        yield "output", f"{clean(name)} = {show_value(value, 200)}"
    for bookmark in state.bookmarks if columns.finished_at is None else ():
        place = _label(found.graph, bookmark.activity_id)
        yield "waits at", clean(f"{place}, for {describe_wait(bookmark, now)}  (bookmark {bookmark.id})")
    for incident in state.incidents:
        place = _label(found.graph, incident.activity_id)
        code = f" [{incident.code}]" if incident.code else ""
        yield "incident", clean(f"{place}, execution {incident.execution}: {incident.message}{code}")


def _label(graph: Graph | None, activity_id: str) -> str:
    return clean(activity_id) if graph is None else label_in(graph, activity_id)


def _line(graph: Graph | None, record: Record) -> tuple[str, str, str, str]:
    known = graph is not None and 0 <= record.node < len(graph.nodes)
    said = (record.payload or {}).get("function")  # of a machine, whose journal names its functions
    label = said or (f"activity {record.node}" if record.node else "")
    name = label_of(graph.nodes[record.node]) if graph is not None and known else clean(label)
    at = record.at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return at, name, record.event, record.message or ""


def instance_document(found: Examined) -> dict[str, Any]:
    state = found.state
    document: dict[str, Any] = _columns(found.loaded)
    if state is not None:
        document |= {"output": encodable(read_payload(dict(state.output))), **waits_and_faults(state)}
    document["journal"] = [
        {
            "sequence": record.sequence,
            "event": record.event,
            "activityId": _id_of(found.graph, record),
            "execution": record.execution,
            "at": record.at,
            "message": record.message,
        }
        for record in found.records
    ]
    document["journalRecords"] = found.total
    return document


def _id_of(graph: Graph | None, record: Record) -> str | None:
    if graph is None or not 0 <= record.node < len(graph.nodes):
        return (record.payload or {}).get("function")
    return graph.nodes[record.node].id
