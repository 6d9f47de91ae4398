"""Waiting for time to pass, and starting by the clock."""

from datetime import UTC, datetime, timedelta

from holdfast.testing import Host
from tests.documents import document, literal, sequence, write

STARTS = {"customProperties": {"canStartWorkflow": True}}


async def test_a_delay_of_three_months_takes_no_time_to_test() -> None:
    host = Host()
    await host.load(
        document(sequence({"id": "d", "type": "Elsa.Delay", "timeSpan": literal("90.00:00:00")}, write("x")))
    )
    await host.run("test")
    await host.advance(timedelta(days=90, microseconds=-1))
    assert host.console.written == []
    await host.advance(timedelta(microseconds=1))
    assert host.console.written == ["x"]


async def test_a_cron_trigger_starts_an_instance_at_each_occurrence() -> None:
    host = Host()
    cron = {"id": "c", "type": "Elsa.Cron", "cronExpression": literal("0 0 */6 * * *"), **STARTS}
    await host.load(document(sequence(cron, write("tick"))))
    await host.advance(timedelta(days=1))
    assert host.console.written == ["tick"] * 4


async def test_republishing_does_not_start_the_interval_of_a_timer_twice() -> None:
    host = Host()
    timer = {"id": "t", "type": "Elsa.Timer", "interval": literal("00:10:00"), **STARTS}
    await host.load(document(sequence(timer, write("tick"))))
    await host.advance(timedelta(minutes=5))
    host.publish("test")
    await host.advance(timedelta(minutes=10))
    assert host.console.written == ["tick"]


async def test_start_at_in_the_past_completes_at_once_inside_a_workflow() -> None:
    host = Host()
    start_at = {"id": "s", "type": "Elsa.StartAt", "dateTime": literal("2020-01-01T00:00:00Z")}
    await host.load(document(sequence(start_at, write("x"))))
    assert (await host.run("test")).sub_status == "Finished"


async def test_start_at_in_the_future_waits_until_then() -> None:
    host = Host()
    start_at = {"id": "s", "type": "Elsa.StartAt", "dateTime": literal("2026-01-02T03:04:05+01:00")}
    await host.load(document(sequence(start_at, write("x"))))
    instance = await host.run("test")
    assert instance.bookmarks[0].due == datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)


async def test_a_cron_expression_that_never_comes_true_faults() -> None:
    host = Host()
    await host.load(document({"id": "c", "type": "Elsa.Cron", "cronExpression": literal("0 0 0 30 2 *")}))
    instance = await host.run("test")
    assert "never comes true" in instance.incidents[0].message
