"""JSON text and plain values: what is read, what is written, what is refused and how that is told."""

import dataclasses
import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.codec import JsonInvalid, NotEncodable, decode, encode, encode_bare, encode_text
from holdfast.codec.plain import MAX_DEPTH, MAX_DIGITS

plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def nested(levels: int) -> Any:
    value: Any = "core"
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


class TestDecoding:
    @given(st.binary() | st.text().map(str.encode))
    @example(b"[" * 5000)
    @example(b'{"a":' * 5000)
    @example(b"\xef\xbb\xbf")
    @example(rb'"\ud800"')
    def test_random_bytes_are_read_or_refused_and_nothing_else(self, raw: bytes) -> None:
        try:
            value = decode(raw)
        except JsonInvalid:
            return
        assert decode(encode(value)) == value

    @given(plain_values)
    def test_reads_what_any_other_json_writer_wrote(self, value: Any) -> None:
        assert decode(json.dumps(value)) == value
        assert decode(json.dumps(value, ensure_ascii=False, indent=2).encode()) == value

    def test_a_byte_order_mark_is_skipped(self) -> None:
        assert decode(b"\xef\xbb\xbf[1]") == [1]
        assert decode("\ufeff[1]") == [1]

    def test_of_duplicate_members_the_last_counts(self) -> None:
        assert decode('{"a": 1, "a": 2}') == {"a": 2}

    def test_integers_are_exact_up_to_the_limit(self) -> None:
        longest = "9" * MAX_DIGITS
        assert decode(longest) == int(longest)
        assert decode("-123456789012345678901234567890") == -123456789012345678901234567890

    @pytest.mark.parametrize(
        "text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * (MAX_DIGITS + 1)]
    )
    def test_numbers_that_are_none_or_too_large_are_refused(self, text: str) -> None:
        with pytest.raises(JsonInvalid):
            decode(text)
        with pytest.raises(JsonInvalid):
            decode(f'{{"n": [{text}]}}')

    def test_a_number_out_of_range_is_told_with_its_path(self) -> None:
        with pytest.raises(JsonInvalid, match=r"out of range - at `\$\[\.\.\.\]\[0\]`.*as text"):
            decode('{"a": [1e999]}')

    def test_nesting_is_limited_and_never_a_recursion_error(self) -> None:
        assert decode(json.dumps(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
        for levels in (MAX_DEPTH + 1, 500, 100_000):
            with pytest.raises(JsonInvalid, match="deeper than 64 levels"):
                decode("[" * levels + "]" * levels)

    def test_many_brackets_side_by_side_are_not_deep(self) -> None:
        wide = [[{}] for _ in range(1000)]
        assert decode(json.dumps(wide)) == wide

    @pytest.mark.parametrize(
        ("text", "where"),
        [
            ('{"a": 1,\n "b": x}', "invalid character at line 2, column 7"),
            ('{"ä": x}', "line 1, column 7"),
            ("[1,]", "trailing comma in array at line 1, column 4"),
            ('{"a": ', "ends before the JSON does at line 1, column 7"),
            ("", "ends before the JSON does at line 1, column 1"),
            ('{"a": "\\ud800x"}', "half of a surrogate pair at line 1, column 8"),
            ('["\\udc00"]', "surrogate"),
            ('["\\ud83d\\ude00 \\\\ud800', "ends before the JSON does"),
        ],
    )
    def test_an_error_says_where_it_is(self, text: str, where: str) -> None:
        with pytest.raises(JsonInvalid, match=where) as caught:
            decode(text)
        assert caught.value.code == "json.invalid"

    def test_bytes_that_are_not_utf8_are_told_with_their_place(self) -> None:
        with pytest.raises(JsonInvalid, match="not UTF-8 at line 2, column 3"):
            decode(b'[\n "\xff"]')

    def test_text_with_half_a_character_is_refused(self) -> None:
        with pytest.raises(JsonInvalid, match="half a character"):
            decode('"\ud800"')


class Color(Enum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


class Mood(StrEnum):
    GOOD = "good"


class Point(msgspec.Struct):
    x: int
    at: Decimal


class Cat(msgspec.Struct, tag="cat", rename="camel"):
    full_name: str


class Pair(msgspec.Struct, array_like=True):
    left: int
    right: int


@dataclasses.dataclass
class Box:
    inside: Point


class TestEncoding:
    @given(plain_values)
    def test_a_plain_value_survives(self, value: Any) -> None:
        assert decode(encode(value)) == value
        assert encode_text(value) == encode(value).decode()
        assert decode(encode_bare(value)) == value

    def test_is_compact(self) -> None:
        assert encode({"a": [1, 2.5, None, True], "b": "ä"}) == '{"a":[1,2.5,null,true],"b":"ä"}'.encode()

    def test_typed_values_become_islands(self) -> None:
        value = {
            "price": Decimal("1.10"),
            "at": datetime(2026, 1, 2, 3, tzinfo=UTC),
            "every": timedelta(hours=3),
        }
        assert decode(encode(value)) == {
            "price": {"_type": "Decimal", "_island": "1.10"},
            "at": {"_type": "DateTimeOffset", "_island": '"2026-01-02T03:00:00+00:00"'},
            "every": {"_type": "TimeSpan", "_island": '"03:00:00"'},
        }

    def test_without_islands_typed_values_are_what_others_expect(self) -> None:
        value = [
            Decimal("1.10"),
            datetime(2026, 1, 2, 3, tzinfo=UTC),
            date(2026, 1, 2),
            timedelta(seconds=5),
            UUID(int=1),
            b"hi",
            {2, 1},
        ]
        assert encode_bare(value) == (
            b'[1.10,"2026-01-02T03:00:00+00:00","2026-01-02","00:00:05",'
            b'"00000000-0000-0000-0000-000000000001","aGk=",[1,2]]'
        )

    def test_enums_structs_and_dataclasses_become_their_values(self) -> None:
        value = {
            "c": Color.RED,
            "s": Size.SMALL,
            "m": Mood.GOOD,
            "box": Box(Point(1, Decimal("2.0"))),
            "t": (1, 2),
        }
        assert decode(encode_bare(value)) == {
            "c": "red", "s": 1, "m": "good", "box": {"inside": {"x": 1, "at": 2.0}}, "t": [1, 2],
        }  # fmt: skip
        assert decode(encode([Cat("Tom"), Pair(1, 2)])) == [{"type": "cat", "fullName": "Tom"}, [1, 2]]

    def test_a_set_is_written_in_the_same_order_every_time(self) -> None:
        items = [f"item-{n}" for n in range(50)]
        assert encode(set(items)) == encode({f"item-{n}" for n in range(49, -1, -1)})

    def test_whole_numbers_may_be_keys(self) -> None:
        assert encode({1: "a", -2: "b"}) == b'{"1":"a","-2":"b"}'

    @pytest.mark.parametrize("key", [None, True, 1.5, (1, 2), b"x"])
    def test_other_keys_are_refused(self, key: Any) -> None:
        with pytest.raises(NotEncodable, match=r"at \$\.in cannot.*key"):
            encode({"in": {key: 1}})

    @pytest.mark.parametrize(
        "bad",
        [
            math.nan,
            math.inf,
            -math.inf,
            Decimal("NaN"),
            Decimal("Infinity"),
            object(),
            1j,
            pytest.param("\ud800", id="half a character"),
            pytest.param(10**MAX_DIGITS, id="too many digits"),
        ],
    )
    def test_what_json_cannot_carry_is_refused_with_its_path(self, bad: Any) -> None:
        with pytest.raises(NotEncodable) as caught:
            encode({"order": {"lines": [1, 2, {"price": bad}]}})
        assert caught.value.path == "$.order.lines[2].price"
        assert caught.value.code == "value.not_encodable"
        with pytest.raises(NotEncodable):
            encode_bare([bad])

    def test_a_value_that_contains_itself_is_refused(self) -> None:
        loop: list[Any] = []
        loop += [loop, loop]
        with pytest.raises(NotEncodable, match="contains itself"):
            encode(loop)

    def test_what_was_written_can_be_read_at_every_depth(self) -> None:
        for core in (1, Decimal(1), {1}, Point(1, Decimal(1))):
            for levels in range(MAX_DEPTH - 4, MAX_DEPTH + 2):
                value: Any = core
                for _ in range(levels):
                    value = [value]
                try:
                    text = encode(value)
                except NotEncodable:
                    assert levels > MAX_DEPTH - 3
                else:
                    decode(text)

    def test_an_instant_outside_the_calendar_is_refused(self) -> None:
        early = datetime.fromisoformat("0001-01-01T00:00:00+05:00")
        with pytest.raises(NotEncodable, match="years 1 to 9999"):
            encode({"at": early})
