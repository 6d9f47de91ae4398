"""What a store promises about definitions: whoever publishes knows what he publishes on top of."""

from typing import Any

import pytest

from holdfast.commit import Outgoing
from holdfast.errors import Conflict
from holdfast.store import Cursor, EditionChanged, Firing, Publication, Store
from holdfast.testing.conformance.examples import (
    FAR,
    THEN,
    TTL,
    publish,
    schedule,
    start,
    trigger,
    version,
)


class DefinitionsConformance:
    """What a store promises about definitions: whoever publishes knows what he publishes on top of."""

    async def test_a_definition_that_does_not_exist_is_empty_and_has_a_mark(self, store: Store) -> None:
        edition = await store.edition("acme", "order")
        assert (edition.versions, edition.schedules) == ((), ())
        assert edition.mark
        assert await store.published("acme", "order") is None
        assert await store.version("acme", "order-1") is None

    async def test_what_was_published_is_given_back_whole(self, store: Store) -> None:
        first = version(1, is_latest=False, document='{"name":"Zoë"}'.encode())
        second = version(2, is_published=False, is_usable=True)
        planned = schedule(zone="Europe/Berlin", policies=b'{"overlap":"queue"}', anchor=THEN)
        await publish(store, versions=(second, first), schedules=(planned,))
        edition = await store.edition("acme", "order")
        assert edition.versions == (first, second)
        assert edition.schedules == (planned,)
        assert await store.published("acme", "order") == first
        assert await store.version("acme", "order-2") == second
        assert await store.version("other", "order-2") is None

    async def test_a_publication_changes_what_it_names_and_leaves_the_rest(self, store: Store) -> None:
        old = version(1)
        await publish(store, versions=(old,), triggers=(trigger(),), schedules=(schedule(),))
        retired = version(1, is_latest=False, is_published=False)
        await publish(store, versions=(retired, version(2)))
        edition = await store.edition("acme", "order")
        assert edition.versions == (retired, version(2))
        assert edition.schedules == (schedule(),)
        assert (await store.find("acme", "k"))[0] == [trigger()]

    async def test_versions_that_are_gone_are_deleted(self, store: Store) -> None:
        await publish(store, versions=(version(1), version(2)))
        await publish(store, gone=(1, 2), versions=(version(3, version_id="order-1"),))
        edition = await store.edition("acme", "order")
        assert [stored.header.version for stored in edition.versions] == [3]
        assert await store.version("acme", "order-2") is None

    async def test_of_two_that_publish_on_top_of_the_same_the_second_is_told(self, store: Store) -> None:
        mark = (await store.edition("acme", "order")).mark
        first, second = (
            Publication(tenant="acme", definition_id="order", mark=mark, versions=(version(number),))
            for number in (1, 2)
        )
        await store.publish([first])
        with pytest.raises(EditionChanged):
            await store.publish([second])
        assert (await store.edition("acme", "order")).versions == (version(1),)

    async def test_every_change_changes_the_mark(self, store: Store) -> None:
        marks = [(await store.edition("acme", "order")).mark]
        changes: tuple[dict[str, Any], ...] = (
            {"versions": (version(1),)},
            {"versions": (version(1, content_hash="another"),)},
            {"versions": (version(1, content_hash="another", is_usable=True),)},
            {"versions": (version(1, content_hash="another", is_published=False),)},
            {"versions": (version(2),)},
            {"schedules": (schedule(),)},
            {"schedules": (schedule(next_at=FAR),)},
            {"gone": (1,)},
        )
        for members in changes:
            await publish(store, **members)
            marks.append((await store.edition("acme", "order")).mark)
        assert len(set(marks)) == len(marks)
        await publish(store, "other", versions=(version(1, "other"),))
        assert (await store.edition("acme", "order")).mark == marks[-1]

    async def test_a_schedule_that_fired_meanwhile_changes_the_mark(self, store: Store) -> None:
        await publish(store, versions=(version(1),), schedules=(schedule(),))
        mark = (await store.edition("acme", "order")).mark
        then = Cursor(next_at=FAR, last_at=THEN)
        await store.fire(Firing(schedule=schedule(), nominal=THEN, start=start(), then=then))
        with pytest.raises(EditionChanged):
            await store.publish([Publication(tenant="acme", definition_id="order", mark=mark, schedules=())])
        assert [planned.cursor for planned in await store.schedules("acme")] == [then]

    async def test_publications_are_written_together_or_not_at_all(self, store: Store) -> None:
        await publish(store, "b", versions=(version(1, "b"),))
        before = (await store.join("n1", "here", TTL)).catalogue
        stale = (await store.edition("acme", "a")).mark
        pair = [
            Publication(
                tenant="acme", definition_id=name, mark=stale, versions=(version(2, name),), triggers=()
            )
            for name in ("a", "b")
        ]
        with pytest.raises(EditionChanged):
            await store.publish(pair)
        assert (await store.edition("acme", "a")).versions == ()
        assert (await store.join("n2", "here", TTL)).catalogue == before

    async def test_what_streams_hear_of_a_publication_is_written_with_it(self, store: Store) -> None:
        told = (Outgoing("s", b"1"), Outgoing("s", b"2"))
        mark = (await store.edition("acme", "order")).mark
        publication = Publication(
            tenant="acme", definition_id="order", mark=mark, versions=(version(1),), shard=3, outbox=told
        )
        await store.publish([publication])
        with pytest.raises(EditionChanged):
            await store.publish([publication])
        rows = await store.outgoing("s", [(3, 0)], 10)
        assert [(row.tenant, row.instance_id, row.body) for row in rows] == [
            ("acme", None, b"1"),
            ("acme", None, b"2"),
        ]

    async def test_every_publication_moves_the_catalogue(self, store: Store) -> None:
        before = (await store.join("n1", "here", TTL)).catalogue
        await publish(store, versions=(version(1),))
        between = (await store.renew("n1", TTL)).catalogue
        await publish(store, gone=(1,))
        assert before < between < (await store.renew("n1", TTL)).catalogue

    async def test_a_version_id_belongs_to_one_version(self, store: Store) -> None:
        await publish(store, versions=(version(1),))
        with pytest.raises(Conflict):
            await publish(store, "thief", versions=(version(1, "thief", version_id="order-1"),))
        assert (await store.edition("acme", "thief")).versions == ()

    async def test_tenants_with_the_same_definitions_never_meet(self, store: Store) -> None:
        theirs = version(1, tenant="other", name="Theirs")
        await publish(store, versions=(version(1),), triggers=(trigger(),), schedules=(schedule(),))
        await publish(store, tenant="other", versions=(theirs,), triggers=(), schedules=())
        assert (await store.edition("other", "order")).versions == (theirs,)
        assert (await store.edition("acme", "order")).versions == (version(1),)
        assert await store.schedules("acme") == [schedule()]
        assert (await store.find("acme", "k"))[0] == [trigger()]

    async def test_usable_are_published_and_latest_versions_that_say_so(self, store: Store) -> None:
        wanted = [
            version(1, is_usable=True, is_latest=False),
            version(3, is_usable=True, is_published=False),
        ]
        superseded = version(2, is_usable=True, is_latest=False, is_published=False)
        await publish(store, versions=(*wanted, superseded))
        await publish(store, "other", versions=(version(1, "other"),))
        assert await store.usable("acme") == wanted
        assert await store.usable("other") == []

    async def test_headers_come_in_pages_that_never_cut_a_definition(self, store: Store) -> None:
        for name in ("b", "a", "c"):
            drafted = version(2, name, is_published=False)
            await publish(store, name, versions=(version(1, name, is_latest=False), drafted))

        async def names(**wanted: Any) -> list[tuple[str, int]]:
            found = await store.headers("acme", **wanted)
            return [(header.definition_id, header.version) for header in found]

        assert await names(limit=2) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
        assert await names(after="b", limit=2) == [("c", 1), ("c", 2)]
        assert await names(after="c") == []
        assert await names(published=True) == [("a", 1), ("b", 1), ("c", 1)]
        assert await names(published=False, after="a") == [("b", 2), ("c", 2)]
        assert (await store.headers("acme", limit=1))[0] == version(1, "a", is_latest=False).header
        assert await store.headers("other") == []
