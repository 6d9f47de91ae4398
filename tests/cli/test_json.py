"""`holdfast run --json`: one document for programs, and nothing else."""

import msgspec

from tests.cli.conftest import EXAMPLES, Holdfast, Save, fault, write_line


def test_the_document_has_all_that_happened(holdfast: Holdfast) -> None:
    result = holdfast("run", EXAMPLES / "hello.json", "--json", "--input", "name=Ada")
    document = msgspec.json.decode(result.stdout)
    assert result.exit_code == 0
    assert (document["status"], document["subStatus"]) == ("Finished", "Finished")
    assert document["output"] == {"greeting": "Hello, Ada!"}
    assert document["variables"] == {"Who": "Ada"}
    assert document["lines"] == ["Hello, Ada!"]
    assert (document["bookmarks"], document["incidents"]) == ([], [])
    first = document["journal"][1]
    assert (first["event"], first["activityId"], first["activityType"]) == (
        "Started",
        "hello-steps",
        "Elsa.Sequence",
    )
    assert first["execution"] == 2
    assert "at" in first
    assert [r["event"] for r in document["journal"] if r["activityId"] == "greet"] == ["Started", "Completed"]
    assert result.stderr == ""


def test_where_it_waits_is_in_the_document(holdfast: Holdfast) -> None:
    document = msgspec.json.decode(
        holdfast("run", EXAMPLES / "approval.json", "--json", "-i", "amount=2000").stdout
    )
    assert document["subStatus"] == "Suspended"
    [bookmark] = document["bookmarks"]
    assert (bookmark["activityId"], bookmark["payload"]) == ("wait", {"eventName": "decided"})


def test_a_fault_is_in_the_document_and_still_ends_with_1(holdfast: Holdfast, save: Save) -> None:
    result = holdfast("run", save(write_line("before"), fault("no", "own.code")), "--json")
    document = msgspec.json.decode(result.stdout)
    assert result.exit_code == 1
    assert document["subStatus"] == "Faulted"
    [incident] = document["incidents"]
    assert (incident["activityId"], incident["message"], incident["code"]) == ("boom", "no", "own.code")
    assert result.stderr.splitlines()[-1] == "Error: Boom: no  [own.code]"


def test_other_instances_are_in_the_document_too(holdfast: Holdfast, save: Save) -> None:
    child = save(write_line("child"), name="child")
    start = {"id": "start", "type": "Elsa.DispatchWorkflow", "workflowDefinitionId": "child"}
    result = holdfast("run", save(start, name="parent"), "--with", child, "--json")
    document = msgspec.json.decode(result.stdout)
    [other] = document["otherInstances"]
    assert (other["definitionId"], other["parentId"]) == ("child", document["id"])
    assert document["lines"] == ["child"]


def test_an_invalid_definition_leaves_stdout_empty(holdfast: Holdfast, save: Save) -> None:
    result = holdfast("run", save({"id": "x", "type": "Own.Unknown"}), "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "activity.unknown" in result.stderr
