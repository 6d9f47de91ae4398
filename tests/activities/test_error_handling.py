"""Faults: incidents, retries, error paths, try and catch, and sagas."""

from datetime import timedelta
from typing import Any

from holdfast import activity
from holdfast.authoring import ActivityContext
from holdfast.testing import Host
from tests.documents import document, event, fault, flowchart, literal, sequence, write


async def run(root: dict[str, Any], **options: Any) -> tuple[Host, Any]:
    host = Host(**options)
    await host.load(document(root))
    return host, await host.run("test")


async def test_a_fault_nobody_handles_is_an_incident_and_ends_the_instance() -> None:
    _, instance = await run(sequence(write("before"), fault("broken", "E1"), write("after")))
    assert instance.sub_status == "Faulted"
    (incident,) = instance.incidents
    assert (incident.activity_id, incident.message, incident.code) == ("fault", "broken", "E1")


async def test_an_activity_whose_error_outcome_is_connected_takes_that_path() -> None:
    chart = flowchart(
        fault("broken", "E1"), write("fine"), write("sorry"), connections=["fault>fine", "fault:Error>sorry"]
    )
    host, instance = await run(chart)
    assert (host.console.written, instance.sub_status, instance.incidents) == (["sorry"], "Finished", [])


async def test_the_error_path_sees_what_went_wrong() -> None:
    tell = {
        "id": "tell",
        "type": "Elsa.WriteLine",
        "text": {
            "typeName": "String",
            "expression": {"type": "Liquid", "value": "{{ Variables.Error.message }}"},
        },
    }
    host, _ = await run(flowchart(fault("no funds"), tell, connections=["fault:Error>tell"]))
    assert host.console.written == ["no funds"]


async def test_a_fault_deep_inside_takes_the_error_path_of_the_container_in_the_chart() -> None:
    inside = {**sequence(write("inside"), fault()), "id": "inside-all"}
    chart = flowchart(inside, write("sorry"), connections=["inside-all:Error>sorry"])
    host, instance = await run(chart)
    assert (host.console.written, instance.sub_status) == (["inside", "sorry"], "Finished")


async def test_try_catches_cancels_what_is_left_and_goes_on_with_finally() -> None:
    body = {"id": "body", "type": "Elsa.Parallel", "activities": [event("never"), fault()]}
    tried = {
        "id": "try",
        "type": "Holdfast.Try",
        "body": body,
        "catch": write("caught"),
        "finally": write("at last"),
    }
    host, instance = await run(sequence(tried, write("after")))
    assert host.console.written == ["caught", "at last", "after"]
    assert (instance.sub_status, instance.bookmarks) == ("Finished", [])
    assert instance.activity_status("never") == "Canceled"


async def test_try_lets_pass_what_it_was_not_told_to_catch() -> None:
    tried = {
        "id": "try",
        "type": "Holdfast.Try",
        "codes": literal('["other"]'),
        "body": fault("broken", "E1"),
        "catch": write("caught"),
    }
    host, instance = await run(tried)
    assert (host.console.written, instance.sub_status) == ([], "Faulted")


async def test_a_fault_in_catch_goes_to_the_try_around() -> None:
    inner = {
        "id": "inner",
        "type": "Holdfast.Try",
        "body": fault("first"),
        "catch": {**fault("second"), "id": "f2"},
    }
    outer = {"id": "outer", "type": "Holdfast.Try", "body": inner, "catch": write("outer caught")}
    host, instance = await run(outer)
    assert (host.console.written, instance.sub_status) == (["outer caught"], "Finished")


def saga(*steps: tuple[dict[str, Any], dict[str, Any] | None], **members: Any) -> dict[str, Any]:
    return {
        "id": "saga",
        "type": "Holdfast.Saga",
        "steps": [{"action": action, "undo": undo} for action, undo in steps],
        **members,
    }


async def test_a_saga_undoes_what_had_completed_last_one_first() -> None:
    steps = saga(
        (write("reserve"), write("release")),
        (write("charge"), write("refund")),
        (fault("no truck"), write("never undone")),
    )
    host, instance = await run(flowchart(steps, write("told"), connections=["saga:Compensated>told"]))
    assert host.console.written == ["reserve", "charge", "refund", "release", "told"]
    assert (instance.sub_status, instance.incidents) == ("Finished", [])


async def test_a_saga_undoes_after_a_wait_of_days_as_well() -> None:
    steps = saga((write("reserve"), write("release")), (event("paid"), write("refund")), (fault(), None))
    host, instance = await run(steps)
    assert instance.sub_status == "Suspended"
    await host.publish_event("paid")
    assert host.console.written == ["reserve", "refund", "release"]


async def test_a_saga_that_rethrows_faults_after_everything_is_undone() -> None:
    host, instance = await run(
        saga((write("reserve"), write("release")), (fault("no truck"), None), rethrow=True)
    )
    assert host.console.written == ["reserve", "release"]
    assert [i.message for i in instance.incidents] == ["no truck"]
    assert instance.incidents[0].activity_id == "saga"


class Flaky:
    """Fails a number of times, and remembers under which keys it was called."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.keys: list[tuple[str, int]] = []

    def activity(self) -> Any:
        @activity(type="Test.Flaky")
        def flaky(*, context: ActivityContext) -> str:
            self.keys.append((context.idempotency_key, context.attempt))
            if len(self.keys) <= self.failures:
                raise ConnectionError("try again")
            return "worked"

        return flaky


def retried(**policy: Any) -> dict[str, Any]:
    return {"id": "flaky", "type": "Test.Flaky", "customProperties": {"retryPolicy": policy}}


async def test_a_retry_waits_durably_and_keeps_the_idempotency_key() -> None:
    flaky = Flaky(failures=2)
    root = sequence(retried(attempts=3, delay="00:00:10", factor=3), write("after"))
    host, instance = await run(root, activities=[flaky.activity()])
    assert instance.sub_status == "Suspended"
    assert instance.bookmarks[0].due == host.clock.now() + timedelta(seconds=10)
    await host.advance(timedelta(seconds=10))
    assert instance.bookmarks[0].due == host.clock.now() + timedelta(seconds=30)
    await host.advance(timedelta(seconds=30))
    assert host.console.written == ["after"]
    assert [attempt for _, attempt in flaky.keys] == [1, 2, 3]
    assert len({key for key, _ in flaky.keys}) == 1


async def test_when_retries_are_used_up_the_fault_goes_its_usual_way() -> None:
    flaky = Flaky(failures=9)
    host, instance = await run(retried(attempts=2, delay=1), activities=[flaky.activity()])
    await host.advance(timedelta(minutes=1))
    assert (instance.sub_status, len(flaky.keys)) == ("Faulted", 2)


async def test_an_operator_retries_the_failed_activity_and_the_instance_goes_on() -> None:
    flaky = Flaky(failures=1)
    root = sequence({"id": "flaky", "type": "Test.Flaky"}, write("after"))
    host, instance = await run(root, activities=[flaky.activity()])
    assert instance.sub_status == "Faulted"
    await host.retry(instance, instance.incidents[0])
    assert (host.console.written, instance.sub_status, instance.incidents) == (["after"], "Finished", [])
    assert len({key for key, _ in flaky.keys}) == 1


async def test_a_retry_with_edited_input_uses_that_input() -> None:
    @activity(type="Test.Halve")
    def halve(number: int) -> float:
        return 10 / number

    root = sequence({"id": "halve", "type": "Test.Halve", "number": literal(0)}, write("after"))
    host, instance = await run(root, activities=[halve])
    assert "division" in instance.incidents[0].message
    await host.retry(instance, instance.incidents[0], Number=5)
    assert instance.sub_status == "Finished"


async def test_a_skipped_activity_counts_as_completed_with_the_given_outcome() -> None:
    chart = flowchart(fault(), write("yes"), write("no"), connections=["fault:Approved>yes", "fault>no"])
    host, instance = await run(chart)
    await host.skip(instance, instance.incidents[0], "Approved")
    assert (host.console.written, instance.sub_status) == (["yes"], "Finished")


async def test_siblings_of_a_faulted_activity_still_get_their_turn_in_the_burst() -> None:
    root = {"id": "p", "type": "Elsa.Parallel", "activities": [fault(), write("sibling")]}
    host, instance = await run(root)
    assert (host.console.written, instance.sub_status) == (["sibling"], "Faulted")


async def test_what_goes_wrong_behind_a_skipped_activity_is_an_incident_and_not_a_crash() -> None:
    # From `fault` back to `b`, which is not on every way from the start to `fault`.
    chart = flowchart(
        write("a"),
        write("b"),
        write("c"),
        fault(),
        connections=["a>b", "a>c", "b>fault", "c>fault", "fault:Again>b"],
    )
    host, instance = await run(chart)
    await host.skip(instance, instance.incidents[0], "Again")
    assert instance.sub_status == "Faulted"
    assert instance.incidents[0].message.startswith("Invalid backward connection")
