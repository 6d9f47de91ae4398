"""Publishing and firing by many at once, on real databases: whoever is first is the only one."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.store import Admitted, Cursor, EditionChanged, Firing, Publication, Schedule
from holdfast.stores.sql.engines import create
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import metadata
from holdfast.testing.conformance.examples import (
    FAR,
    THEN,
    envelope,
    everything,
    kinds,
    publish,
    schedule,
    start,
    stimulus,
    trigger,
    version,
)
from tests.stores.test_races import at_once
from tests.stores.test_sql_stores import empty

ROUNDS = 15


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
async def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[SqlStore]]:
    """Several nodes' stores on one database, each with connections of its own."""
    local = f"sqlite:///{tmp_path / 'holdfast.db'}"
    url = local if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_url")
    databases = [create(url) for _ in range(4)]
    await databases[0].write(metadata.create_all)
    await databases[0].write(empty)
    yield [SqlStore(database) for database in databases]
    for database in databases:
        await database.close()


async def outcome(work: Any) -> Any:
    """What it came to; `EditionChanged` when somebody else was first."""
    try:
        return await work
    except EditionChanged as changed:
        return type(changed)


def firing(of: Schedule, instance_id: str) -> Firing:
    then = Cursor(next_at=FAR, last_at=THEN)
    return Firing(schedule=of, nominal=THEN, start=start(instance_id), then=then)


async def test_of_many_that_publish_one_new_definition_one_wins(nodes: list[SqlStore]) -> None:
    mark = (await nodes[0].edition("acme", "order")).mark

    def ask(store: SqlStore, n: int) -> Any:
        # Each with another number: what decides is not that two want the same row.
        one = Publication(
            tenant="acme",
            definition_id="order",
            mark=mark,
            versions=(version(n + 1),),
            triggers=(trigger(key=f"k{n}"),),
        )
        return outcome(store.publish([one]))

    outcomes = await at_once(nodes, ask)
    assert Counter(outcomes) == {None: 1, EditionChanged: 11}
    winner = outcomes.index(None)
    edition = await nodes[1].edition("acme", "order")
    assert edition.versions == (version(winner + 1),)
    found = [len((await nodes[1].find("acme", f"k{n}"))[0]) for n in range(12)]
    assert found == [int(n == winner) for n in range(12)]


async def test_of_many_that_publish_on_top_of_the_same_version_one_wins(nodes: list[SqlStore]) -> None:
    await publish(nodes[0], versions=(version(1),))
    mark = (await nodes[0].edition("acme", "order")).mark

    def ask(store: SqlStore, n: int) -> Any:
        retired = version(1, is_latest=False, is_published=False)
        new = version(n + 2)
        one = Publication(tenant="acme", definition_id="order", mark=mark, versions=(retired, new))
        return outcome(store.publish([one]))

    outcomes = await at_once(nodes, ask)
    assert Counter(outcomes) == {None: 1, EditionChanged: 11}
    published = await nodes[1].published("acme", "order")
    assert published == version(outcomes.index(None) + 2)


async def test_many_definitions_in_any_order_never_hinder_each_other(nodes: list[SqlStore]) -> None:
    names = [f"d{n}" for n in range(10)]
    marks = {name: (await nodes[0].edition("acme", name)).mark for name in names}

    def ask(store: SqlStore, n: int) -> Any:
        order = names if n % 2 else list(reversed(names))
        return outcome(
            store.publish(
                [
                    Publication(
                        tenant="acme",
                        definition_id=name,
                        mark=marks[name],
                        versions=(version(n + 1, name),),
                        schedules=(schedule(definition_id=name),),
                    )
                    for name in order
                ]
            )
        )

    outcomes = await at_once(nodes, ask, times=8)
    assert Counter(outcomes) == {None: 1, EditionChanged: 7}
    numbers = {header.version for header in await nodes[1].headers("acme")}
    assert numbers == {outcomes.index(None) + 1}


async def test_an_occurrence_that_many_fire_starts_one_instance(nodes: list[SqlStore]) -> None:
    await publish(nodes[0], schedules=(schedule(),))
    verdicts = await at_once(nodes, lambda store, n: store.fire(firing(schedule(), f"i{n}")))
    assert kinds(verdicts).count("Admitted") == 1
    assert verdicts.count(None) == 11
    assert len(await everything(nodes[0])) == 1


async def test_either_the_old_version_fires_or_the_new_one_is_published(nodes: list[SqlStore]) -> None:
    """Whoever publishes would else write back a cursor that has moved, and the occurrence fires again."""
    started = 0
    for number in range(ROUNDS):
        name = f"d{number}"
        old = schedule(definition_id=name)
        await publish(nodes[0], name, versions=(version(1, name),), schedules=(old,))
        mark = (await nodes[0].edition("acme", name)).mark
        new = schedule(definition_id=name, version_id="new")
        one = Publication(
            tenant="acme", definition_id=name, mark=mark, versions=(version(2, name),), schedules=(new,)
        )
        rivals = {
            "fire": nodes[0].fire(firing(old, f"i{number}")),
            "publish": outcome(nodes[1].publish([one])),
        }
        order = sorted(rivals, reverse=number % 2 == 0)
        results = await asyncio.gather(*(rivals[rival] for rival in order))
        found = dict(zip(order, results, strict=True))
        fired, published = found["fire"], found["publish"]
        assert isinstance(fired, Admitted) == (published is EditionChanged)
        (now,) = await nodes[2].schedules("acme", name)
        moved = Cursor(next_at=FAR, last_at=THEN)
        assert (now.version_id, now.cursor) == (
            (old.version_id, moved) if fired else (new.version_id, new.cursor)
        )
        started += fired is not None
    assert len(await everything(nodes[0])) == started


async def test_what_expires_while_it_is_paired_ends_in_one_place(nodes: list[SqlStore]) -> None:
    for number in range(ROUNDS):
        await nodes[0].keep(stimulus(f"s{number}", instance_id="i1", expires=THEN))
    paired = asyncio.gather(*(nodes[0].pair("acme", f"s{number}", [envelope()]) for number in range(ROUNDS)))
    swept = asyncio.gather(*(nodes[n].expire_stimuli(ROUNDS) for n in (1, 2, 3)))
    messages = [places for places in await paired if places is not None]
    expired = sum(await swept)
    assert len(messages) + expired == ROUNDS
    assert len(await everything(nodes[0])) == len(messages)
