"""Files that are not what they should be: one clear line, and never a traceback."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import EXAMPLES, Holdfast


@pytest.mark.parametrize("command", ["run", "mermaid"])
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.json", b"", "not JSON"),
        ("words.json", b"hello", "not JSON"),
        ("utf16.json", '{"root": {}}'.encode("utf-16"), "not JSON"),
        ("latin.json", '{"name": "é"}'.encode("latin-1"), "not UTF-8"),
        ("half.json", b'{"root": {', "ends before"),
        ("deep.json", b"[" * 100_000, "deeper than 64"),
        ("list.json", b"[1, 2]", "JSON object"),
        ("shape.json", b'{"root": 5}', "$.root"),
        ("syntax.py", b"def f(:", "SyntaxError"),
        ("import.py", b"import there_is_no_such_module", "ModuleNotFoundError"),
        ("exit.py", b"raise SystemExit(7)", "SystemExit"),
        ("none.py", b"x = 1", "exactly one workflow, and it has none"),
        (
            "two.py",
            b"from holdfast import load_definition as l\na, b = l({}), l({})",
            "exactly one workflow, and it has 2: a, b",
        ),
    ],
)
def test_a_file_that_is_no_workflow_is_refused_with_the_reason(
    holdfast: Holdfast, tmp_path: Path, command: str, name: str, content: bytes, said: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    result = holdfast(command, file)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["run", "mermaid"])
def test_a_file_that_is_missing_or_a_folder_is_named(
    holdfast: Holdfast, tmp_path: Path, command: str
) -> None:
    missing = holdfast(command, tmp_path / "missing.json")
    assert missing.exit_code == 2
    assert f"Error: There is no file {tmp_path / 'missing.json'}.  [file.unusable]" in missing.stderr
    folder = holdfast(command, tmp_path)
    assert folder.exit_code == 2
    assert "is a folder" in folder.stderr


def test_a_file_that_may_not_be_read_is_named(holdfast: Holdfast, tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.touch(mode=0o000)
    holdfast("run", EXAMPLES / "hello.json")  # everything it imports may be out of reach in a moment
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)  # root may read every file; nobody may not
    try:
        result = holdfast("run", file)
    finally:
        os.seteuid(me)
    assert result.exit_code == 2
    assert "permission denied" in result.stderr


def test_a_file_without_end_is_not_read_to_its_end(holdfast: Holdfast) -> None:
    result = holdfast("run", "/dev/zero")
    assert result.exit_code == 2
    assert "that is no definition" in result.stderr


def test_a_module_without_activities_is_refused(holdfast: Holdfast, tmp_path: Path) -> None:
    empty = tmp_path / "nothing.py"
    empty.touch()
    for module in (empty, "there.is.no.such.module"):
        result = holdfast("run", EXAMPLES / "hello.json", "--activities", module)
        assert result.exit_code == 2
        assert "[file.unusable]" in result.stderr


def test_two_activities_of_one_type_are_refused_by_name(holdfast: Holdfast, tmp_path: Path) -> None:
    for name in ("one.py", "other.py"):
        (tmp_path / name).write_text(
            "from holdfast import activity\n@activity(type='Own.Same')\ndef same() -> None: ...\n"
        )
    more = ["--activities", tmp_path / "one.py", "--activities", tmp_path / "other.py"]
    result = holdfast("run", EXAMPLES / "hello.json", *more)
    assert result.exit_code == 1
    assert "Own.Same" in result.stderr
    assert "[activity.duplicate]" in result.stderr


def test_json_that_is_no_definition_is_skipped_in_a_folder_of_companions(
    holdfast: Holdfast, tmp_path: Path
) -> None:
    (tmp_path / "package.json").write_text('{"name": "studio", "version": "1.0"}')
    (tmp_path / "child.json").write_bytes((EXAMPLES / "child.json").read_bytes())
    assert holdfast("run", EXAMPLES / "parent.json", "--with", tmp_path).exit_code == 0
