"""`holdfast doctor`: what is wrong, what to do, and an exit code for whoever watches."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from holdfast import Holdfast as Application
from tests.cli.conftest import Holdfast
from tests.documents import document, event, sequence

WAITS = document(sequence(event("paid")), definitionId="waits", id="waits-1")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_DATABASE", raising=False)


async def wait_for_seven() -> None:
    async with Application(definitions=[WAITS]) as application:
        for number in range(7):
            await application.run("waits", instance_id=f"w{number}")


def test_where_all_is_well_it_says_so(holdfast: Holdfast) -> None:
    asyncio.run(wait_for_seven())
    result = holdfast("doctor")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "✓ Everything is as it should be.",
        "0 nodes at work, 0 messages waiting.",
    ]


def test_what_is_wrong_is_told_with_what_to_do_and_ends_with_1(holdfast: Holdfast, tmp_path: Path) -> None:
    asyncio.run(wait_for_seven())
    with closing(sqlite3.connect(tmp_path / ".holdfast" / "holdfast.db")) as database:
        database.execute("delete from bookmarks")
        database.commit()
    result = holdfast("doctor")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "✗ Instances that wait for something, but the rows that could wake them are gone: 7  waits.rows_lost",
        "  w0, w1, w2, w3, w4 and 2 more",
        "  Resume them by their bookmarks (`holdfast instances show ID`), or cancel them.",
        "1 finding. 0 nodes at work, 0 messages waiting.",
    ]
    as_json = holdfast("doctor", "--json")
    assert as_json.exit_code == 1
    found = msgspec.json.decode(as_json.stdout)
    assert [(f["code"], len(f["about"])) for f in found["findings"]] == [("waits.rows_lost", 7)]
