"""`holdfast run`: what people see, and how it ends."""

from pathlib import Path

import pytest

from tests.cli.conftest import EXAMPLES, Holdfast, Save, fault, script, write_line


def test_a_workflow_is_told_line_by_line_and_what_it_writes_is_set_apart(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "hello.json", "--input", "name=Ada")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "▶ Hello  hello · version 1"
    assert lines[1].split() == ["●", "Steps", "Sequence"]
    assert lines[2].split() == ["●", "Was", "a", "name", "given?", "If", "condition", "true"]
    assert lines[3].lstrip().startswith("✓ Take the name")
    assert lines[3].endswith('Who = "Ada"')
    assert lines[5].strip() == "│ Hello, Ada!"
    assert lines[-1].split(maxsplit=1) == ["output", 'greeting = "Hello, Ada!"']
    assert "✓ Finished after" in result.stdout


def test_lines_are_indented_by_nesting_and_their_columns_align(holdfast: Holdfast) -> None:
    lines = holdfast("run", EXAMPLES / "hello.json").stdout.splitlines()
    assert [len(line) - len(line.lstrip()) for line in lines[1:4]] == [2, 4, 6]
    places = {
        line.index(kind) for line, kind in zip(lines[1:4], ("Sequence", "If ", "WriteLine"), strict=True)
    }
    assert len(places) == 1


def test_the_outcome_of_a_decision_is_told(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "approval.json", "--input", "amount=12")
    assert "→ False" in result.stdout
    assert "12 will be paid." in result.stdout


def test_a_workflow_that_waits_says_where_for_what_and_how_to_go_on(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "approval.json", "--input", "amount=2000")
    assert result.exit_code == 0
    assert '⏸ Wait for the decision  Event                  waits for the event "decided"' in result.stdout
    assert "⏸ Suspended after" in result.stdout
    assert 'waits at  Wait for the decision, for the event "decided"' in result.stdout
    assert result.stdout.endswith("To go on, add --event decided.\n")


def test_an_event_takes_it_past_its_wait(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "approval.json", "-i", "amount=2000", "--event", "decided=false")
    assert '▶ Event "decided"' in result.stdout
    assert "│ Not this time." in result.stdout
    assert "approved = false" in result.stdout


def test_an_event_that_nobody_waited_for_is_mentioned(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "hello.json", "--event", "nonsense")
    assert result.exit_code == 0
    assert 'event "nonsense": nobody waited for it' in result.stdout


def test_a_timer_stops_the_run_unless_it_is_sat_out(holdfast: Holdfast, save: Save) -> None:
    delay = {"id": "nap", "name": "Nap", "type": "Elsa.Delay", "timeSpan": "00:00:00.05"}
    file = save(delay, write_line("awake"))
    stopped = holdfast("run", file)
    assert stopped.exit_code == 0
    assert "To go on, add --wait." in stopped.stdout
    assert "awake" not in stopped.stdout
    waited = holdfast("run", file, "--wait")
    assert "│ awake" in waited.stdout
    assert "✓ Finished after" in waited.stdout


def test_a_fault_ends_with_1_and_its_reason_is_the_last_line_on_stderr(
    holdfast: Holdfast, save: Save
) -> None:
    result = holdfast("run", save(fault("The card was declined.", "payment.declined")))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "Error: Boom: The card was declined.  [payment.declined]"
    assert "✗ Boom" in result.stdout
    assert "The card was declined." in result.stdout
    assert "✗ Faulted after" in result.stdout
    assert "Traceback" not in result.output


def test_a_fault_that_is_handled_is_shown_and_does_not_fail_the_run(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "order-saga.json")
    assert result.exit_code == 0
    assert "✗ Nowhere to ship to" in result.stdout
    assert "│ Refunded, because: The order has no address." in result.stdout
    assert "→ Compensated" in result.stdout


def test_an_activity_that_faults_and_goes_on_over_its_error_path_says_so(
    holdfast: Holdfast, tmp_path: Path
) -> None:
    file = tmp_path / "chart.json"
    file.write_text(
        """{"definitionId": "chart", "root": {"type": "Elsa.Flowchart",
            "activities": [
                {"id": "boom", "type": "Elsa.Fault", "message": "no"},
                {"id": "mend", "type": "Elsa.WriteLine", "text": "mended"}],
            "connections": [
                {"source": {"activity": "boom", "port": "Error"}, "target": {"activity": "mend"}}]}}"""
    )
    result = holdfast("run", file)
    assert result.exit_code == 0
    assert "↷ boom" in result.stdout
    assert "goes on → Error" in result.stdout


def test_values_are_json_where_they_can_be_and_a_declared_type_decides(
    holdfast: Holdfast, save: Save
) -> None:
    said = script(
        "toJson([getInput('count'), getInput('code'), getInput('free'), getInput('text')])", "String"
    )
    file = save(
        write_line(said), inputs=[{"name": "count", "type": "Int32"}, {"name": "code", "type": "String"}]
    )
    result = holdfast(
        "run", file, "-q", "-i", "count=7", "-i", "code=007", "-i", "free=[1]", "-i", "text=plain words"
    )
    assert result.stdout == '[7,"007",[1],"plain words"]\n'


def test_a_value_that_does_not_fit_its_declared_type_is_refused(holdfast: Holdfast, save: Save) -> None:
    result = holdfast("run", save(inputs=[{"name": "count", "type": "Int32"}]), "--input", "count=many")
    assert result.exit_code == 2
    assert "--input count: 'many' (str) cannot become Int32" in result.stderr


def test_an_input_the_workflow_does_not_declare_is_passed_on_with_a_warning(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "hello.json", "--input", "nmae=Ada")
    assert result.exit_code == 0
    assert "Warning: the workflow declares no input 'nmae', only name" in result.stderr


def test_all_inputs_can_be_given_as_one_object(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "hello.json", "--quiet", "--input-json", '{"name": "Grace"}')
    assert result.stdout == "Hello, Grace!\n"


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_an_input_object_that_is_none_is_refused(holdfast: Holdfast, text: str) -> None:
    result = holdfast("run", EXAMPLES / "hello.json", "--input-json", text)
    assert result.exit_code == 2
    assert "--input-json" in result.stderr


def test_a_variable_can_begin_with_another_value(holdfast: Holdfast, save: Save) -> None:
    file = save(
        write_line(script("`${getLeft()}`", "String")),
        variables=[{"id": "left", "name": "Left", "typeName": "Int32", "value": "3"}],
    )
    assert holdfast("run", file, "-q", "--variable", "left=5").stdout == "5\n"
    unknown = holdfast("run", file, "--variable", "right=5")
    assert unknown.exit_code == 2
    assert "no variable 'right'. Its variables: Left" in unknown.stderr


def test_the_instance_can_be_given_a_name_and_a_correlation_id(holdfast: Holdfast, save: Save) -> None:
    file = save(write_line(script("`${getWorkflowInstanceName()} ${getCorrelationId()}`", "String")))
    result = holdfast("run", file, "-q", "--name", "mine", "--correlation-id", "order-7")
    assert result.stdout == "mine order-7\n"


def test_quiet_prints_what_the_workflow_writes_and_nothing_else(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "hello.json", "--quiet", "--input", "name=Ada")
    assert (result.stdout, result.stderr) == ("Hello, Ada!\n", "")


def test_a_workflow_reads_what_is_typed(holdfast: Holdfast, save: Save) -> None:
    file = save({"id": "r", "type": "Elsa.ReadLine"}, write_line(script("`Hi ${getLastResult()}`", "String")))
    assert holdfast("run", file, "-q", input="Ada\n").stdout == "Hi Ada\n"


def test_workflows_beside_it_are_found_in_files_and_folders(holdfast: Holdfast) -> None:
    for beside in (EXAMPLES / "child.json", EXAMPLES):
        result = holdfast("run", EXAMPLES / "parent.json", "--with", beside, "--input", "net=40")
        assert result.exit_code == 0
        assert "│ To pay: 50" in result.stdout


def test_without_the_workflow_it_uses_it_is_refused(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "parent.json")
    assert result.exit_code == 2
    assert "activity.unknown" in result.stderr


def test_children_are_told_with_who_started_them(holdfast: Holdfast, save: Save) -> None:
    child = save(write_line("I am the child"), name="child")
    start = {"id": "start", "type": "Elsa.DispatchWorkflow", "workflowDefinitionId": "child"}
    inline = {"id": "inline", "type": "Elsa.ExecuteWorkflow", "workflowDefinitionId": "child"}
    result = holdfast("run", save(inline, start, name="parent"), "--with", child)
    assert result.exit_code == 0
    assert "    ▶ child  child · version 1\n" in result.stdout
    assert "▶ child  child · version 1 · started by parent\n" in result.stdout
    assert result.stdout.count("│ I am the child") == 2


def test_a_python_file_brings_its_workflow_and_its_activities(holdfast: Holdfast, tmp_path: Path) -> None:
    file = tmp_path / "orders.py"
    file.write_text(
        "from holdfast import activity, load_definition\n"
        "@activity(type='Own.Double')\n"
        "def double(number: int) -> int:\n"
        "    return number * 2\n"
        "class Builder:\n"
        "    def build(self):\n"
        "        return load_definition({'root': {'type': 'Own.Double', 'number': 21}})\n"
        "workflow = Builder()\n"
    )
    result = holdfast("run", file)
    assert result.exit_code == 0
    assert result.stdout.startswith("▶ orders")
    assert "number 21  result = 42" in result.stdout


def test_activities_come_from_a_module_by_name(
    holdfast: Holdfast, save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_activities_for_a_test.py").write_text(
        "from holdfast import activity\n@activity(type='Own.Nothing')\ndef nothing() -> None: ...\n"
    )
    monkeypatch.chdir(tmp_path)
    file = save({"id": "n", "type": "Own.Nothing"})
    assert holdfast("run", file).exit_code == 2
    assert holdfast("run", file, "--activities", "own_activities_for_a_test").exit_code == 0


def test_what_a_hostile_definition_contains_cannot_move_the_cursor(holdfast: Holdfast, save: Save) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07"
    file = save({**write_line(evil), "name": evil}, name="evil", description=evil)
    result = holdfast("run", file)
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    assert "\x07" not in result.output


def test_a_long_text_is_shown_whole_but_a_long_input_is_shortened(holdfast: Holdfast, save: Save) -> None:
    variable = {"id": "v", "name": "V", "typeName": "String"}
    file = save(
        {"id": "set", "type": "Elsa.SetVariable", "variable": variable, "value": "x" * 500},
        write_line("y" * 500),
        variables=[variable],
    )
    output = holdfast("run", file).stdout
    assert "│ " + "y" * 500 in output
    assert "x" * 100 not in output
    assert "…" in output


def test_an_activity_that_is_tried_again_is_told_attempt_by_attempt(
    holdfast: Holdfast, tmp_path: Path
) -> None:
    file = tmp_path / "flaky.py"
    file.write_text(
        "from holdfast import ActivityContext, activity, load_definition\n"
        "@activity(type='Own.Flaky')\n"
        "def flaky(*, context: ActivityContext) -> str:\n"
        "    if context.attempt < 2:\n"
        "        raise RuntimeError('not yet')\n"
        "    return 'now'\n"
        "retry = {'retryPolicy': {'attempts': 2, 'delay': 0.01}}\n"
        "root = {'id': 'try', 'type': 'Own.Flaky', 'customProperties': retry}\n"
        "workflow = load_definition({'root': root})\n"
    )
    result = holdfast("run", file, "--wait")
    assert result.exit_code == 0
    told = [line.split()[0] for line in result.stdout.splitlines() if " try " in line]
    assert told == ["✗", "⏸", "✓"]
    assert "waits for another attempt at" in result.stdout
