"""Elsa's payload JSON: type marks, identity, escaped keys, and that every value survives."""

import json
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.codec import (
    JsonInvalid,
    NotEncodable,
    decode,
    decode_payload,
    encode,
    encode_payload,
    read_payload,
    write_payload,
)

POLYMORPHIC = (
    '{"$id":"1","items":{"$id":"2","$values":[{"$id":"5","metadata":{"Models":{"$id":"6","$values":[{"$id":"7",'
    '"text":"Hello","metadata":{"Models":{"$ref":"6"},"Custom":{"$id":"8","content-type":["application/json"],'
    '"_type":"CustomDictionary"}}},{"$id":"9","text":"World"}],"_type":"List<Model>"},"Custom":{"$ref":"8"}}}]},'
    '"metadata":{"Models":{"$ref":"6"},"Custom":{"$ref":"8"}},'
    '"payload":{"$id":"11","text":"Payload","_type":"Model"},'
    '"hashSet":{"$id":"12","$values":[{"$id":"13","text":"in a set"}],"_type":"HashSet<Model>"}}'
)

instants = st.datetimes(timezones=st.just(UTC))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | instants
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.binary()
)
keys = st.text() | st.sampled_from(
    ["_type", "_items", "_island", "$id", "$ref", "$values", "\\$id", "\\", "\\_type"]
)
supported_values = st.recursive(
    scalars | st.sets(scalars),
    lambda inner: st.lists(inner) | st.dictionaries(keys, inner),
    max_leaves=20,
)

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "elsa"


class TestRoundTrip:
    @given(supported_values)
    def test_every_supported_value_survives(self, value: Any) -> None:
        assert read_payload(decode(encode(write_payload(value)))) == value
        assert decode_payload(encode_payload(value)) == value

    @given(supported_values)
    def test_encoding_a_payload_is_the_same_in_one_step_as_in_two(self, value: Any) -> None:
        assert encode_payload(value) == encode(write_payload(value))

    def test_types_come_back_as_they_went(self) -> None:
        value = {
            "amount": Decimal("1.10"),
            "at": datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
            "day": date(2026, 1, 2),
            "clock": time(3, 4),
            "every": timedelta(days=-1, microseconds=1),
            "id": UUID(int=5),
            "raw": b"\x00\xff",
            "tags": {"a", "b"},
        }
        back = decode_payload(encode_payload(value))
        assert back == value
        assert {key: type(part) for key, part in back.items()} == {
            key: type(part) for key, part in value.items()
        }
        assert str(back["amount"]) == "1.10"

    def test_an_instant_of_another_zone_comes_back_as_the_same_instant_in_utc(self) -> None:
        at = datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2)))
        back = decode_payload(encode_payload(at))
        assert back == at
        assert back.tzinfo is UTC

    def test_plain_values_are_not_copied(self) -> None:
        value = {"order_type": [1, {"Name": "x", "a$": None}], "_id": "x"}
        assert write_payload(value) is value

    def test_a_users_schema_keeps_its_own_identity(self) -> None:
        schema = {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "#/definitions/x",
            "type": "object",
        }
        assert write_payload(schema)["\\$id"] == "#/definitions/x"
        assert decode_payload(encode_payload({"inputSchema": schema})) == {"inputSchema": schema}

    def test_a_value_that_contains_itself_is_not_written(self) -> None:
        loop: dict[str, Any] = {}
        loop["self"] = loop
        with pytest.raises(NotEncodable, match="contains itself"):
            write_payload(loop)


class TestReading:
    def test_an_island_of_json_is_read_as_that_structure(self) -> None:
        payload = {
            "Content": {"_island": '[\r\n {"path": "folder1"}]', "_type": "JsonArray"},
            "_type": "ObjectMap",
        }
        assert read_payload(payload) == {"Content": [{"path": "folder1"}]}

    def test_a_typed_collection_is_read_as_its_elements(self) -> None:
        assert read_payload({"_type": "Int32[]", "_items": [1, 2]}) == [1, 2]
        assert read_payload({"_type": "Guid[]", "_items": [str(UUID(int=1))]}) == [UUID(int=1)]
        assert read_payload({"_type": "HashSet<Object>", "_items": [1, {"a": 1}]}) == [1, {"a": 1}]

    def test_an_unknown_type_reads_as_a_dict_that_still_shows_it(self) -> None:
        payload = {"x": {"_type": "Acme.Order, Acme", "n": 1}}
        assert read_payload(payload) == payload

    def test_a_known_type_reads_as_a_plain_dict(self) -> None:
        payload = {"_type": "Model", "n": 1}
        assert read_payload(payload, known_types=["model"]) == {"n": 1}

    def test_a_reference_gives_the_object_itself_wherever_it_is(self) -> None:
        value = read_payload(decode(POLYMORPHIC), known_types=["Model", "CustomDictionary"])
        models = value["metadata"]["Models"]
        assert models[0]["text"] == "Hello"
        assert models is value["items"][0]["metadata"]["Models"]
        assert models[0]["metadata"]["Models"] is models
        assert value["metadata"]["Custom"] == {"content-type": ["application/json"]}
        assert value["hashSet"][0]["text"] == "in a set"
        assert value["payload"] == {"text": "Payload"}

    def test_a_reference_may_point_forwards(self) -> None:
        assert read_payload([{"$ref": "2"}, {"$id": "2", "a": 1}]) == [{"a": 1}, {"a": 1}]

    def test_a_reference_may_point_at_a_value(self) -> None:
        payload = [{"$ref": "2"}, {"$id": "2", "_type": "Decimal", "_island": "1.10"}]
        assert read_payload(payload) == [Decimal("1.10"), Decimal("1.10")]

    def test_a_reference_to_nothing_is_data(self) -> None:
        payload = {"items": {"$ref": "#/definitions/x"}}
        assert read_payload(payload) == payload

    def test_of_two_objects_with_one_identity_the_first_has_it(self) -> None:
        payload = [{"$id": "1", "a": 1}, {"$id": "1", "$values": [2]}, {"$ref": "1"}]
        assert read_payload(payload) == [{"a": 1}, [2], {"a": 1}]

    def test_a_long_chain_of_references_is_no_deep_nesting(self) -> None:
        chain = [{"$id": str(n), "next": {"$ref": str(n + 1)}} for n in range(5000)]
        value = read_payload(chain)
        assert value[0]["next"] is value[1]

    def test_a_small_document_that_unfolds_to_a_huge_one_is_refused(self) -> None:
        bomb = [{"$id": str(n), "$values": [{"$ref": str(n + 1)}] * 2} for n in range(40)]
        with pytest.raises(JsonInvalid, match="unfold"):
            read_payload(bomb)

    def test_deep_payloads_are_refused(self) -> None:
        deep: Any = 1
        for _ in range(3000):
            deep = [deep]
        with pytest.raises(JsonInvalid, match="deeper"):
            read_payload(deep)

    @pytest.mark.parametrize(
        "island",
        [
            {"_type": "Decimal", "_island": "one"},
            {"_type": "Guid", "_island": '"x"'},
            {"_type": "JsonObject", "_island": "{"},
            {"_type": "JsonArray", "_island": "{}"},
        ],
    )
    def test_a_broken_island_is_refused(self, island: dict[str, str]) -> None:
        with pytest.raises(JsonInvalid):
            read_payload([island])

    @given(st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(
            st.sampled_from(["_type", "_items", "_island", "$id", "$ref", "$values", "a", "\\$id"]),
            inner | st.sampled_from(["1", "2", "Int32[]", "Decimal", "HashSet<Object>", "{}"]),
        ),
        max_leaves=20,
    ))  # fmt: skip
    def test_any_json_is_read_or_refused_and_nothing_else(self, value: Any) -> None:
        before = json.dumps(value)
        with suppress(JsonInvalid):
            read_payload(value)
        assert json.dumps(value) == before


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not here")
@pytest.mark.parametrize("name", ["serialization-jsonobject-island", "serialization-jsonarray-island"])
def test_elsas_own_islands_are_read(name: str) -> None:
    folder = CORPUS / name
    expected = json.loads((folder / "expected.json").read_text())
    step = expected["cases"][0]["steps"][0]
    value = read_payload(decode((folder / step["file"]).read_bytes()))
    if "select" in step:
        value = value[step["select"]]
    wanted = json.loads((folder / expected["cases"][0]["expect"]["equalsJsonFile"]).read_text())
    if isinstance(wanted, dict):
        wanted.pop("_type")
    assert value == wanted
