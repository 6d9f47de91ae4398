"""The names of types: which exist, in which spellings, and what a Python annotation stands for."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.codec import OBJECT, STRING, ConversionFailed, Type, find_type, type_of


def found(alias: str) -> Type:
    kind = find_type(alias)
    assert kind is not None, alias
    return kind


class TestNames:
    @pytest.mark.parametrize(
        ("alias", "name"),
        [
            ("int32", "Int32"),
            ("STRING", "String"),
            ("Long", "Int64"),
            ("Int32?", "Int32?"),
            ("String?", "String"),
            ("string[]", "String[]"),
            ("Int32[][]", "Int32[][]"),
            ("Byte[]", "ByteArray"),
            ("list<int32>", "List<Int32>"),
            ("ICollection<Object>", "ICollection<Object>"),
            ("HashSet<String[]>", "HashSet<String[]>"),
            ("IDictionary<String, Object>", "IDictionary<String, Object>"),
            ("IDictionary<String,List<Int32>>", "IDictionary<String, List<Int32>>"),
            ("JSON", "JSON"),
            ("HttpFile[]", "HttpFile[]"),
            ("System.String", "String"),
            ("System.Net.HttpStatusCode, System.Net.Primitives", "HttpStatusCode"),
            (
                "Elsa.Workflows.Core.Activities.Flowchart.Models.FlowJoinMode, Elsa.Workflows.Core",
                "FlowJoinMode",
            ),
            ("Elsa.Workflows.SwitchMode, Elsa.Workflows.Core", "SwitchMode"),
            ("Elsa.Http.Models.HttpHeaders, Elsa.Http", "HttpHeaders"),
            ("UnregisteredClrType:System.Uri, System.Private.Uri", "Uri"),
            ("System.String[], System.Private.CoreLib", "String[]"),
            (
                "System.Collections.Generic.List`1[[System.String, System.Private.CoreLib, Version=8.0.0.0, "
                "Culture=neutral, PublicKeyToken=7cec85d7bea7798e]], System.Private.CoreLib, Version=8.0.0.0",
                "List<String>",
            ),
            (
                "System.Collections.Generic.Dictionary`2[[System.String, mscorlib],[System.Int32, mscorlib]]",
                "Dictionary<String, Int32>",
            ),
            ("System.Nullable`1[[System.Int32, System.Private.CoreLib]]", "Int32?"),
        ],
    )
    def test_a_type_is_found_by_any_of_its_spellings(self, alias: str, name: str) -> None:
        assert found(alias).name == name
        assert found(name) == found(alias)

    @pytest.mark.parametrize(
        "alias", [None, "", "Order", "List<Order>", "List<", "List<Int32, Int32>", "[]", "?", "a.b"]
    )
    def test_an_unknown_name_is_nobody(self, alias: str | None) -> None:
        assert find_type(alias) is None

    @given(st.text(alphabet="[]<>?,.`1 aInt32List", max_size=40))
    def test_any_text_is_a_type_or_none(self, alias: str) -> None:
        kind = find_type(alias)
        assert kind is None or find_type(kind.name) == kind

    def test_absurdly_nested_names_are_nobody(self) -> None:
        assert find_type("Int32" + "[]" * 10_000) is None
        assert find_type("List<" * 5000 + "Int32" + ">" * 5000) is None

    def test_types_are_equal_by_name_and_cannot_be_changed(self) -> None:
        assert found("List<Int32>") == found("list<INT32>")
        assert len({found("Int32"), found("int32"), found("Int64")}) == 2
        with pytest.raises(AttributeError):
            STRING.name = "Text"  # type: ignore[misc]

    def test_kinds_are_told_apart(self) -> None:
        assert OBJECT.is_object and not OBJECT.is_structured
        assert STRING.is_text and not STRING.is_structured
        assert found("String[]").is_structured
        assert found("JSON").is_structured
        assert not found("Decimal").is_structured

    def test_defaults_are_those_of_dotnet(self) -> None:
        names = [
            "Int32",
            "Boolean",
            "Double",
            "Decimal",
            "Guid",
            "TimeSpan",
            "String",
            "List<Int32>",
            "Int32?",
            "JSON",
        ]
        assert [found(name).default for name in names] == [
            0, False, 0.0, Decimal(0), UUID(int=0), timedelta(0), None, None, None, None,
        ]  # fmt: skip


class Line(msgspec.Struct):
    sku: str
    price: Decimal = Decimal(0)


@dataclasses.dataclass
class Order:
    lines: list[Line]


class Shape(TypedDict):
    corners: int


class Place(NamedTuple):
    x: int
    y: int


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Model:
    """Stands for a pydantic model."""

    def __init__(self, **members: Any) -> None:
        self.members = members

    @classmethod
    def model_validate(cls, value: Any) -> "Model":
        if not isinstance(value, dict):
            raise TypeError("an object is wanted")
        return cls(**value)


class Opaque:
    pass


UserId = NewType("UserId", str)


class TestAnnotations:
    @pytest.mark.parametrize(
        ("annotation", "name"),
        [
            (str, "String"),
            (bool, "Boolean"),
            (int, "Int64"),
            (float, "Double"),
            (Decimal, "Decimal"),
            (bytes, "ByteArray"),
            (datetime, "DateTimeOffset"),
            (date, "DateOnly"),
            (timedelta, "TimeSpan"),
            (UUID, "Guid"),
            (Any, "Object"),
            (object, "Object"),
            (list[int], "Int64[]"),
            (list, "Object[]"),
            (tuple[str, ...], "String[]"),
            (tuple[str, int], "Object[]"),
            (Sequence[Line], "Line[]"),
            (Iterable[str], "String[]"),
            (set[str], "HashSet<String>"),
            (dict, "ObjectDictionary"),
            (dict[str, Any], "ObjectDictionary"),
            (Mapping[str, str], "StringDictionary"),
            (int | None, "Int64?"),
            (str | None, "String"),
            (int | str, "Object"),
            (Literal["a", "b"], "String"),
            (Literal[1, 2], "Int64"),
            (Color, "Color"),
            (Line, "Line"),
            (Order, "Order"),
            (list[Order], "Order[]"),
            (Shape, "Shape"),
            (Place, "Place"),
            (Model, "Model"),
            (Opaque, "Opaque"),
            (UserId, "String"),
            (Annotated[int, "note"], "Int64"),
        ],
    )
    def test_an_annotation_has_a_type(self, annotation: Any, name: str) -> None:
        assert type_of(annotation).name == name

    def test_an_annotation_left_as_text_is_refused(self) -> None:
        with pytest.raises(TypeError, match="still text"):
            type_of("Order")

    def test_structs_and_dataclasses_are_built_from_objects_and_json(self) -> None:
        line = Line("a", Decimal("1.10"))
        assert type_of(Line).convert({"sku": "a", "price": "1.10"}) == line
        assert type_of(Line).convert('{"sku": "a", "price": "1.10"}') == line
        assert type_of(Line).convert(line) is line
        assert type_of(Order).convert({"lines": [{"sku": "a"}]}) == Order([Line("a")])
        assert type_of(list[Line]).convert([{"sku": "a"}, Line("b")]) == [Line("a"), Line("b")]
        assert type_of(Place).convert([1, 2]) == Place(1, 2)
        assert type_of(Shape).convert({"corners": "3"}) == {"corners": 3}
        assert type_of(Model).convert({"a": 1}).members == {"a": 1}

    def test_a_member_that_does_not_fit_is_told(self) -> None:
        assert type_of(Line).convert({"sku": 1}) is None
        with pytest.raises(
            ConversionFailed, match=r"cannot become Line: Expected `str`, got `int` - at `\$.sku`"
        ):
            type_of(Line).convert_strictly({"sku": 1})
        with pytest.raises(ConversionFailed, match="an object is wanted"):
            type_of(Model).convert_strictly(1)

    def test_collections_are_of_the_class_that_was_asked_for(self) -> None:
        assert type_of(set[int]).convert(["1", 2, 2]) == {1, 2}
        assert type_of(frozenset[int]).convert([1]) == frozenset({1})
        assert type_of(tuple[int, ...]).convert(["1"]) == (1,)
        assert type_of(tuple[str, int]).convert(["a", 1]) == ("a", 1)
        assert type_of(dict[str, int]).convert({"a": "1"}) == {"a": 1}

    def test_pythons_integers_have_no_bounds(self) -> None:
        assert type_of(int).convert(2**80) == 2**80

    def test_a_literal_takes_only_its_values(self) -> None:
        kind = type_of(Literal["fast", "slow"])
        assert kind.is_text
        assert kind.convert("fast") == "fast"
        assert kind.convert("Fast") is None
        with pytest.raises(ConversionFailed, match="use one of fast, slow"):
            kind.convert_strictly("medium")
        assert type_of(Literal[1, 2]).convert("2") == 2

    def test_an_enum_is_found_by_value_or_name(self) -> None:
        kind = type_of(Color)
        assert [kind.convert(given) for given in ("red", "RED", Color.RED)] == [Color.RED] * 3
        with pytest.raises(ConversionFailed, match="use one of RED, BLUE"):
            kind.convert_strictly("green")

    def test_constraints_are_checked(self) -> None:
        kind = type_of(Annotated[int, msgspec.Meta(ge=1)])
        assert kind.convert_strictly("3") == 3
        assert kind.convert("abc") == 0
        with pytest.raises(ConversionFailed, match=">= 1"):
            kind.convert_strictly(0)

    def test_a_class_nobody_can_build_takes_its_instances(self) -> None:
        thing = Opaque()
        assert type_of(Opaque).convert_strictly(thing) is thing
        with pytest.raises(ConversionFailed, match="not an instance of Opaque"):
            type_of(Opaque).convert_strictly(1)

    def test_an_optional_keeps_nothing_as_nothing(self) -> None:
        kind = type_of(int | None)
        assert [kind.convert(given) for given in (None, "", "x", "5", 5)] == [None, None, None, 5, 5]
        assert type_of(datetime | None).convert("2026-01-01") == datetime(2026, 1, 1, tzinfo=UTC)
