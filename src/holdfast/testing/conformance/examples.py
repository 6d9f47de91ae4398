"""Instances, messages and commits to test stores with, as short as they can be said."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from holdfast.bookmark import Trigger
from holdfast.commit import (
    Birth,
    Change,
    Columns,
    Commit,
    Delivery,
    Envelope,
    KeptStimulus,
    Lane,
    Place,
)
from holdfast.errors import HoldfastError
from holdfast.instance import SubStatus
from holdfast.store import (
    Admission,
    Cursor,
    Publication,
    Schedule,
    Store,
    StoredVersion,
    VersionHeader,
)

TTL = timedelta(seconds=0.5)
THEN = datetime(2026, 1, 1, tzinfo=UTC)
FAR = datetime(2999, 1, 1, tzinfo=UTC)

PassTime = Callable[[timedelta], Awaitable[None]]


def columns(**changes: Any) -> Columns:
    """What lists know of an ordinary open instance."""
    ordinary = Columns(
        definition_id="order",
        version_id="order-1",
        version=1,
        sub_status=SubStatus.SUSPENDED,
        created_at=THEN,
        updated_at=THEN,
    )
    return msgspec.structs.replace(ordinary, **changes)


def envelope(instance_id: str = "i1", **changes: Any) -> Envelope:
    ordinary = Envelope(tenant="acme", instance_id=instance_id, shard=1, kind="resume", payload=b"{}")
    return msgspec.structs.replace(ordinary, **changes)


def born(instance_id: str = "i1", **members: Any) -> Commit:
    """A commit that brings an instance to revision 1."""
    birth = Birth(instance_id=instance_id, shard=1, columns=columns(), state=b"{}")
    return Commit(
        turn=f"birth of {instance_id}", tenant="acme", instance_id=instance_id, births=(birth,), **members
    )


def changed(instance_id: str = "i1", expects: int = 1, state: bytes = b"{}", **members: Any) -> Commit:
    """A commit of a turn that began at that revision."""
    about = members.pop("columns", columns())
    change = Change(
        shard=1,
        expects=expects,
        columns=about,
        state=state,
        reopens=members.pop("reopens", False),
    )
    return Commit(
        turn=f"{instance_id} from {expects}",
        tenant="acme",
        instance_id=instance_id,
        change=change,
        **members,
    )


def start(instance_id: str = "i1", **members: Any) -> Admission:
    pending = columns(sub_status=SubStatus.PENDING)
    birth = Birth(instance_id=instance_id, shard=1, columns=pending)
    return Admission(message=envelope(instance_id, kind="start"), birth=birth, **members)


def start_of(definition_id: str, instance_id: str, **about: Any) -> Admission:
    pending = columns(sub_status=SubStatus.PENDING, definition_id=definition_id, **about)
    birth = Birth(instance_id=instance_id, shard=1, columns=pending)
    return Admission(message=envelope(instance_id, kind="start"), birth=birth)


def child(instance_id: str, definition_id: str = "order") -> Admission:
    """An instance that was born by another and has not begun."""
    return start_of(definition_id, instance_id, parent_id="parent")


def stimulus(stimulus_id: str = "s1", **changes: Any) -> KeptStimulus:
    ordinary = KeptStimulus(
        id=stimulus_id, tenant="acme", key="k", payload=b'{"n":1}', expires=FAR, sent_at=THEN
    )
    return msgspec.structs.replace(ordinary, **changes)


def trigger(definition_id: str = "order", key: str = "k") -> Trigger:
    return Trigger(
        definition_id=definition_id,
        version_id=f"{definition_id}-1",
        activity_id="a",
        name="n",
        key=key,
        payload={"x": 1},
    )


def version(
    number: int = 1, definition_id: str = "order", *, document: bytes = b"{}", **changes: Any
) -> StoredVersion:
    """One version, the latest and published unless it is said otherwise."""
    ordinary = VersionHeader(
        tenant="acme",
        definition_id=definition_id,
        version=number,
        version_id=f"{definition_id}-{number}",
        name="An order",
        is_latest=True,
        is_published=True,
        is_usable=False,
        content_hash="hash",
        created_at=THEN,
    )
    return StoredVersion(header=msgspec.structs.replace(ordinary, **changes), document=document)


def schedule(activity_id: str = "timer", next_at: datetime | None = THEN, **changes: Any) -> Schedule:
    ordinary = Schedule(
        tenant="acme",
        definition_id="order",
        activity_id=activity_id,
        shard=1,
        version_id="order-1",
        spec=b'{"name":"Timer"}',
        cursor=Cursor(next_at=next_at),
    )
    return msgspec.structs.replace(ordinary, **changes)


async def publish(store: Store, definition_id: str = "order", **members: Any) -> None:
    """Publish on top of whatever is there."""
    tenant = members.pop("tenant", "acme")
    mark = (await store.edition(tenant, definition_id)).mark
    await store.publish([Publication(tenant=tenant, definition_id=definition_id, mark=mark, **members)])


async def everything(store: Store, shard: int = 1) -> list[Delivery]:
    """All that lies in a shard's inbox, lane by lane."""
    return await store.read([Place(shard, lane, 0) for lane in Lane], 1000)


def kinds(outcomes: list[Any]) -> list[str]:
    return [type(outcome).__name__ for outcome in outcomes]


async def refusal(asked: Awaitable[Any]) -> HoldfastError | None:
    """What the store raised on purpose; None when it did as asked."""
    try:
        await asked
    except HoldfastError as error:
        return error
    return None
