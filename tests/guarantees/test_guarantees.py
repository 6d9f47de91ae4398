"""Every guarantee of the design, on every database."""

import pytest

from tests.guarantees.bench import Bench
from tests.guarantees.checks import CHECKS, Check

GUARANTEES = range(1, 14)


@pytest.mark.parametrize(
    "check",
    [pytest.param(check, marks=pytest.mark.guarantee(n), id=f"{n}-{check.__name__}") for n, check in CHECKS],
)
async def test_holds(check: Check, bench: Bench) -> None:
    await check(bench)


def test_no_guarantee_is_without_a_check() -> None:
    assert {number for number, _ in CHECKS} == set(GUARANTEES)
