"""What a store promises to whoever looks for what was left behind."""

import msgspec

from holdfast.commit import Task, Timer, Wait
from holdfast.store import Activation, Orphan, Store
from holdfast.testing.conformance.examples import THEN
from holdfast.testing.conformance.records import an_instance, over


class OrphansConformance:
    async def test_what_commits_wrote_has_no_orphans(self, store: Store) -> None:
        commit = an_instance("i1")
        [birth] = commit.births
        waiting = msgspec.structs.replace(
            birth,
            timers=(Timer(id="t1", due=THEN, kind="resume"),),
            waits=(Wait("b1", "k"),),
            tasks=(Task(3, b"{}"),),
        )
        await store.commit([msgspec.structs.replace(commit, births=(waiting,))])
        await store.activate("acme", "i1", [Activation(key="only", looks=False)])
        assert await store.orphans(10) == []

    async def test_an_open_child_whose_parent_is_gone_is_an_orphan(self, store: Store) -> None:
        await store.commit([an_instance("p1"), an_instance("c1", parent_id="p1")])
        await store.commit([an_instance("c2", parent_id="gone")])
        await store.commit([an_instance("c3", "globex", parent_id="p1")])
        await store.commit([an_instance("c4", **over(parent_id="gone"))])
        assert await store.orphans(10) == [
            Orphan(kind="child", tenant="acme", instance_id="gone", name="c2"),
            Orphan(kind="child", tenant="globex", instance_id="p1", name="c3"),
        ]
        assert len(await store.orphans(1)) == 1

    async def test_a_database_says_how_it_feels_where_it_can(self, store: Store) -> None:
        vitals = await store.vitals()
        assert vitals.dead_rows is None or vitals.dead_rows >= 0
