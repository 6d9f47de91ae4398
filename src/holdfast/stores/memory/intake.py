"""Requests from outside: idempotency keys, guarded starts, messages."""

from collections.abc import Sequence
from datetime import timedelta

from holdfast.instance import SubStatus
from holdfast.store import (
    Activation,
    Admission,
    Admitted,
    InstanceExists,
    KeyReused,
    Loaded,
    Posted,
    Posting,
    Refused,
    Repeated,
    Verdict,
)
from holdfast.stores.memory.tables import Asked, Subject

LIFE = timedelta(hours=24)
"""How long a key lives when nobody says."""


class MemoryIntake(Subject):
    async def admit(self, admissions: Sequence[Admission]) -> list[Verdict]:
        return [self._admit(admission) for admission in admissions]

    def _admit(self, admission: Admission) -> Verdict:
        tables, message = self._tables, admission.message
        tenant, instance_id = message.tenant, message.instance_id
        if admission.key is not None:
            asked = self._known(tenant, admission.key)
            if asked is not None:
                if asked.request != admission.request:
                    return KeyReused(admission.key)
                return Refused(asked.refused) if asked.refused else Repeated(asked.instance_id, asked.answer)
        if admission.birth is not None and (tenant, instance_id) in tables.instances:
            return InstanceExists(instance_id)
        forbidding = self._forbidding(tenant, instance_id, admission.activations, overlooks_unbegun=False)
        if admission.key is not None:
            expires = admission.expires or tables.now() + LIFE
            tables.asked[tenant, admission.key] = Asked(
                admission.request, instance_id, expires, refused=forbidding
            )
        if forbidding is not None:
            return Refused(forbidding)
        for activation in admission.activations:
            tables.activations[tenant, activation.key] = instance_id
        if admission.birth is not None:
            tables.bear(tenant, admission.birth, "")
        return Admitted(tables.send(message))

    def _known(self, tenant: str, key: str) -> Asked | None:
        asked = self._tables.asked.get((tenant, key))
        return asked if asked is not None and not self._is_over(asked) else None

    def _is_over(self, asked: Asked) -> bool:
        return asked.expires is not None and asked.expires <= self._tables.now()

    def _forbidding(
        self, tenant: str, asking: str, activations: Sequence[Activation], *, overlooks_unbegun: bool
    ) -> str | None:
        """The instance because of which a guarded start is refused."""
        tables = self._tables
        for activation in activations:
            holder = tables.activations.get((tenant, activation.key))
            if holder == asking:
                continue
            if holder is not None:
                return holder
            if not activation.looks:
                continue
            if activation.definition_id is None:
                candidates = tables.instances.by("open", tenant)
            else:
                candidates = tables.instances.by("open_definition", (tenant, activation.definition_id))
            for (_, instance_id), loaded in candidates.items():
                if (
                    instance_id != asking
                    and activation.correlation_id in (None, loaded.columns.correlation_id)
                    and not (overlooks_unbegun and _is_about_to_ask(loaded))
                ):
                    return instance_id
        return None

    async def post(self, posting: Posting) -> Posted | Repeated | KeyReused:
        tables = self._tables
        if posting.key is not None:
            asked = self._known(posting.tenant, posting.key)
            if asked is not None:
                if asked.request != posting.request:
                    return KeyReused(posting.key)
                return Repeated(asked.instance_id, asked.answer)
            expires = posting.expires or tables.now() + LIFE
            tables.asked[posting.tenant, posting.key] = Asked(
                posting.request, "", expires, answer=posting.answer
            )
        verdicts = tuple(self._admit(admission) for admission in posting.starts)
        if posting.keep is not None:
            tables.keep(posting.keep)
        return Posted(tuple(tables.send(message) for message in posting.messages), verdicts)

    async def activate(
        self, tenant: str, instance_id: str, activations: Sequence[Activation]
    ) -> Refused | None:
        if (tenant, instance_id) not in self._tables.instances.by("open", tenant):
            return Refused(instance_id)
        forbidding = self._forbidding(tenant, instance_id, activations, overlooks_unbegun=True)
        if forbidding is not None:
            return Refused(forbidding)
        for activation in activations:
            self._tables.activations[tenant, activation.key] = instance_id
        return None

    async def answer(self, tenant: str, key: str) -> bytes | None:
        asked = self._tables.asked.get((tenant, key))
        return None if asked is None else asked.answer

    async def forget_keys(self, limit: int) -> int:
        over = [key for key, asked in self._tables.asked.items() if self._is_over(asked)][:limit]
        for key in over:
            del self._tables.asked[key]
        return len(over)


def _is_about_to_ask(loaded: Loaded) -> bool:
    """Born by another's commit, as a child or by a stimulus that another sent, and not begun."""
    is_born_inside = loaded.columns.parent_id is not None or loaded.turn != ""
    return loaded.columns.sub_status is SubStatus.PENDING and is_born_inside
