"""What an instance waits for, in words, and what a person at the command line can do about it."""

import shlex
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from holdfast.activities.events import EVENT, TASK
from holdfast.bookmark import Bookmark
from holdfast.cli.output import show_span, show_value
from holdfast.engine.burst import BACKGROUND, RETRY
from holdfast.message import HandOver


def describe_wait(bookmark: Bookmark, now: datetime, tasks: Iterable[HandOver] = ()) -> str:
    """`the event "paid"`, `14:30:00 (in 25 s)`, `the task "pack"`."""
    payload = _members(bookmark.payload)
    if bookmark.due is not None:
        again = "another attempt at " if bookmark.name == RETRY else ""
        return again + _describe_instant(bookmark.due, now)
    if bookmark.name == EVENT:
        return f"the {describe_event(payload)}"
    if bookmark.name == TASK:
        name = next((t.name for t in tasks if t.task_id == payload.get("taskId")), None)
        return "its task" if name is None else f"the task {show_value(name)}"
    if bookmark.name == BACKGROUND:
        return "its work in the background"
    if "childInstanceId" in payload:
        return "the workflow it started"
    if "parentInstanceId" in payload:
        return "the workflows it started"
    shown = bookmark.name.rpartition(".")[2]
    return f"{shown} {show_value(bookmark.payload)}" if bookmark.payload is not None else shown


def describe_event(payload: Any) -> str:
    """`event "paid"`, from what its bookmarks and stimuli carry."""
    return f"event {show_value(_members(payload).get('eventName'))}"


def way_on(bookmark: Bookmark) -> str | None:
    """The option that gets an instance past this wait; None when there is none on the command line."""
    if bookmark.due is not None:
        return "--wait"
    if bookmark.name == EVENT:
        return f"--event {shlex.quote(str(_members(bookmark.payload).get('eventName')))}"
    return None


def _members(payload: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", payload) if isinstance(payload, Mapping) else {}


def _describe_instant(due: datetime, now: datetime) -> str:
    local = due.astimezone()
    today = local.date() == now.astimezone().date()
    shown = local.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")
    return f"{shown} (in {show_span(due - now)})" if due > now else f"{shown} (now)"
