"""Instances, messages and commits to test stores with, as short as they can be said."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from holdfast.commit import (
    Birth,
    Change,
    Columns,
    Commit,
    Delivery,
    Envelope,
    Lane,
    Place,
)
from holdfast.instance import SubStatus
from holdfast.store import (
    Admission,
    Store,
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


async def everything(store: Store, shard: int = 1) -> list[Delivery]:
    """All that lies in a shard's inbox, lane by lane."""
    return await store.read([Place(shard, lane, 0) for lane in Lane], 1000)


def kinds(outcomes: list[Any]) -> list[str]:
    return [type(outcome).__name__ for outcome in outcomes]
