"""Objects and payloads are dataclasses, msgspec Structs or pydantic models, and come back as they were."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from holdfast import Answer, Machine, Run
from holdfast.machines.objects import ObjectInvalid, Objects
from holdfast.testing import MachineBench


class Status(IntEnum):
    OPEN = 1
    CLOSED = 2


@dataclass
class Plain:
    when: datetime
    price: Decimal
    tags: set[str] = field(default_factory=set[str])


class Packed(msgspec.Struct):
    when: datetime
    price: Decimal
    tags: set[str] = msgspec.field(default_factory=set[str])


class Checked(BaseModel):
    when: datetime
    price: Decimal
    tags: set[str] = set()

    @field_validator("price")
    @classmethod
    def is_positive(cls, value: Decimal) -> Decimal:
        if value < 0:
            raise ValueError("a price is not negative")
        return value


WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


def machine_of(kind: Any) -> Machine[Any, Status]:
    machine = Machine("things", object=kind, status=Status)

    @machine.callback(Status.OPEN)
    async def close(run: Run[Any, Status], given: kind) -> Literal[Status.CLOSED]:
        run.object.tags |= given.tags
        return Status.CLOSED

    return machine


@pytest.mark.parametrize("kind", [Plain, Packed, Checked])
async def test_an_object_comes_back_as_it_was(kind: Any) -> None:
    async with MachineBench(machine_of(kind)) as bench:
        await bench.trigger("a", kind(when=WHEN, price=Decimal("0.10"), tags={"x"}))
        payload = kind(when=WHEN, price=Decimal(1), tags={"y"})
        assert await bench.callback("a", Status.OPEN, payload) is Answer.ACCEPTED
        assert bench.run().object == kind(when=WHEN, price=Decimal("0.10"), tags={"x", "y"})


async def test_a_model_refuses_a_payload_by_its_own_rules() -> None:
    async with MachineBench(machine_of(Checked)) as bench:
        await bench.trigger("a", Checked(when=WHEN, price=Decimal(1)))
        with pytest.raises(ObjectInvalid, match="a price is not negative"):
            await bench.callback("a", Status.OPEN, {"when": "2026-01-01T00:00:00Z", "price": "-1"})


@pytest.mark.parametrize("kind", [Plain, Packed, Checked])
async def test_an_object_of_another_type_is_refused(kind: Any) -> None:
    async with MachineBench(machine_of(kind)) as bench:
        for wrong in ({"price": 1}, "text", 7):
            with pytest.raises(ObjectInvalid, match=f"no {kind.__name__}"):
                await bench.trigger("a", wrong)
        with pytest.raises(ObjectInvalid, match="cannot be made of nothing"):
            await bench.trigger("a")


@dataclass
class Anything:
    value: Any


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(value=JSON)
def test_whatever_json_can_say_comes_back(value: Any) -> None:
    objects: Objects[Anything] = Objects(Anything)
    assert objects.read(objects.write(Anything(value))) == Anything(value)
