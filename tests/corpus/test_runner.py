"""The runner of conformance scenarios: what passes, what fails, what is skipped, and how it is told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.testing import corpus_match
from holdfast.testing.corpus import HOSTS, main
from holdfast.testing.corpus_expectation import Expectation

RUN = {"op": "run", "definitionId": "greeting", "until": "idle"}
GREETED = {"lines": {"equals": ["Hello"]}}


def literal(value: Any) -> dict[str, Any]:
    return {"typeName": "Object", "expression": {"type": "Literal", "value": value}}


def definition(name: str, *activities: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {
        "id": f"{name}-1",
        "definitionId": name,
        "name": name,
        "version": 1,
        "isLatest": True,
        "isPublished": True,
        "root": {"id": "sequence", "type": "Elsa.Sequence", "activities": list(activities)},
        **members,
    }


HELLO = {"id": "hello", "type": "Elsa.WriteLine", "text": literal("Hello")}
PAUSE = {"id": "pause", "type": "Elsa.Delay", "timeSpan": literal("1.00:00:00")}
EVENT = {"id": "event", "type": "Elsa.Event", "eventName": literal("Paid")}
FAULT = {"id": "fault", "type": "Elsa.Fault", "message": literal("broken")}
GREETING = definition("greeting", HELLO)


class Corpus:
    """A tiny corpus in a temporary folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], host: str) -> None:
        self.folder = folder
        self._capsys = capsys
        self._host = host

    def add(self, scenario: str, *cases: Any, **members: Any) -> None:
        """A scenario with the greeting, and every other definition it is given, loaded by a provider."""
        loaded = members.pop("loaded", [GREETING])
        sources = [{"file": f"{d['definitionId']}.json", "load": "provider"} for d in loaded]
        self.write(scenario, {"schemaVersion": 1, "definitions": sources, "cases": list(cases), **members})
        for document in loaded:
            path = self.folder / scenario / f"{document['definitionId']}.json"
            path.write_text(json.dumps(document))

    def write(self, scenario: str, expected: Any) -> None:
        (self.folder / scenario).mkdir(exist_ok=True)
        text = expected if isinstance(expected, str) else json.dumps(expected)
        (self.folder / scenario / "expected.json").write_text(text)

    def run(self, *arguments: str) -> tuple[int, list[str]]:
        """On one host, whose name is left out of the lines: they say the same on each."""
        flag = "--local" if self._host == "local host" else "--durable"
        code = main([str(self.folder), flag, *arguments])
        written = self._capsys.readouterr().out
        assert f" on the {self._host}\n" in written
        return code, written.replace(f" on the {self._host}", "").splitlines()


@pytest.fixture(params=HOSTS)
def corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Corpus:
    return Corpus(tmp_path, capsys, request.param)


def case(*steps: Any, name: str = "only", **members: Any) -> dict[str, Any]:
    return {"name": name, "elsaTest": None, "steps": list(steps), **members}


# --- the outcome of a run -------------------------------------------------------------------------


def test_cases_that_keep_what_they_say_pass_and_are_counted(corpus: Corpus) -> None:
    corpus.add("one", case(RUN, expect=GREETED), case(RUN, derived={"status": "Finished"}))
    assert corpus.run() == (0, ["2 passed, 0 failed, 0 skipped"])


def test_a_difference_fails_and_names_scenario_case_key_and_both_values(corpus: Corpus) -> None:
    corpus.add("one", case(RUN, expect=GREETED), case(RUN, name="loud", derived={"status": "Running"}))
    code, lines = corpus.run()
    assert code == 1
    assert lines == [
        'FAIL one / loud: derived.status: expected "Running", found "Finished"',
        "1 passed, 1 failed, 0 skipped",
    ]


def test_a_case_with_several_differences_is_one_failed_case_with_a_line_for_each(corpus: Corpus) -> None:
    corpus.add("one", case({**RUN, "expect": {"status": "x"}}, expect={"status": "x", "subStatus": "x"}))
    code, lines = corpus.run()
    assert code == 1
    assert [line.split(":")[1].strip() for line in lines[:-1]] == [
        "steps[0] run expect.status",
        "expect.status",
        "expect.subStatus",
    ]
    assert lines[-1] == "0 passed, 1 failed, 0 skipped"


def test_long_values_are_cut_unless_everything_is_asked_for(corpus: Corpus) -> None:
    corpus.add("one", case(RUN, expect={"lines": {"equals": ["x" * 1000]}}))
    assert len(corpus.run()[1][0]) < 500
    assert "x" * 1000 in corpus.run("--verbose")[1][0]


def test_a_scenario_that_needs_what_the_host_has_not_is_skipped_by_name(corpus: Corpus) -> None:
    corpus.add("plain", case(RUN, expect=GREETED))
    corpus.add("web", case(RUN), case(RUN), requires=["javascript", "http"])
    assert corpus.run() == (0, ["SKIP web: needs http", "1 passed, 0 failed, 2 skipped"])


def test_a_run_that_executed_no_case_fails(corpus: Corpus) -> None:
    corpus.add("web", case(RUN), requires=["http"])
    corpus.add("empty")
    assert corpus.run() == (1, ["SKIP web: needs http", "0 passed, 0 failed, 1 skipped"])


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_a_folder_without_a_scenario_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").mkdir()
    assert main([str(tmp_path)]) == 2
    assert "holds no scenario" in capsys.readouterr().err


def test_only_the_named_scenarios_are_run(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b", "c"):
        corpus.add(name, case(RUN))
    assert corpus.run("--only", "a", "c") == (0, ["2 passed, 0 failed, 0 skipped"])
    assert main([str(corpus.folder), "--only", "d"]) == 2
    assert "no scenario named d" in capsys.readouterr().err


def test_cases_are_played_on_both_hosts_unless_one_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = Corpus(tmp_path, capsys, "")
    corpus.add("one", case(RUN, name="loud", expect={"status": "Running"}), case(RUN, expect=GREETED))
    corpus.add("web", case(RUN), requires=["http"])
    assert main([str(tmp_path)]) == 1
    difference = 'expect.status: expected "Running", found "Finished"'
    assert capsys.readouterr().out.splitlines() == [
        f"FAIL one / loud on the local host: {difference}",
        f"FAIL one / loud on the durable runtime: {difference}",
        "SKIP web: needs http",
        "1 passed, 1 failed, 1 skipped on the local host",
        "1 passed, 1 failed, 1 skipped on the durable runtime",
    ]
    main([str(tmp_path), "--durable"])
    assert "local host" not in capsys.readouterr().out


def test_it_is_a_command(corpus: Corpus) -> None:
    corpus.add("one", case(RUN, expect=GREETED))
    command = [sys.executable, "-m", "holdfast.testing.corpus", str(corpus.folder), "--local"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = "1 passed, 0 failed, 0 skipped on the local host\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")


# --- what is not understood -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (case(RUN, expect={"staus": "Finished"}), "staus"),
        (case(RUN, expect={"lines": {"equal": []}}), "equal"),
        (case(RUN, derived={"bookmarks": [{"hash": "x"}]}), "hash"),
        (case(RUN, expect={"lines": ["Hello"]}), "$.expect.lines"),
        (case(RUN, expect={"status": 1}), "$.expect.status"),
        (case({"op": "fly"}), "fly"),
        (case({**RUN, "speed": 1}), "speed"),
        (case({**RUN, "until": "later"}), "later"),
        (case({"op": "run", "until": "idle"}), "definitionId"),
        (case({**RUN, "expect": {"succeeded": True}}), "succeeded"),
        (case({"op": "publishEvent", "eventName": "x", "expect": {}}), "expect"),
        (case(RUN, options={"speed": 1}), "speed"),
        (case(RUN, options={"flowchartExecutionMode": "Fast"}), "Fast"),
        (case(RUN, expects={}), "expects"),
        ({"name": "only", "expect": {}}, "steps"),
    ],
)
def test_a_case_we_do_not_understand_fails_and_leaves_the_others_alone(
    corpus: Corpus, broken: dict[str, Any], told: str
) -> None:
    corpus.add("one", broken, case(RUN, name="sound", expect=GREETED))
    code, lines = corpus.run()
    assert code == 1
    assert lines[0].startswith("FAIL one / only: form: ")
    assert told in lines[0]
    assert lines[1:] == ["1 passed, 1 failed, 0 skipped"]


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ('{"schemaVersion": 1,\n "cases": [}', "line 2"),
        ("[]", "Expected `object`"),
        ({"schemaVersion": 2, "cases": []}, "schemaVersion"),
        ({"schemaVersion": 1, "cases": {}}, "$.cases"),
        ({"schemaVersion": 1, "cases": [], "surprise": 1}, "surprise"),
        ({"schemaVersion": 1, "cases": [], "requires": "http"}, "$.requires"),
        ({"schemaVersion": 1, "cases": [], "definitions": [{"file": "a.json", "load": "ftp"}]}, "ftp"),
        ({"schemaVersion": 1}, "cases"),
    ],
)
def test_a_scenario_we_do_not_understand_fails(corpus: Corpus, expected: Any, told: str) -> None:
    corpus.write("one", expected)
    code, lines = corpus.run()
    assert code == 1
    assert lines[0].startswith("FAIL one: expected.json: ")
    assert told in lines[0]
    assert lines[1:] == ["0 passed, 1 failed, 0 skipped"]


@pytest.mark.parametrize(
    ("text", "told"),
    [("{", "not JSON"), ("[]", "a definition is a JSON object"), (None, "No such file")],
)
def test_a_definition_that_cannot_be_loaded_fails_the_cases_with_the_reason(
    corpus: Corpus, text: str | None, told: str
) -> None:
    corpus.add("one", case(RUN), case(RUN, name="other"))
    file = corpus.folder / "one" / "greeting.json"
    file.unlink() if text is None else file.write_text(text)
    code, lines = corpus.run()
    assert code == 1
    assert [
        line.startswith("FAIL one / ") and "greeting.json" in line and told in line for line in lines
    ] == [
        True,
        True,
        False,
    ]
    assert lines[-1] == "0 passed, 2 failed, 0 skipped"


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([{"op": "resume", "bookmark": {"activityId": "x"}}], "there is no current instance"),
        ([RUN, {"op": "resume", "bookmark": {"activityId": "x"}}], "0 bookmarks match"),
        ([{**RUN, "definitionId": "nobody"}], "nobody"),
        ([{"op": "http", "method": "GET", "path": "/"}], "requires"),
        ([{"op": "publish", "file": "greeting.json"}], "was not imported"),
        ([{"op": "consumers", "definitionId": "nobody"}], "notFound"),
    ],
)
def test_a_step_that_cannot_be_done_fails_the_case(corpus: Corpus, steps: list[Any], told: str) -> None:
    corpus.add("one", case(*steps))
    code, lines = corpus.run()
    assert code == 1
    assert f"steps[{len(steps) - 1}] {steps[-1]['op']}" in lines[0]
    assert told in lines[0]


# --- what may be expected -------------------------------------------------------------------------

MIXED = definition(
    "mixed",
    {"id": "number", "type": "Elsa.SetVariable", "variable": {"id": "count"}, "value": literal(2)},
    {"id": "out", "type": "Elsa.SetOutput", "outputName": literal("Total"), "outputValue": literal(2)},
    HELLO | {"name": "Greet"},
    HELLO | {"id": "again", "text": literal("Goodbye")},
    EVENT,
    HELLO | {"id": "never"},
    variables=[
        {
            "id": "count",
            "name": "Count",
            "typeName": "Int32",
            "storageDriverTypeName": "Elsa.Workflows.WorkflowInstanceStorageDriver, Elsa.Workflows.Core",
        }
    ],
    outputs=[{"name": "Total", "type": "Int32"}],
)
STARTED = definition("started", EVENT | {"customProperties": {"canStartWorkflow": True}}, FAULT)
MIXED_RUN = {"op": "run", "definitionId": "mixed", "until": "idle", "name": "Mix", "correlationId": "c"}
PUBLISHED = {"op": "publishEvent", "eventName": "Paid", "correlationId": "nobody"}
BOOKMARK = {"activityId": "event", "name": "Elsa.Event", "payload": {"EventName": "Paid"}}


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        ("status", "Running", "Finished"),
        ("subStatus", "Suspended", "Finished"),
        ("lines", {"equals": ["Hello", "Goodbye"]}, {"equals": ["Goodbye", "Hello"]}),
        ("lines", {"unordered": ["Goodbye", "Hello"]}, {"unordered": ["Hello", "Hello"]}),
        ("lines", {"contains": ["Hello"]}, {"contains": ["Hello", "Hell"]}),
        ("lines", {"excludes": ["Hell"]}, {"excludes": ["Hello"]}),
        ("lines", {"containsAny": [["Hello", "x"], ["Goodbye"]]}, {"containsAny": [["Hello"], ["x", "y"]]}),
        ("lines", {"count": 2}, {"count": 1}),
        ("lines", {"counts": {"Hello": 1, "x": 0}}, {"counts": {"Hello": 2}}),
        ("lines", {"first": "Hello", "last": "Goodbye"}, {"first": "Goodbye"}),
        ("lines", {"last": "Goodbye"}, {"last": "Hello"}),
        ("lines", {"anyOf": [[], ["Hello", "Goodbye"]]}, {"anyOf": [[], ["Hello"]]}),
        ("outputs", {"Total": 2.0}, {"Total": "2"}),
        ("outputs", {}, {"Sum": 2}),
        ("variables", {"Count": 2}, {"Count": True}),
        ("variables", {}, {"Amount": None}),
        ("bookmarks", [BOOKMARK], [BOOKMARK, BOOKMARK]),
        ("bookmarks", [{}], []),
        ("bookmarks", [{"payload": {}}], [{"payload": {"eventName": "paid"}}]),
        ("incidents", [], [{}]),
        (
            "journal",
            [{"activityId": "hello", "eventName": "Completed", "count": 1}],
            [{"activityId": "never", "eventName": "Completed", "count": 1}],
        ),
        ("activities", {"hello": "Completed", "event": "Running"}, {"never": "Completed"}),
        ("notExecuted", ["never"], ["never", "hello"]),
        ("activityOutcomes", {"hello": ["Done"], "again": []}, {"hello": ["True"]}),
        ("activityOutcomes", {}, {"event": ["Done"]}),
        ("faultCounts", {"event": 0}, {"event": 1}),
        (
            "activityRecords",
            [{"activityId": "hello", "activityState": {"hasKey": "Text", "lacksKey": "text"}}],
            [{"activityId": "hello", "activityState": {"hasKey": "Name"}}],
        ),
        (
            "activityRecords",
            [{"activityName": "Greet"}],
            [{"activityName": "Greet", "activityState": {"lacksKey": "Text"}}],
        ),
        ("activityRecords", [], [{"activityId": "never"}]),
        ("activityRecords", [], [{"activityId": "hello", "outputs": {"hasKeys": ["Result"]}}]),
        ("instance", {"name": "Mix", "correlationId": "c", "version": 1}, {"name": "Max"}),
        ("instance", {}, {"correlationId": None}),
        ("instance", {}, {"version": 2}),
        (
            "instances",
            [{"definitionId": "mixed", "status": "Running", "count": 1}],
            [{"subStatus": "Finished"}],
        ),
        ("instances", [{"outputs": {"Total": 2}, "correlationId": "c"}], [{"outputs": {"Total": 3}}]),
        ("instances", [{"count": 2}], [{"count": 1}]),
        ("instances", [{"properties": {}}], [{"properties": {"ParentInstanceId": "$instanceId"}}]),
        ("childInstances", [{"definitionId": "mixed", "count": 0}], [{"definitionId": "mixed"}]),
        (
            "faultedInstances",
            {"definitionIds": ["started"], "count": 1},
            {"definitionIds": ["mixed", "started"], "count": 0},
        ),
        ("triggers", [BOOKMARK], []),
        ("triggers", {"equals": [{}], "minCount": 1}, {"minCount": 2}),
        (
            "definitions",
            [{"definitionId": "mixed", "number": 1, "activities": [{"id": "hello", "text": {}}]}],
            [{"definitionId": "mixed", "version": "Published", "number": 2}],
        ),
        ("definitions", [], [{"definitionId": "nobody"}]),
        ("definitions", [], [{"definitionId": "mixed", "activities": [{"id": "hello", "type": "Elsa.If"}]}]),
    ],
)
def test_what_is_expected_is_compared(corpus: Corpus, key: str, right: Any, wrong: Any) -> None:
    steps = (PUBLISHED, MIXED_RUN)
    corpus.add("right", case(*steps, expect={key: right}), loaded=[MIXED, STARTED])
    assert corpus.run() == (0, ["1 passed, 0 failed, 0 skipped"])
    corpus.add("wrong", case(*steps, expect={key: wrong}), loaded=[MIXED, STARTED])
    code, lines = corpus.run()
    assert code == 1
    assert all(line.startswith(f"FAIL wrong / only: expect.{key}") for line in lines[:-1])
    assert lines[-1] == "1 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ([{"activityId": "fault", "message": "broken"}], [{"message": "brok"}]),
        ([{"messageStartsWith": "brok"}], [{"messageStartsWith": "roken"}]),
        ([{}], []),
    ],
)
def test_incidents_are_compared_in_order_and_by_what_is_said_of_them(
    corpus: Corpus, right: list[Any], wrong: list[Any]
) -> None:
    run = {**RUN, "definitionId": "faulting"}
    faulting = [definition("faulting", FAULT)]
    corpus.add("one", case(run, expect={"incidents": right, "faultCounts": {"sequence": 1}}), loaded=faulting)
    assert corpus.run()[0] == 0
    corpus.add("one", case(run, expect={"incidents": wrong}), loaded=faulting)
    assert corpus.run()[0] == 1


def test_every_key_of_the_form_is_compared_by_somebody() -> None:
    assert list(corpus_match.MATCHERS) == [field.name for field in msgspec.structs.fields(Expectation)]


# --- steps ----------------------------------------------------------------------------------------


def test_each_case_begins_with_a_fresh_host(corpus: Corpus) -> None:
    again = case(RUN, expect={**GREETED, "instances": [{"count": 1}]})
    corpus.add("one", again, again)
    assert corpus.run()[0] == 0


def test_an_instance_can_be_resumed_to_its_end_or_step_by_step(corpus: Corpus) -> None:
    run = {**RUN, "definitionId": "waiting"}
    corpus.add(
        "one",
        case({**run, "until": "end"}, expect={"status": "Finished", **GREETED}),
        case(
            {**run, "expect": {"bookmarks": [{"activityId": "event"}]}},
            {"op": "roundTripState", "expect": {"noError": True}},
            {
                "op": "resume",
                "bookmark": {"name": "Elsa.Event"},
                "expect": {"activities": {"pause": "Running"}},
            },
            {"op": "cancel", "expect": {"subStatus": "Cancelled", "bookmarks": []}},
        ),
        loaded=[definition("waiting", EVENT, PAUSE, HELLO)],
    )
    assert corpus.run() == (0, ["2 passed, 0 failed, 0 skipped"])


def test_an_instance_is_left_to_its_timers_until_it_is_finished(corpus: Corpus) -> None:
    finish = {"op": "run", "until": "finished"}
    corpus.add(
        "one",
        case({**finish, "definitionId": "timed"}, expect={"status": "Finished"}),
        case({**finish, "definitionId": "waiting"}, name="stuck"),
        loaded=[definition("timed", PAUSE), definition("waiting", PAUSE, EVENT)],
    )
    code, lines = corpus.run()
    assert code == 1
    assert "one / stuck: steps[0] run: the instance does not finish by itself" in lines[0]
    assert "event (Elsa.Event)" in lines[0]


def test_definitions_can_be_imported_published_fetched_and_deleted(corpus: Corpus) -> None:
    child = definition(
        "child", HELLO, options={"usableAsActivity": True, "autoUpdateConsumingWorkflows": True}
    )
    parent = definition("parent", {"id": "use", "type": "Child", "workflowDefinitionId": "child"})
    get = {"op": "getDefinition", "definitionId": "child", "version": "Latest"}
    corpus.add(
        "one",
        case(
            {"op": "consumers", "definitionId": "child", "expect": {"equals": ["parent"]}},
            {"op": "import", "file": "changed.json"},
            {**get, "expect": {"version": 2, "isPublished": False}},
            {"op": "publish", "file": "changed.json", "expect": {"succeeded": True, "version": 2}},
            {**get, "expect": {"isPublished": True, "jsonPath": {"root.activities[0].id": "hello"}}},
            {
                "op": "publishNewVersion",
                "definitionId": "child",
                "expect": {"validationErrors": [], "version": 3},
            },
            {"op": "getDefinition", "id": "parent-1", "expect": {"jsonPathAbsent": ["root.activities[1]"]}},
            {
                "op": "getSubgraph",
                "id": "parent-1",
                "nodeId": "Workflow1:sequence",
                "expect": {
                    "activities": [{"id": "hello"}],
                    "jsonPath": {"activities[0].root.id": "sequence"},
                },
            },
            {"op": "deleteDefinition", "definitionId": "child"},
            {"op": "consumers", "definitionId": "child", "expect": {"notFound": True}},
            {"op": "reloadDefinitions"},
            {**get, "expect": {"version": 1, "isPublished": True}},
        ),
        loaded=[child | {"name": "Child"}, parent],
    )
    changed = child | {"name": "Child", "description": "Says hello."}
    (corpus.folder / "one" / "changed.json").write_text(json.dumps(changed))
    assert corpus.run() == (0, ["1 passed, 0 failed, 0 skipped"])


def test_triggers_follow_the_host_functions_when_they_are_refreshed(corpus: Corpus) -> None:
    name = {"typeName": "String", "expression": {"type": "JavaScript", "value": "chosen()"}}
    begins = EVENT | {"eventName": name, "customProperties": {"canStartWorkflow": True}}
    look = {"op": "triggers", "definitionId": "begins"}
    corpus.add(
        "one",
        case(
            {**look, "expect": {"equals": [{"payload": {"eventName": "A"}}]}},
            {"op": "setJavascriptFunction", "name": "chosen", "value": "B"},
            {**look, "expect": {"equals": [{"payload": {"eventName": "A"}}]}},
            {"op": "refreshDefinitions", "definitionIds": ["begins"]},
            {**look, "expect": {"equals": [{"payload": {"eventName": "B"}}]}},
            options={"javascriptFunctions": {"chosen": "A"}},
        ),
        loaded=[definition("begins", begins)],
        requires=["javascript"],
    )
    assert corpus.run() == (0, ["1 passed, 0 failed, 0 skipped"])


def test_a_payload_is_read_and_compared(corpus: Corpus) -> None:
    read = {"op": "readPayload", "file": "greeting.json"}
    corpus.add(
        "one",
        case({**read, "select": "root"}, expect={"jsonPath": {"activities[0].id": "hello"}}),
        case(read, expect={"equalsJsonFile": "greeting.json"}),
        case({**read, "select": "root"}, name="other", expect={"equalsJsonFile": "greeting.json"}),
        case(RUN, name="none", expect={"jsonPath": {"a": 1}}),
    )
    code, lines = corpus.run()
    assert code == 1
    assert lines[0].startswith("FAIL one / other: expect.equalsJsonFile: expected {")
    assert lines[1].startswith("FAIL one / none: expect.jsonPath: there is nothing to compare")
    assert lines[2:] == ["2 passed, 2 failed, 0 skipped"]
