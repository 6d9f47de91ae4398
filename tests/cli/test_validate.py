"""`holdfast validate`: all problems of all files, and an exit code for CI."""

from pathlib import Path

import msgspec

from tests.cli.conftest import EXAMPLES, Holdfast, Save, script, write_line


def test_every_problem_of_every_file_is_listed_with_place_and_code(
    holdfast: Holdfast, save: Save, tmp_path: Path
) -> None:
    good = save(write_line("fine"), name="good")
    bad = save({"id": "a", "type": "Own.Unknown"}, write_line(script("((", "String")), name="bad")
    words = tmp_path / "words.json"
    words.write_text("hello")
    result = holdfast("validate", good, bad, words, tmp_path / "missing.json")
    assert result.exit_code == 1
    assert f"✓ {good}" in result.stdout
    assert f"✗ {bad}\n  error $.root.activities[0].type  activity.unknown\n" in result.stdout
    assert "expression.invalid" in result.stdout
    assert "error $  json.invalid" in result.stdout
    assert "error $  file.unusable" in result.stdout
    assert result.stdout.endswith("4 files, 4 errors, 0 warnings\n")


def test_a_folder_means_all_its_json_files_and_they_may_use_each_other(holdfast: Holdfast) -> None:
    result = holdfast("validate", EXAMPLES)
    assert result.exit_code == 0
    count = len(list(EXAMPLES.glob("*.json")))
    assert result.stdout.endswith(f"{count} files, 0 errors, 0 warnings\n")


def test_an_empty_folder_is_refused(holdfast: Holdfast, tmp_path: Path) -> None:
    result = holdfast("validate", tmp_path)
    assert result.exit_code == 2
    assert "no *.json files" in result.stderr


def test_what_a_workflow_uses_can_be_given_beside_it(holdfast: Holdfast) -> None:
    assert holdfast("validate", EXAMPLES / "parent.json").exit_code == 1
    assert holdfast("validate", EXAMPLES / "parent.json", "--with", EXAMPLES / "child.json").exit_code == 0


def test_a_python_file_is_validated_with_its_own_activities(holdfast: Holdfast) -> None:
    assert holdfast("validate", EXAMPLES / "custom_activity.py").exit_code == 0


def test_the_problems_come_as_json_too(holdfast: Holdfast, save: Save) -> None:
    bad = save({"id": "a", "type": "Own.Unknown"})
    result = holdfast("validate", bad, "--json")
    document = msgspec.json.decode(result.stdout)
    assert result.exit_code == 1
    assert (document["errors"], document["warnings"]) == (1, 0)
    [file] = document["files"]
    [problem] = file["problems"]
    assert file["file"] == str(bad)
    assert problem["path"] == "$.root.activities[0].type"
    assert (problem["code"], problem["severity"]) == ("activity.unknown", "error")
    assert problem["activityId"] == "a"
