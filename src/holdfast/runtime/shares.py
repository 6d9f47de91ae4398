"""Which shards this node works: its fair share of those of its groups, given and taken without a leader."""

import logging
from collections.abc import Callable, Mapping
from random import Random

import msgspec

from holdfast.runtime.lines import Lines
from holdfast.runtime.loader import Loader
from holdfast.runtime.membership import Membership, Where
from holdfast.runtime.reader import Reader
from holdfast.runtime.shards import Shards, lease_name, shard_number
from holdfast.store import DEFAULT, LiveNode, Renewal, Store
from holdfast.telemetry import Figures

_log = logging.getLogger("holdfast")


class Shares:
    def __init__(
        self,
        store: Store,
        membership: Membership,
        where: Where,
        *,
        shards: Shards,
        reader: Reader,
        lines: Lines,
        loader: Loader,
        monotonic: Callable[[], float],
        on_takeover: Callable[[], None],
        figures: Figures | None = None,
    ) -> None:
        self._store = store
        self._membership = membership
        self._where = where
        self._shards = shards
        self._reader = reader
        self._lines = lines
        self._loader = loader
        self._monotonic = monotonic
        self._on_takeover = on_takeover
        self._figures = figures or Figures()
        self._random = Random(membership.node_id)  # noqa: S311  so that nodes do not all want the same ones
        self._taken: dict[str, tuple[int, float]] = {}
        """Leases this node has: the epoch, and since when."""
        self.roles: set[str] = set()
        """Leases that are not shards."""

    def check(self, sent: float, renewal: Renewal) -> None:
        """What a renewal does not mention was lost, unless it was taken after the renewal was sent."""
        lost = [
            name
            for name, (epoch, since) in self._taken.items()
            if since < sent and renewal.leases.get(name) != epoch
        ]
        for name in lost:
            self._lose(name)
        self._lost(lost)

    async def balance(self, roles: tuple[str, ...] = ()) -> None:
        """Give what is too much, take what is missing."""
        living = await self._living()
        leases = await self._store.leases()
        alive = {node.id for node in living}
        for name, (owner, epoch) in leases.items():
            if owner == self._membership.node_id and name not in self._taken:
                # Taken without our hearing of it, or given back in vain. Nobody else will take it while
                # we live, and how its last owner left it is not known any more.
                self._own(name, epoch, carefully=True)
        for group in self._where.groups:
            names = [lease_name(number) for number in self._shards.numbers([group])]
            sharing = max(1, sum(1 for node in living if group in _groups(node)))
            share = -(-len(names) // sharing)
            mine = [name for name in names if name in self._taken]
            if len(mine) > share:
                await self._give(mine, len(mine) - share)
            elif len(mine) < share:
                free = [n for n in names if n not in self._taken and leases.get(n, ("", 0))[0] not in alive]
                self._random.shuffle(free)
                await self._take(free[: share - len(mine)])
        wanted = [r for r in roles if r not in self._taken and leases.get(r, ("", 0))[0] not in alive]
        if wanted:
            await self._take(wanted)

    async def _living(self) -> list[LiveNode]:
        """The living; one whose process is gone from this machine is ended at once."""
        living: list[LiveNode] = []
        for node in await self._store.nodes():
            where = _where(node)
            if (
                where is not None
                and node.id != self._membership.node_id
                and where.is_surely_gone(self._where)
            ):
                await self._store.leave(node.id)
            else:
                living.append(node)
        return living

    async def _take(self, names: list[str]) -> None:
        if not names:
            return
        found = await self._store.take(self._membership.node_id, names)
        for taken in found:
            self._own(taken.name, taken.epoch, carefully=not taken.is_clean)
        self._figures.count("leases", "taken", len(found))
        unclean = [taken.name for taken in found if not taken.is_clean]
        if unclean:
            self._figures.count("takeovers", by=len(unclean))
            self._log("Node %s took over from a node that died: %s", unclean)
            self._on_takeover()

    def _own(self, name: str, epoch: int, *, carefully: bool) -> None:
        self._taken[name] = epoch, self._monotonic()
        number = shard_number(name)
        if number is None:
            self.roles.add(name)
        else:
            self._reader.take(number, carefully=carefully)

    async def _give(self, mine: list[str], count: int) -> None:
        """Shards with nothing in flight; long turns keep theirs."""
        given: list[str] = []
        for name in mine:
            number = shard_number(name)
            if len(given) < count and number is not None and not self._lines.is_busy_in(number):
                given.append(name)
                self._lose(name)
        if given:
            await self._store.release(self._membership.node_id, given)
            self._figures.count("leases", "given", len(given))

    async def give_all(self) -> None:
        """Also what was taken without our hearing of it."""
        leases = await self._store.leases()
        given = [name for name, (owner, _) in leases.items() if owner == self._membership.node_id]
        for name in list(self._taken):
            self._lose(name)
        if given:
            await self._store.release(self._membership.node_id, given)
            self._figures.count("leases", "given", len(given))

    def lose_all(self) -> None:
        lost = list(self._taken)
        for name in lost:
            self._lose(name)
        self._lost(lost)

    def _lost(self, names: list[str]) -> None:
        if names:
            self._figures.count("leases", "lost", len(names))
            self._log("Node %s has lost leases: %s", names)

    def _log(self, text: str, names: list[str]) -> None:
        node_id = self._membership.node_id
        said = ", ".join(names) if len(names) < 4 else f"{len(names)} shards"
        _log.warning(text, node_id, said, extra={"node": node_id, "leases": names})

    def _lose(self, name: str) -> None:
        del self._taken[name]
        self.roles.discard(name)
        number = shard_number(name)
        if number is not None:
            self._reader.drop(number)
            self._loader.forget_shard(number)


def _where(node: LiveNode) -> Where | None:
    try:
        return msgspec.json.decode(node.place, type=Where)
    except msgspec.MsgspecError:
        return None


def _groups(node: LiveNode) -> tuple[str, ...]:
    where = _where(node)
    return (DEFAULT,) if where is None else where.groups


def owners(leases: Mapping[str, tuple[str, int]]) -> dict[str, int]:
    """How many shards each node has."""
    counts: dict[str, int] = {}
    for name, (node, _) in leases.items():
        if shard_number(name) is not None:
            counts[node] = counts.get(node, 0) + 1
    return counts
