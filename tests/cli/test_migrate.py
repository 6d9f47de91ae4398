"""`holdfast migrate`: a database gets its tables, and whoever gave a wrong address is told so."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Holdfast

STEPS = ["0001 The first tables", "0002 Placements and counters"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lines_with(symbol: str) -> list[str]:
    return [f"{symbol} {step}" for step in STEPS]


def test_without_an_address_a_file_in_our_folder_gets_the_tables(holdfast: Holdfast, tmp_path: Path) -> None:
    result = holdfast("migrate")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        *lines_with("✓"),
        "sqlite:///.holdfast/holdfast.db is up to date: 2 migrations done.",
    ]
    with closing(sqlite3.connect(tmp_path / ".holdfast" / "holdfast.db")) as database:
        assert database.execute("select shard_count from settings").fetchall() == [(64,)]


def test_what_was_done_is_not_done_again(holdfast: Holdfast) -> None:
    holdfast("migrate")
    result = holdfast("migrate")
    assert result.exit_code == 0
    assert result.stdout == "sqlite:///.holdfast/holdfast.db is up to date.\n"


def test_a_dry_run_says_what_is_to_do_and_leaves_no_trace(holdfast: Holdfast, tmp_path: Path) -> None:
    result = holdfast("migrate", "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        *lines_with("●"),
        "2 migrations to do in sqlite:///.holdfast/holdfast.db. Nothing was changed.",
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_of_a_database_that_is_there_looks_into_it(holdfast: Holdfast, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'made.db'}"
    with closing(sqlite3.connect(tmp_path / "made.db")) as database:
        database.execute("create table holdfast_version (version_num varchar(32) not null)")
        database.execute("insert into holdfast_version values ('0001')")
        database.commit()
    result = holdfast("migrate", "--dry-run", "--database", address)
    assert result.stdout.splitlines()[:-1] == [f"● {STEPS[1]}"]
    holdfast("migrate")
    assert "is up to date" in holdfast("migrate", "--dry-run").stdout


def test_a_server_gets_the_tables_and_its_password_is_not_shown(
    holdfast: Holdfast, postgres_url: str
) -> None:
    result = holdfast("migrate", "--database", postgres_url)
    assert result.exit_code == 0
    assert "is up to date" in result.stdout
    assert "is up to date." in holdfast("migrate", "--dry-run", "--database", postgres_url).stdout


@pytest.mark.parametrize(
    ("address", "complaint", "code"),
    [
        ("nonsense", "is no URL", 2),
        ("postgresql://host:port/x", "is no URL", 2),
        ("oracle://host/x", "does not know the database 'oracle'", 2),
        ("sqlite://", "SQLite needs a file", 2),
        ("sqlite:///no/such/folder/x.db", "There is no folder no/such/folder", 2),
        ("sqlite:///words.db", "file is not a database", 2),
        ("postgresql://me:secret@127.0.0.1:1/x", "cannot be reached", 1),
        ("mysql://me:secret@127.0.0.1:1/x", "", 1),
    ],
)
def test_a_wrong_address_is_one_line(
    holdfast: Holdfast, tmp_path: Path, address: str, complaint: str, code: int
) -> None:
    (tmp_path / "words.db").write_text("These are words, and not a database at all. " * 50)
    result = holdfast("migrate", "--database", address)
    assert result.exit_code == code
    assert result.stdout == ""
    assert complaint in result.stderr
    assert "secret" not in result.stderr
    assert "unexpected" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_database_that_does_not_exist_is_one_line(holdfast: Holdfast, postgres_url: str) -> None:
    result = holdfast("migrate", "--database", postgres_url + "_not")
    assert result.exit_code == 2
    assert "does not exist  [database.refused]" in result.stderr


def test_a_database_of_a_newer_holdfast_is_left_alone(holdfast: Holdfast, tmp_path: Path) -> None:
    holdfast("migrate")
    with closing(sqlite3.connect(tmp_path / ".holdfast" / "holdfast.db")) as database:
        database.execute("update holdfast_version set version_num = '0099'")
        database.commit()
    for arguments in (["migrate"], ["migrate", "--dry-run"]):
        result = holdfast(*arguments)
        assert result.exit_code == 1
        assert "A newer Holdfast has migrated it" in result.stderr
        assert "[database.too_new]" in result.stderr


def test_where_our_folder_cannot_be_made_it_says_so(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / ".holdfast").write_text("")
    result = holdfast("migrate")
    assert result.exit_code == 2
    assert "There is no folder .holdfast" in result.stderr
