"""Drawn state machines: conditions, competing triggers, and states nobody can leave."""

from typing import Any

from holdfast.testing import Host
from tests.documents import document, event, variable, write


def machine(condition: str | None = None) -> dict[str, Any]:
    guarded = {"typeName": "Boolean", "expression": {"type": "JavaScript", "value": condition}}
    return {
        "id": "machine",
        "type": "Elsa.StateMachine",
        "initialState": "open",
        "states": [
            {"name": "open", "entry": write("enter open"), "exit": write("leave open")},
            {"name": "closed", "entry": write("enter closed")},
        ],
        "transitions": [
            {
                "name": "close",
                "from": "open",
                "to": "closed",
                "trigger": event("close"),
                "condition": guarded if condition else None,
                "action": write("closing"),
            },
            {"name": "lost", "from": "open", "to": "nowhere", "trigger": event("lose")},
            {"name": "again", "from": "open", "to": "open", "trigger": event("again")},
        ],
    }


async def start(root: dict[str, Any]) -> tuple[Host, Any]:
    host = Host()
    await host.load(document(root, variables=[variable("Ready", "Boolean", "False")]))
    return host, await host.run("test")


async def test_a_transition_runs_its_action_then_leaves_then_enters() -> None:
    host, instance = await start(machine())
    await host.publish_event("close")
    assert host.console.written == ["enter open", "closing", "leave open", "enter closed"]
    assert (instance.sub_status, instance.activity_status("again")) == ("Finished", "Canceled")


async def test_a_condition_that_is_false_arms_the_trigger_again_and_leaves_the_others_alone() -> None:
    host, instance = await start(machine("getReady()"))
    await host.publish_event("close")
    assert host.console.written == ["enter open"]
    assert sorted(b.activity_id for b in instance.bookmarks) == ["again", "close"]


async def test_a_transition_to_a_state_that_does_not_exist_is_not_armed() -> None:
    _, instance = await start(machine())
    assert "lose" not in [b.activity_id for b in instance.bookmarks]


async def test_a_state_may_be_entered_again() -> None:
    host, instance = await start(machine())
    await host.publish_event("again")
    await host.publish_event("again")
    assert host.console.written == ["enter open", "leave open", "enter open", "leave open", "enter open"]
    assert instance.sub_status == "Suspended"


async def test_an_unknown_initial_state_completes_at_once() -> None:
    host, instance = await start({**machine(), "initialState": "elsewhere"})
    assert (host.console.written, instance.sub_status) == ([], "Finished")


async def test_a_machine_goes_on_after_a_wait_in_the_state_it_was_in() -> None:
    host, instance = await start(
        {"id": "s", "type": "Elsa.Sequence", "activities": [machine(), write("after")]}
    )
    assert instance.state.frames[-1].node != ""
    await host.publish_event("close")
    assert host.console.written[-1] == "after"


async def test_a_trigger_that_fires_for_a_state_left_behind_changes_nothing() -> None:
    delayed = machine()
    delayed["states"][0]["exit"] = event("may leave")
    host, _ = await start(delayed)
    await host.publish_event("close")
    await host.publish_event("again")
    await host.publish_event("may leave")
    assert host.console.written == ["enter open", "closing", "enter closed"]
