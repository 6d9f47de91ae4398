"""`holdfast machines`: what a module makes, how it looks, and what runs."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from examples.order_fulfilment import Order, Status, orders

from holdfast import Holdfast as Application
from tests.cli.conftest import EXAMPLES, Holdfast

ORDERS = EXAMPLES / "order_fulfilment.py"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_DATABASE", raising=False)


def test_the_machines_of_a_file_are_listed(holdfast: Holdfast) -> None:
    said = holdfast("machines", "list", ORDERS)
    assert said.exit_code == 0
    assert said.stdout.split() == ["orders", "Order", "PLACED", "BILLED", "PAID", "SHIPPED", "EXPIRED"]


def test_as_json_a_machine_says_where_its_functions_lead(holdfast: Holdfast) -> None:
    (machine,) = msgspec.json.decode(holdfast("machines", "list", ORDERS, "--json").stdout)["machines"]
    assert machine["start"] == "PLACED"
    assert {"name": "expire", "kind": "timeout", "status": "BILLED", "to": ["EXPIRED"]} in machine[
        "functions"
    ]


def test_a_machine_is_drawn(holdfast: Holdfast) -> None:
    said = holdfast("machines", "draw", ORDERS, "--direction", "TB")
    assert "direction TB" in said.stdout
    assert "s2 --> s3: receive (callback)" in said.stdout


def test_a_file_without_machines_is_named(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    said = holdfast("machines", "list", "empty.py")
    assert said.exit_code == 2
    assert "empty.py has no machines" in said.stderr


def test_runs_are_listed_and_shown_without_their_code(holdfast: Holdfast) -> None:
    async def work() -> str:
        async with Application(machines=[orders]) as application:
            runs = application.machine(orders)
            paused = await runs.trigger("order-1", Order("ada@example.org", 10))
            await runs.trigger("order-2", Order("bob@example.org", 10))
            await runs.reached(paused, Status.BILLED, within=10)
            await runs.pause(paused, "audit")
            await asyncio.sleep(0.2)
            return paused

    paused = asyncio.run(work())
    listed = msgspec.json.decode(holdfast("machines", "runs", "orders", "--json").stdout)
    assert [(run["foreignId"], run["status"], run["state"]) for run in listed["runs"]] == [
        ("order-2", "BILLED", "RUNNING"),
        ("order-1", "BILLED", "PAUSED"),
    ]
    assert "audit" in holdfast("machines", "runs", "orders", "--foreign-id", "order-1").stdout
    shown = holdfast("instances", "show", paused)
    assert shown.exit_code == 0, shown.output
    assert "bill" in shown.stdout
    assert "Paused" in shown.stdout
