"""A check that cannot fail shows nothing: each guarantee's checks find the mistakes planted against it."""

from pathlib import Path
from unittest.mock import patch

import pytest

from tests.guarantees import bench as benches
from tests.guarantees import checks
from tests.guarantees.checks import CHECKS
from tests.guarantees.conftest import bench_on
from tests.guarantees.mutants import MUTANTS, Mutant
from tests.guarantees.test_guarantees import GUARANTEES


@pytest.mark.parametrize("mutant", [pytest.param(m, id=f"{m.guarantee}-{m.name}") for m in MUTANTS])
async def test_is_found(mutant: Mutant, tmp_path: Path) -> None:
    found: list[str] = []
    with patch.object(benches, "PATIENCE", 4.0), patch.object(checks, "PATIENCE", 4.0):
        for number, check in CHECKS:
            if number != mutant.guarantee:
                continue
            bench = await bench_on(f"sqlite:///{tmp_path / f'{check.__name__}.db'}")
            with mutant.plant():
                try:
                    await check(bench)
                except (Exception, BaseExceptionGroup) as broken:
                    found.append(f"{check.__name__}: {broken!r}")
    assert found, f"No check of guarantee {mutant.guarantee} finds a Holdfast that {mutant.name}."


def test_every_guarantee_has_a_mutant() -> None:
    assert {mutant.guarantee for mutant in MUTANTS} == set(GUARANTEES)
