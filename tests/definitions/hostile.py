"""Documents that nobody should send: random JSON in the shape of definitions, and spoiled real ones."""

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st

CORPUS = Path(__file__).parents[1] / "corpus/elsa"


def corpus_files() -> list[Path]:
    """Every definition of the conformance corpus."""
    return [
        scenario.parent / entry["file"]
        for scenario in sorted(CORPUS.glob("*/expected.json"))
        for entry in json.loads(scenario.read_bytes())["definitions"]
        if entry["load"] != "data"
    ]


AWKWARD: list[Any] = [
    10**400,
    -(10**30),
    2**63,
    1e308,
    -0.0,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\x00",
    "\ud800",
    "²",
    "--5",
    "9" * 5000,
    "null",
    "[]",
    '{"id":',
    "Elsa.WriteLine",
    "List<" * 50,
    "{{ a | b",
    "{% for x in y %}",
    "(" * 1000,
    {"$values": {"$values": 1}},
    {"_type": "x", "items": 5},
    {"_type": "x", "values": []},
    {"id": 1},
    {"typeName": "String"},
    {"expression": {}},
    {"typeName": "Int32", "expression": {"type": 5, "value": {"a": []}}},
    {"typeName": [], "expression": {"type": "Variable", "value": "{"}},
    [[]],
    [None],
    {},
    None,
    True,
    False,
    0,
    1,
    -1,
    3.5,
    "a",
    "Done",
    "Int32",
    "String[]",
    "true",
    "00:00:01",
    "PT5S",
]
awkward = st.sampled_from(AWKWARD)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | awkward
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)

_ENVELOPE = """
    id definitionId version name description toolVersion variables inputs outputs outcomes options
    customProperties isLatest isPublished isReadonly isSystem usableAsActivity root
""".split()  # noqa: SIM905  a list of 40 words is read more easily like this
_MEMBERS = """
    id name type version customProperties metadata variables activities connections body then else cases
    default states transitions steps branches joinMode variable value text script condition items codes
    result start possibleOutcomes cronExpression workflowDefinitionId workflowDefinitionVersionId
    canStartWorkflow
""".split()  # noqa: SIM905  a list of 40 words is read more easily like this
_INNER = """
    id name typeName value isArray source target activity port label condition action undo entry exit
    from to trigger expression type memoryReference retryPolicy attempts delay factor longest mergeMode
    logPersistenceMode logPersistenceConfig default inputs commitStrategyName activationStrategyType
    usableAsActivity $values
""".split()  # noqa: SIM905  a list of 40 words is read more easily like this


def documents(random: Random, type_names: list[str]) -> dict[str, Any]:
    """An object with the members that definitions have, and whatever in them."""

    def thing(depth: int) -> Any:
        kind = random.random() if depth else 0
        if kind < 0.4:
            return random.choice(AWKWARD)
        if kind < 0.6:
            return [thing(depth - 1) for _ in range(random.randint(0, 3))]
        return {spelled(_INNER): thing(depth - 1) for _ in range(random.randint(0, 4))}

    def spelled(names: list[str]) -> str:
        name = random.choice(names)
        return name if random.random() < 0.9 else name.upper()

    def activity(depth: int) -> dict[str, Any]:
        made = {"type": random.choice(type_names)} if random.random() < 0.95 else {}
        return made | {spelled(_MEMBERS): inside(depth) for _ in range(random.randint(0, 7))}

    def inside(depth: int) -> Any:
        kind = random.random() if depth else 0
        if kind < 0.5:
            return thing(2)
        nested = [activity(depth - 1) for _ in range(random.randint(0, 3))]
        return nested if kind < 0.9 or not nested else nested[0]

    envelope = {spelled(_ENVELOPE): thing(3) for _ in range(random.randint(0, 2))}
    return {**envelope, "root": activity(3)}


def spoil(document: Any, choices: list[tuple[int, int, Any]]) -> Any:
    """Delete, replace or repeat nodes of a document: each choice is (which node, what to do, with what)."""
    spoiled: Any = {"document": copy.deepcopy(document)}
    for which, what, value in choices:
        holders = list(_nodes(spoiled))
        holder, key = holders[which % len(holders)]
        if what == 0 and holder is not spoiled:
            del holder[key]
        elif what == 1:
            holder[key] = copy.deepcopy(value)
        elif isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif holder is not spoiled:
            other = holders[(which // 7) % len(holders)]
            holder[key] = copy.deepcopy(other[0][other[1]]) if other[0] is not spoiled else value
    return spoiled["document"]


def _nodes(value: Any) -> Any:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from _nodes(inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield value, index
            yield from _nodes(inner)
