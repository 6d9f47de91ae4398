"""`holdfast instances`, `deadletters` and `nodes`: what operators see of a database, and what they do."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast as Application
from holdfast.commit import Commit, DeadLetter, Envelope
from holdfast.store import InstanceFilter
from tests.cli.conftest import Holdfast, fault, write_line
from tests.documents import document, event, literal, sequence

Fill = Callable[[Callable[[Application], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_DATABASE", raising=False)


WAITS = document(sequence(event("paid"), write_line("thanks")), definitionId="waits", id="waits-1")
FAILS = document(sequence(fault("No money", code="poor")), definitionId="fails", id="fails-1")
SLEEPS = document(
    sequence({"id": "nap", "type": "Elsa.Delay", "timeSpan": literal("01:00:00")}),
    definitionId="sleeps",
    id="sleeps-1",
)


@pytest.fixture
def fill() -> Fill:
    """Let an application work in the database that commands look at by default."""

    def fill(work: Callable[[Application], Coroutine[Any, Any, Any]]) -> Any:
        async def run() -> Any:
            async with Application(definitions=[WAITS, FAILS, SLEEPS]) as application:
                return await work(application)

        return asyncio.run(run())

    return fill


async def start_all(application: Application) -> None:
    await application.run("waits", instance_id="w1", correlation_id="order-1", name="First")
    await application.run("fails", instance_id="f1")
    await application.run("sleeps", instance_id="s1")


def decoded(result: Any) -> Any:
    assert result.exit_code == 0, result.output
    return msgspec.json.decode(result.stdout)


# --- instances ------------------------------------------------------------------------------------------


def test_a_list_says_what_each_instance_waits_for(holdfast: Holdfast, fill: Fill) -> None:
    fill(start_all)
    result = holdfast("instances")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["ID", "DEFINITION", "VERSION", "STATUS", "AGE", "WAITING", "FOR"]
    by_id = {line.split()[0]: line for line in lines[1:4]}
    assert by_id["w1"].endswith('the event "paid"')
    assert by_id["w1"].split()[1:4] == ["waits", "1", "Suspended"]
    assert by_id["f1"].split()[1:4] == ["fails", "1", "Faulted"]
    assert "(in 60 min)" in by_id["s1"]
    assert lines[-1] == "3 instances"


def test_an_empty_list_says_so(holdfast: Holdfast) -> None:
    holdfast("migrate")
    assert holdfast("instances").stdout == "No instances.\n"


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--definition", "waits", "--definition", "sleeps"], {"w1", "s1"}),
        (["--status", "running"], {"w1", "s1"}),
        (["--sub-status", "Faulted"], {"f1"}),
        (["--correlation", "order-1"], {"w1"}),
        (["--search", "firs"], {"w1"}),
        (["--parent", "w1"], set[str]()),
        (["--tenant", "acme"], set[str]()),
    ],
)
def test_a_list_is_narrowed_by_filters(
    holdfast: Holdfast, fill: Fill, options: list[str], ids: set[str]
) -> None:
    fill(start_all)
    found = decoded(holdfast("instances", "--json", *options))
    assert {one["id"] for one in found["instances"]} == ids
    assert found["total"] == len(ids)


def test_a_page_says_how_many_there_are_in_all(holdfast: Holdfast, fill: Fill) -> None:
    fill(start_all)
    assert holdfast("instances", "--limit", "2").stdout.splitlines()[-1] == "2 of 3; --limit shows more."


def test_one_instance_is_shown_with_its_wait_and_the_end_of_its_journal(
    holdfast: Holdfast, fill: Fill
) -> None:
    fill(start_all)
    output = holdfast("instances", "show", "w1", "--journal", "2").stdout
    assert output.startswith("w1  waits · version 1\nSuspended for ")
    assert "  correlation  order-1\n  name         First\n" in output
    assert 'paid, for the event "paid"  (bookmark ' in output
    assert "Journal  the last 2 of 4" in output
    assert output.splitlines()[-1].endswith("paid  Suspended")


def test_an_incident_is_shown_with_its_place_and_its_code(holdfast: Holdfast, fill: Fill) -> None:
    fill(start_all)
    assert "Boom, execution 3: No money [poor]" in holdfast("instances", "show", "f1").stdout
    found = decoded(holdfast("instances", "show", "f1", "--json"))
    assert found["subStatus"] == "Faulted"
    assert [i["message"] for i in found["incidents"]] == ["No money"]
    assert found["journal"][-1]["event"] in ("Faulted", "Completed", "Canceled")


def test_an_instance_that_is_not_there_is_one_line(holdfast: Holdfast, fill: Fill) -> None:
    fill(start_all)
    for command in ("show", "cancel", "delete", "retry"):
        result = holdfast("instances", command, "nobody")
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1), command
        assert "nobody" in result.stderr


def test_what_is_told_is_durable_and_done_by_the_next_worker(holdfast: Holdfast, fill: Fill) -> None:
    fill(start_all)
    cancelled = holdfast("instances", "cancel", "w1", "--reason", "too late")
    assert cancelled.stdout == "✓ 1 instance told to cancel.\n"
    assert "No worker is running" in cancelled.stderr
    assert decoded(holdfast("instances", "delete", "s1", "--json")) == {
        "told": "delete",
        "ids": ["s1"],
        "hasWorker": False,
    }

    async def work(application: Application) -> None:
        assert (await application.result("w1", timeout=10)).sub_status == "Cancelled"
        async with asyncio.timeout(10):
            while (await application.instances(InstanceFilter(tenant="", ids=("s1",)))).total:
                await asyncio.sleep(0.01)

    fill(work)


def test_a_retry_without_an_execution_is_for_every_incident(holdfast: Holdfast, fill: Fill) -> None:
    fill(start_all)
    assert holdfast("instances", "retry", "f1").exit_code == 0

    async def look(application: Application) -> int:
        async with asyncio.timeout(10):
            while (found := await application.instance("f1")).revision < 2:
                await asyncio.sleep(0.01)
        return found.revision

    assert fill(look) >= 2
    refused = holdfast("instances", "retry", "w1")
    assert (refused.exit_code, "has no incidents" in refused.stderr) == (1, True)


# --- dead letters ---------------------------------------------------------------------------------------


async def bury(application: Application) -> None:
    await start_all(application)
    store = application.store
    [loaded] = await store.load([("", "w1")])
    envelope = Envelope(
        tenant="", instance_id="w1", shard=loaded.shard, kind="resume", payload=b'{"bookmark_id":"b9"}'
    )
    now = application.clock.now() - timedelta(minutes=3)
    letter = DeadLetter(id="l1", envelope=envelope, error="It broke.", attempts=8, deaths=0, at=now)
    await store.commit([Commit(turn="t", tenant="", instance_id="w1", dead_letters=(letter,))])


def test_dead_letters_are_listed_and_shown(holdfast: Holdfast, fill: Fill) -> None:
    fill(bury)
    lines = holdfast("deadletters").stdout.splitlines()
    assert lines[1].split() == ["l1", "w1", "resume", "3", "min", "ago", "It", "broke."]
    assert lines[-1].startswith("1 dead letter.")
    assert '"bookmark_id": "b9"' in holdfast("deadletters", "show", "l1").stdout
    found = decoded(holdfast("deadletters", "--json", "--instance", "w1"))
    assert found["deadLetters"][0]["payload"] == {"bookmark_id": "b9"}
    assert decoded(holdfast("deadletters", "--json", "--instance", "f1"))["total"] == 0


def test_a_dead_letter_is_replayed_with_other_words_or_discarded(holdfast: Holdfast, fill: Fill) -> None:
    fill(bury)
    bookmark = decoded(holdfast("instances", "show", "w1", "--json"))["bookmarks"][0]["id"]
    payload = msgspec.json.encode({"bookmark_id": bookmark}).decode()
    replayed = holdfast("deadletters", "replay", "l1", "--payload", payload)
    assert replayed.stdout == "✓ 1 dead letter replayed.\n"
    assert holdfast("deadletters").stdout == "No dead letters.\n"
    gone = holdfast("deadletters", "discard", "l1")
    assert (gone.exit_code, "[deadletter.not_found]" in gone.stderr) == (2, True)

    async def work(application: Application) -> None:
        assert (await application.result("w1", timeout=10)).sub_status == "Finished"

    fill(work)


def test_a_payload_that_is_no_json_is_refused_before_anything_happens(holdfast: Holdfast, fill: Fill) -> None:
    fill(bury)
    result = holdfast("deadletters", "replay", "l1", "--payload", "{")
    assert result.exit_code == 2
    assert decoded(holdfast("deadletters", "--json"))["total"] == 1
    assert holdfast("deadletters", "discard", "l1").stdout == "✓ 1 dead letter discarded.\n"


# --- nodes ----------------------------------------------------------------------------------------------


def test_nodes_are_listed_with_their_shards_and_roles(holdfast: Holdfast, fill: Fill) -> None:
    assert "No living nodes" in (holdfast("migrate") and holdfast("nodes").stdout)

    async def look(application: Application) -> tuple[str, Any, Any]:
        async with asyncio.timeout(10):
            while len(application.node.reader.shards) < 64:
                await asyncio.sleep(0.01)
        table = await asyncio.to_thread(holdfast, "nodes")
        found = await asyncio.to_thread(holdfast, "nodes", "--json")
        return application.node.id, table.stdout, decoded(found)

    node_id, table, found = fill(look)
    row = table.splitlines()[1].split()
    assert (row[0], row[3], row[-1]) == (node_id, "64", "housekeeping")
    assert table.splitlines()[-1] == "1 node, 64 shards"
    assert (found["nodes"][0]["roles"], found["unowned"]) == (["housekeeping"], [])
    assert found["nodes"][0]["leases"]["shard-0"] >= 1


# --- databases that cannot be looked at -------------------------------------------------------------------

COMMANDS = [
    ["instances"],
    ["instances", "show", "i1"],
    ["instances", "cancel", "i1"],
    ["deadletters"],
    ["nodes"],
    ["doctor"],
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("address", "complaint", "code"),
    [
        ("nonsense", "is no URL", 2),
        ("sqlite:///nowhere.db", "There is no database nowhere.db. `holdfast worker` makes one", 2),
        ("postgresql://me:secret@127.0.0.1:1/x", "cannot be reached", 1),
    ],
)
def test_a_wrong_address_is_one_line(
    holdfast: Holdfast, command: list[str], address: str, complaint: str, code: int
) -> None:
    result = holdfast(*command, "--database", address)
    assert (result.exit_code, result.stdout) == (code, "")
    assert complaint in result.stderr
    assert "secret" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_a_database_with_old_tables_is_sent_to_be_migrated(
    holdfast: Holdfast, tmp_path: Path, command: list[str]
) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db")) as database:
        database.execute("create table holdfast_version (version_num varchar(32) not null)")
        database.execute("insert into holdfast_version values ('0001')")
        database.commit()
    result = holdfast(*command, "--database", "sqlite:///old.db")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Run `holdfast migrate`" in result.stderr
    assert "[database.not_migrated]" in result.stderr


def test_the_environment_names_a_database_and_an_option_wins(
    holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DATABASE", "sqlite:///from-environment.db")
    assert "from-environment.db" in holdfast("nodes").stderr
    assert "from-option.db" in holdfast("nodes", "--database", "sqlite:///from-option.db").stderr
    before = holdfast("instances", "--database", "sqlite:///before.db", "show", "i1")
    assert "before.db" in before.stderr
