"""What the journal keeps of inputs and outputs, and what it is told to leave out."""

from typing import Any

import pytest

from holdfast.testing import Host
from tests.documents import document, literal, script, write

STRATEGY = "Elsa.Workflows.LogPersistence.Strategies.{}, Elsa.Workflows.Core"


def strategy(name: str) -> dict[str, Any]:
    return {"evaluationMode": "Strategy", "strategyType": STRATEGY.format(name)}


def rule(source: str) -> dict[str, Any]:
    return {"evaluationMode": "Expression", "expression": {"type": "JavaScript", "value": source}}


async def shown(custom: dict[str, Any], workflow: dict[str, Any] | None = None) -> dict[str, Any]:
    host = Host()
    root = {**write("x"), "customProperties": custom}
    await host.load(document(root, customProperties=workflow or {}))
    instance = await host.run("test")
    return dict(instance.activity_records()[-1].inputs)


@pytest.mark.parametrize(
    ("custom", "workflow", "is_shown"),
    [
        ({}, {}, True),
        ({"logPersistenceMode": {"default": "Exclude"}}, {}, False),
        ({"logPersistenceMode": {"default": "Exclude", "inputs": {"text": "Include"}}}, {}, True),
        ({"logPersistenceMode": {"default": "Include", "inputs": {"text": "Exclude"}}}, {}, False),
        (
            {"logPersistenceMode": {"default": "Inherit"}},
            {"logPersistenceMode": {"default": "Exclude"}},
            False,
        ),
        ({}, {"logPersistenceConfig": {"default": strategy("Exclude")}}, False),
        ({"logPersistenceConfig": {"inputs": {"text": strategy("Exclude")}}}, {}, False),
        ({"logPersistenceConfig": {"default": strategy("Inherit")}}, {}, True),
        ({"logPersistenceConfig": {"default": strategy("Configuration")}}, {}, True),
        ({"logPersistenceConfig": {"inputs": {"text": rule("LogPersistenceMode.Exclude")}}}, {}, False),
        ({"logPersistenceConfig": {"default": rule("1 > 2 ? 'Exclude' : 'Include'")}}, {}, True),
        ({"logPersistenceMode": 5, "logPersistenceConfig": "nonsense"}, {}, True),
    ],
)
async def test_the_nearest_setting_that_does_not_inherit_counts(
    custom: dict[str, Any], workflow: dict[str, Any], is_shown: bool
) -> None:
    assert ("Text" in await shown(custom, workflow)) is is_shown


async def test_what_is_left_out_of_the_journal_is_still_used() -> None:
    host = Host()
    hidden = {"customProperties": {"logPersistenceMode": {"default": "Exclude"}}}
    root = {
        "id": "s",
        "type": "Elsa.Sequence",
        "activities": [
            {"id": "js", "name": "Js", "type": "Elsa.RunJavaScript", "script": literal("21 * 2"), **hidden},
            {"id": "t", "type": "Elsa.WriteLine", "text": script("getResultFromJs()")},
        ],
    }
    await host.load(document(root))
    instance = await host.run("test")
    assert host.console.written == ["42"]
    (record,) = [r for r in instance.activity_records() if r.activity_id == "js"]
    assert (dict(record.inputs), dict(record.outputs)) == ({}, {})
