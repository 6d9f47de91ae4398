"""From what a workflow produced to what a type wants: Elsa's conversion table, row by row."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.codec import OBJECT, STRING, ConversionFailed, Type, find_type

GUID = UUID("6f9619ff-8b86-d011-b42d-00cf4fc964ff")
NOON = datetime(2026, 6, 15, 12, tzinfo=UTC)


def found(alias: str) -> Type:
    kind = find_type(alias)
    assert kind is not None, alias
    return kind


@pytest.mark.parametrize(
    ("alias", "value", "wanted"),
    [
        # numbers
        ("Int32", "42", 42),
        ("Int32", " -7 ", -7),
        ("Int32", 3.0, 3),
        ("Int32", 3.7, 4),
        ("Int32", 2.5, 2),
        ("Int32", 3.5, 4),
        ("Int32", Decimal("2.5"), 2),
        ("Int32", True, 1),
        ("Int64", 2**62, 2**62),
        ("Double", "1e3", 1000.0),
        ("Double", 3, 3.0),
        ("Double", Decimal("0.5"), 0.5),
        ("Single", "0.1", 0.1),
        ("Decimal", "1.10", Decimal("1.10")),
        ("Decimal", 0.1, Decimal("0.1")),
        ("Decimal", 5, Decimal(5)),
        ("Boolean", "True", True),
        ("Boolean", "false", False),
        ("Boolean", 2, True),
        ("Boolean", 0.0, False),
        # text
        ("String", True, "True"),
        ("String", False, "False"),
        ("String", 42, "42"),
        ("String", 1.0, "1"),
        ("String", 0.1, "0.1"),
        ("String", -2.5, "-2.5"),
        ("String", 123456789.125, "123456789.125"),
        ("String", 1e14, "100000000000000"),
        ("String", 1e15, "1E+15"),
        ("String", 1e16, "1E+16"),
        ("String", 1.5e300, "1.5E+300"),
        ("String", 0.0001, "0.0001"),
        ("String", 0.00001, "1E-05"),
        ("String", Decimal("1.10"), "1.10"),
        ("String", Decimal("1E+3"), "1000"),
        ("String", [1, {"a": None}], '[1,{"a":null}]'),
        ("String", {"price": Decimal("1.10"), "at": NOON}, '{"price":1.10,"at":"2026-06-15T12:00:00+00:00"}'),
        ("String", NOON, "2026-06-15T12:00:00+00:00"),
        ("String", timedelta(hours=3), "03:00:00"),
        ("String", GUID, "6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
        ("String", b"hi", "aGk="),
        ("String", "[1]", "[1]"),
        ("Uri", "http://x/?a=1", "http://x/?a=1"),
        # identity and bytes
        ("Guid", "6f9619ff-8b86-d011-b42d-00cf4fc964ff", GUID),
        ("Guid", "{6F9619FF-8B86-D011-B42D-00CF4FC964FF}", GUID),
        ("Guid", "(6f9619ff8b86d011b42d00cf4fc964ff)", GUID),
        ("ByteArray", "aGk=", b"hi"),
        ("ByteArray", [104, 105], b"hi"),
        ("ByteArray", bytearray(b"hi"), b"hi"),
        # time
        ("DateTimeOffset", "2026-06-15T12:00:00Z", NOON),
        ("DateTimeOffset", "2026-06-15T14:00:00+02:00", NOON),
        ("DateTimeOffset", "2026-06-15T12:00:00.0000000+00:00", NOON),
        ("DateTime", "2026-06-15 12:00:00", NOON),
        ("DateTime", "2026-06-15 14:00:00 +02:00", NOON),
        ("DateTime", "06/15/2026 12:00:00", NOON),
        ("DateTime", NOON.astimezone(timezone(timedelta(hours=5))), NOON),
        ("DateTime", date(2026, 6, 15), datetime(2026, 6, 15, tzinfo=UTC)),
        ("DateTimeOffset", "2026-06-15", datetime(2026, 6, 15, tzinfo=UTC)),
        ("DateOnly", NOON, date(2026, 6, 15)),
        ("TimeSpan", "1.02:03:04", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("TimeSpan", "PT5S", timedelta(seconds=5)),
        # enumerations
        ("FlowJoinMode", "WaitAny", "WaitAny"),
        ("FlowJoinMode", 0, "WaitAll"),
        ("FlowJoinMode", "1", "WaitAny"),
        ("FlowJoinMode", 1.0, "WaitAny"),
        ("HttpStatusCode", "OK", 200),
        ("HttpStatusCode", "NotFound", 404),
        ("HttpStatusCode", "InternalServerError", 500),
        ("HttpStatusCode", 418, 418),
        ("HttpStatusCode", "202", 202),
        # collections
        ("String[]", '["GET", "POST"]', ["GET", "POST"]),
        ("String[]", " [1, true]", ["1", "True"]),
        ("List<String>", "a, b", ["a, b"]),
        ("ICollection<Object>", "a", ["a"]),
        ("Int32[]", ("1", 2.0, "x"), [1, 2, 0]),
        ("HashSet<Int32>", [2, "2", 1, 2], [2, 1]),
        ("HashSet<Object>", [{"a": 1}, {"a": 1}, True, 1], [{"a": 1}, True, 1]),
        ("Object[]", {3}, [3]),
        # objects
        ("ObjectDictionary", '{"a": {"b": 1}}', {"a": {"b": 1}}),
        ("StringDictionary", {"a": 1, 2: True}, {"a": "1", "2": "True"}),
        ("IDictionary<String, Int32>", '{"a": "1"}', {"a": 1}),
        ("JsonObject", '{"a": 1}', {"a": 1}),
        ("JsonArray", "[1]", [1]),
        ("JArray", (1, 2), [1, 2]),
        ("JSON", '{"a": [1]}', {"a": [1]}),
        ("JSON", [1], [1]),
        ("JsonNode", 5, 5),
        ("HttpHeaders", '{"x-a": ["1"]}', {"x-a": ["1"]}),
    ],
)  # fmt: skip
def test_a_value_becomes_what_the_type_wants(alias: str, value: Any, wanted: Any) -> None:
    for convert in (found(alias).convert, found(alias + "?").convert):
        converted = convert(value)
        assert converted == wanted
        assert type(converted) is type(wanted)


@pytest.mark.parametrize(
    ("alias", "value"),
    [
        ("Int32", "3.7"),
        ("Int32", "abc"),
        ("Int32", 2**31),
        ("Int32", "2147483648"),
        ("Int32", float("nan")),
        ("Int32", float("inf")),
        ("Int32", [1]),
        ("Int32", Decimal("1E+999999")),
        ("Int16", 40000),
        ("Double", "1e999"),
        ("Double", "1_000"),
        ("Double", "nan"),
        ("Double", 10**400),
        ("Decimal", "1,5"),
        ("Decimal", float("inf")),
        ("Boolean", "yes"),
        ("Boolean", "1"),
        ("Boolean", []),
        ("Guid", "x"),
        ("Guid", 5),
        ("DateTime", "tomorrow"),
        ("DateTime", 5),
        ("DateTime", "0001-01-01T00:00:00+05:00"),
        ("TimeSpan", 5),
        ("TimeSpan", "soon"),
        ("ByteArray", "not base64!"),
        ("ByteArray", [1000]),
        ("FlowJoinMode", "waitany"),
        ("FlowJoinMode", 7),
        ("HttpStatusCode", "ok"),
        ("Int32[]", "5"),
        ("Int32[]", 5),
        ("Object[]", {"a": 1}),
        ("ObjectDictionary", "text"),
        ("ObjectDictionary", [1]),
        ("JsonObject", 5),
        ("String", object()),
    ],
)
def test_what_does_not_fit_gives_the_default_or_strictly_an_error(alias: str, value: Any) -> None:
    kind = found(alias)
    assert kind.convert(value) == kind.default
    assert found(alias + "?").convert(value) is None
    with pytest.raises(
        ConversionFailed, match=rf"cannot become {kind.name.replace('[', '.').replace(']', '.')}: "
    ) as caught:
        kind.convert_strictly(value)
    assert caught.value.code == "value.conversion"


@pytest.mark.parametrize(
    "alias", ["Int32", "Boolean", "DateTime", "Guid", "String[]", "JSON", "FlowJoinMode"]
)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_nothing_and_blank_text_give_the_default_and_are_no_error(alias: str, value: Any) -> None:
    kind = found(alias)
    assert kind.convert(value) == kind.default
    assert kind.convert_strictly(value) == kind.default


@pytest.mark.parametrize(
    "alias", ["String[]", "JSON", "JsonObject", "List<Int32>", "ObjectDictionary", "JsonArray[]"]
)
@pytest.mark.parametrize("text", ["{", "[1,", '{"a": }'])
def test_broken_json_is_an_error_even_leniently(alias: str, text: str) -> None:
    with pytest.raises(ConversionFailed, match="This is not JSON"):
        found(alias).convert(text)


def test_broken_json_inside_a_list_is_an_error_too() -> None:
    with pytest.raises(ConversionFailed):
        found("JsonObject[]").convert(["{}", "{"])


def test_json_of_another_shape_is_an_error() -> None:
    with pytest.raises(ConversionFailed, match="not a list"):
        found("String[]").convert('{"a": 1}')


def test_object_takes_everything_unchanged() -> None:
    for value in (None, "{", "[1]", 1, [1], object()):
        assert OBJECT.convert(value) is value
        assert OBJECT.convert_strictly(value) is value


def test_what_fits_already_is_not_copied() -> None:
    for alias, value in (
        ("String[]", ["a"]),
        ("Object[]", [1]),
        ("ObjectDictionary", {"a": 1}),
        ("StringDictionary", {"a": "b"}),
        ("JSON", {"a": 1}),
        ("JsonArray", [1]),
    ):
        assert found(alias).convert(value) is value


def test_a_struct_becomes_an_object() -> None:
    class Line(msgspec.Struct):
        sku: str
        price: Decimal

    line = Line("a", Decimal("1.10"))
    assert found("ObjectDictionary").convert(line) == {"sku": "a", "price": Decimal("1.10")}
    assert STRING.convert(line) == '{"sku":"a","price":1.10}'


def test_a_failure_shows_the_value_shortened_and_its_class() -> None:
    with pytest.raises(ConversionFailed) as caught:
        found("Int32").convert_strictly("x" * 10_000)
    assert "(str) cannot become Int32: it is not a whole number" in str(caught.value)
    assert len(str(caught.value)) < 200
    with pytest.raises(ConversionFailed):
        found("Guid").convert_strictly(10**5000)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals()
    | st.text()
    | st.binary()
    | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(
    st.sampled_from([
        "Int32", "Double", "Decimal", "Boolean", "String", "Guid", "DateTime", "TimeSpan", "ByteArray",
        "Int32[]", "HashSet<Object>", "JSON", "ObjectDictionary", "StringDictionary", "FlowJoinMode",
        "HttpStatusCode", "Int32?", "DateOnly", "TimeOnly", "Uri",
    ]),
    anything,
)  # fmt: skip
def test_converting_gives_a_value_or_a_conversion_failure_and_nothing_else(alias: str, value: Any) -> None:
    kind = found(alias)
    try:
        once = kind.convert(value)
    except ConversionFailed:
        return
    assert repr(kind.convert(once)) == repr(once)
