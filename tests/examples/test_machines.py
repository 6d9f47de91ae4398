"""The examples of machines do what they say."""

import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from examples.onboarding import Customer, Verdict
from examples.order_fulfilment import Order, Payment

from examples import onboarding, order_fulfilment, scheduled_report
from holdfast import RunState
from holdfast.testing import MachineBench, ManualClock

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("order_fulfilment", ["ada@example.org owes 4200 cents.", "parcel of order-17"]),
        ("onboarding", ["Welcome, Ada."]),
        ("scheduled_report", ["sales is due at"]),
    ],
)
def test_an_example_runs_and_may_be_run_again(name: str, said: list[str], tmp_path: Path) -> None:
    for _ in range(2):
        command = [sys.executable, EXAMPLES / f"{name}.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        for line in said:
            assert line in done.stdout


# --- orders ----------------------------------------------------------------------------------------

OrderStatus = order_fulfilment.Status


@pytest.fixture
async def shop() -> AsyncIterator[MachineBench[Order, OrderStatus]]:
    async with MachineBench(order_fulfilment.orders) as bench:
        yield bench


async def test_an_order_nobody_pays_expires_after_two_days(shop: MachineBench[Order, OrderStatus]) -> None:
    run = await shop.trigger("order-17", Order("ada@example.org", 4200))
    await shop.advance(days=2)
    assert shop.statuses(run) == [OrderStatus.PLACED, OrderStatus.BILLED, OrderStatus.EXPIRED]


async def test_an_order_paid_in_part_waits_for_somebody(shop: MachineBench[Order, OrderStatus]) -> None:
    await shop.trigger("order-17", Order("ada@example.org", 4200))
    await shop.callback("order-17", OrderStatus.BILLED, Payment(cents=4000))
    assert (shop.run().state, shop.run().reason) == (RunState.PAUSED, "200 cents short")


async def test_an_order_that_is_paid_has_a_parcel(shop: MachineBench[Order, OrderStatus]) -> None:
    await shop.trigger("order-17", Order("ada@example.org", 4200))
    await shop.callback("order-17", OrderStatus.BILLED, Payment(cents=4200))
    assert shop.run().object.parcel == "parcel of order-17"


# --- onboarding ------------------------------------------------------------------------------------

CheckStatus = onboarding.Status
ADA = ("ada", "ada@example.org")


@pytest.fixture
async def desk() -> AsyncIterator[MachineBench[Customer, CheckStatus]]:
    async with MachineBench(onboarding.onboarding) as bench:
        yield bench


@pytest.mark.parametrize(("passed", "ends"), [(True, CheckStatus.WELCOMED), (False, CheckStatus.REFUSED)])
async def test_the_agency_decides(
    desk: MachineBench[Customer, CheckStatus], passed: bool, ends: CheckStatus
) -> None:
    await desk.trigger("ada", Customer(*ADA))
    await desk.advance(hours=30)
    await desk.callback("ada", CheckStatus.CHECKING, Verdict(desk.run().object.check_id, passed=passed))
    assert desk.run().status is ends
    assert desk.run().object.reminders == 1


async def test_a_verdict_about_somebody_else_decides_nothing(
    desk: MachineBench[Customer, CheckStatus],
) -> None:
    await desk.trigger("ada", Customer(*ADA))
    await desk.callback("ada", CheckStatus.CHECKING, Verdict("check-of-bob", passed=True, remark="fine"))
    assert desk.run().status is CheckStatus.CHECKING
    assert desk.run().object.remarks == ["fine"]


async def test_without_an_answer_the_agency_is_reminded_and_the_application_lapses(
    desk: MachineBench[Customer, CheckStatus],
) -> None:
    await desk.trigger("ada", Customer(*ADA))
    await desk.advance(days=6, hours=23)
    assert (desk.run().status, desk.run().object.reminders) == (CheckStatus.CHECKING, 3)
    await desk.advance(hours=1)
    assert desk.run().status is CheckStatus.LAPSED


async def test_who_cannot_be_written_to_is_cancelled(desk: MachineBench[Customer, CheckStatus]) -> None:
    await desk.trigger("ada", Customer("Ada", "nowhere"))
    assert desk.run().state is RunState.CANCELLED


async def test_who_asks_is_forgotten(desk: MachineBench[Customer, CheckStatus]) -> None:
    run = await desk.trigger("ada", Customer(*ADA))
    await desk.advance(days=7)
    await desk.delete(run)
    assert (desk.run().object.name, desk.run().object.email) == ("", "")
    assert desk.run().object.check_id


# --- reports ---------------------------------------------------------------------------------------


async def test_the_report_comes_on_working_days_at_seven_in_zurich() -> None:
    friday = ManualClock(datetime(2026, 3, 27, 12, tzinfo=UTC))
    async with MachineBench(scheduled_report.reports, clock=friday) as bench:
        await bench.runs.schedule(
            "sales", cron="0 7 * * *", zone="Europe/Zurich", when=scheduled_report.on_working_days
        )
        await bench.advance(days=5)
        monday, *others = bench.all
        assert [run.created_at.day for run in (monday, *others)] == [30, 31, 1]
        assert monday.created_at.hour == 5  # summer time began on Sunday
        assert monday.object.pages == ["page 1", "page 2", "page 3"]


async def test_a_busy_mail_server_is_asked_again_after_five_minutes() -> None:
    async with MachineBench(scheduled_report.reports) as bench:
        await bench.trigger("sales", scheduled_report.Report("unlucky"))
        await bench.advance(minutes=4)
        assert bench.run().status is scheduled_report.Status.COLLECTED
        await bench.advance(minutes=1)
        assert bench.run().state is RunState.COMPLETED
