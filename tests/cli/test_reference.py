"""`holdfast activities`, `mermaid`, `completion`, and the help: what people look things up in."""

from pathlib import Path

import msgspec
import pytest

from holdfast import __version__
from tests.cli.conftest import EXAMPLES, Holdfast


def test_activity_types_are_listed_by_category(holdfast: Holdfast) -> None:
    output = holdfast("activities").stdout
    assert "Console\n  Elsa.ReadLine" in output
    assert "Holdfast.Saga" in output
    assert "Elsa.Workflow " not in output  # nobody places it by hand


@pytest.mark.parametrize("name", ["Elsa.Delay", "delay", "ELSA.DELAY"])
def test_one_activity_type_is_shown_with_inputs_defaults_and_outcomes(holdfast: Holdfast, name: str) -> None:
    output = holdfast("activities", name).stdout
    assert output.startswith("Elsa.Delay  version 1 · Scheduling · Action\n")
    assert 'timeSpan  TimeSpan  How long to wait. Default "00:01:00".' in output
    assert output.endswith("Outcomes\n  Done\n")


def test_an_unknown_activity_type_comes_with_a_guess(holdfast: Holdfast) -> None:
    result = holdfast("activities", "WriteLin")
    assert result.exit_code == 2
    assert "Did you mean Elsa.WriteLine" in result.stderr


def test_activity_types_come_as_json_too(holdfast: Holdfast) -> None:
    everything = msgspec.json.decode(holdfast("activities", "--json").stdout)
    assert {"Elsa.WriteLine", "Holdfast.Try"} <= {entry["type"] for entry in everything}
    one = msgspec.json.decode(holdfast("activities", "--json", "WriteLine").stdout)
    assert one["inputs"][0]["name"] == "text"


def test_activities_of_your_own_are_listed_with_the_others(holdfast: Holdfast) -> None:
    output = holdfast("activities", "--activities", EXAMPLES / "custom_activity.py").stdout
    assert "Shop.Price" in output


def test_a_diagram_goes_to_the_screen_or_to_a_file(holdfast: Holdfast, tmp_path: Path) -> None:
    shown = holdfast("mermaid", EXAMPLES / "approval.json").stdout
    assert shown.startswith("flowchart")
    out = tmp_path / "approval.mmd"
    result = holdfast("mermaid", EXAMPLES / "approval.json", "-o", out)
    assert result.stdout == ""
    assert out.read_text() == shown


def test_a_diagram_that_cannot_be_written_is_one_line(holdfast: Holdfast, tmp_path: Path) -> None:
    result = holdfast("mermaid", EXAMPLES / "approval.json", "-o", tmp_path / "no" / "such" / "folder.mmd")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_says_how_to_install_it(holdfast: Holdfast, shell: str) -> None:
    result = holdfast("completion", shell)
    assert result.exit_code == 0
    assert "_HOLDFAST_COMPLETE" in result.stdout
    assert f"holdfast completion {shell} >" in result.stdout.splitlines()[-1]


def test_the_shell_in_use_is_taken_when_none_is_named(holdfast: Holdfast) -> None:
    assert "fish_source" not in holdfast("completion", env={"SHELL": "/bin/zsh"}).stdout
    assert "#compdef holdfast" in holdfast("completion", env={"SHELL": "/bin/zsh"}).stdout
    unknown = holdfast("completion", env={"SHELL": "/bin/tcsh"})
    assert unknown.exit_code == 2
    assert "bash, zsh, fish" in unknown.stderr


def test_the_version_is_told(holdfast: Holdfast) -> None:
    assert holdfast("--version").stdout == f"holdfast {__version__}\n"


def test_the_help_is_in_sections_and_is_what_one_gets_for_nothing(holdfast: Holdfast) -> None:
    output = holdfast("--help").stdout
    for section in ("Workflows:", "Operation:", "Reference:", "Set-up:"):
        assert section in output
    assert holdfast().stdout == output
    assert holdfast().exit_code == 0


def test_a_slip_in_a_command_is_answered_with_a_guess(holdfast: Holdfast) -> None:
    result = holdfast("rum")
    assert result.exit_code == 2
    assert "run" in result.stderr
