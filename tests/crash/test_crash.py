"""Workers are killed and a database is stopped, and nothing is lost or doubled. `make crash` does more."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.ledger import Ledger, Stale
from tests.crash.server import NoServer
from tests.crash.story import Plan, play


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where another user may look, too: PostgreSQL refuses to run as root."""
    made = Path(tempfile.mkdtemp(prefix="hf-crash-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.timeout(180)
async def test_orders_survive_the_workers_and_a_database_that_stops(folder: Path) -> None:
    plan = Plan(orders=60, kills=4, kills_in_commit=1, seconds=6.0, seed=1)
    try:
        result = await play(plan, folder, print)
    except NoServer as problem:
        pytest.skip(str(problem))
    assert str(result) == "60 finished, 0 lost, 0 doubled"
    assert result.kills >= 4
    assert result.kills_in_commit >= 1
    assert result.findings == []
    assert result.exits == [0, 0, 0]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db")


def test_the_ledger_counts_what_is_repeated_under_a_key(ledger: Ledger) -> None:
    assert ledger.record("i/charge/3", 1, "order-1", "charge")
    assert not ledger.record("i/charge/3", 1, "order-1", "charge")
    assert (ledger.repeats(), ledger.doubled()) == (1, [])
    ledger.close()


def test_another_attempt_under_the_same_key_is_no_repetition(ledger: Ledger) -> None:
    ledger.record("i/charge/3", 1, "order-1", "charge")
    assert not ledger.record("i/charge/3", 2, "order-1", "charge")
    assert ledger.repeats() == 0
    ledger.close()


def test_the_ledger_refuses_a_stale_attempt(ledger: Ledger) -> None:
    ledger.record("i/charge/3", 2, "order-1", "charge")
    with pytest.raises(Stale, match="Attempt 1 of i/charge/3 comes after attempt 2"):
        ledger.record("i/charge/3", 1, "order-1", "charge")
    assert (ledger.refusals(), ledger.repeats()) == (1, 0)
    ledger.close()


def test_a_step_under_two_keys_is_doubled(ledger: Ledger) -> None:
    ledger.record("i/charge/3", 1, "order-1", "charge")
    ledger.record("i/charge/4", 1, "order-1", "charge")
    ledger.record("i/ship/5", 1, "order-1", "ship")
    assert ledger.doubled() == [("order-1", "charge")]
    assert ledger.done(("charge", "ship")) == {"order-1"}
    assert ledger.done(("reserve", "charge", "ship")) == set()
    ledger.close()
