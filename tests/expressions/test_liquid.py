"""What Liquid templates see, write and calculate."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.expression import ExpressionFailed, ExpressionInvalid, Language
from holdfast.expressions.liquid import Liquid
from tests.expressions.scope import FakeScope

liquid = Liquid()


def render(source: str, scope: FakeScope | None = None, **variables: Any) -> Any:
    return liquid.compile(source)(scope or FakeScope(variables=variables))


def test_it_is_a_language() -> None:
    language: Language = liquid
    assert (language.name, language.display_name, language.editor) == ("Liquid", "Liquid", "liquid")


# What a template sees


def test_variables_and_inputs_are_found_by_name() -> None:
    scope = FakeScope(variables={"Name": "Ada"}, given={"City": "Wien"})
    assert render("{{ Variables.Name }} in {{ Input.City }}", scope) == "Ada in Wien"


def test_names_with_blanks_stand_in_brackets() -> None:
    assert render("{{ Variables['First name'] }}", **{"First name": "Ada"}) == "Ada"


def test_the_workflow_is_known_by_its_ids() -> None:
    source = (
        "{{ WorkflowDefinitionId }} {{ WorkflowDefinitionVersionId }} {{ WorkflowDefinitionVersion }} "
        "{{ WorkflowInstanceId }} {{ CorrelationId }}"
    )
    assert render(source) == "orders orders-v3 3 i1 c1"


def test_shared_configuration_can_be_read() -> None:
    scope = FakeScope(configuration={"Smtp": {"Host": "mail.example"}})
    assert render("{{ Configuration.Smtp.Host }}", scope) == "mail.example"


def test_members_go_by_their_exact_name() -> None:
    order = {"id": 7, "Id": 8, "lines": [{"sku": "a"}, {"sku": "b"}]}
    assert render("{{ Variables.Order.id }}{{ Variables.Order.Id }}", Order=order) == "78"
    assert render("{{ Variables.Order.lines[1].sku }}", Order=order) == "b"
    assert render("[{{ Variables.Order.ID }}]", Order=order) == "[]"


def test_what_is_not_there_is_written_as_nothing() -> None:
    assert render("[{{ Variables.Nope.deeper }}{{ Input.Nope }}{{ Configuration.Nope }}{{ nope }}]") == "[]"


def test_a_variable_is_asked_for_only_when_the_template_uses_it() -> None:
    class Watched(FakeScope):
        asked: list[str]

        def get_variable(self, name: str) -> Any:
            self.asked.append(name)
            return super().get_variable(name)

    scope = Watched(variables={"A": 1, "B": 2})
    scope.asked = []
    assert render("{% if Variables.A == 1 %}yes{% else %}{{ Variables.B }}{% endif %}", scope) == "yes"
    assert scope.asked == ["A"]


def test_a_blank_template_is_no_text_at_all() -> None:
    assert render("") is None
    assert render(" \n ") is None


def test_a_template_without_markup_is_its_own_text() -> None:
    assert render("Dear { customer } %}, 100 %") == "Dear { customer } %}, 100 %"


# How values are written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (3.0, "3"),
        (-0.5, "-0.5"),
        (1e20, "100000000000000000000"),
        (1e-7, "0.0000001"),
        (float("nan"), "NaN"),
        (Decimal("1.10"), "1.10"),
        (Decimal("12345678901234567890.123456789"), "12345678901234567890.123456789"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02 03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))), "2026-01-02 01:04:05Z"),
        (timedelta(days=1, hours=2, seconds=3), "1.02:00:03"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (b"abc", "YWJj"),
        (["a", 1, 2.0, None, True], "a12true"),
        ({"a": 1.0, "b": [None, "é"]}, '{"a":1,"b":[null,"é"]}'),
        ("<b>&</b>", "<b>&</b>"),
    ],
)
def test_a_value_is_written_as_invariant_text(value: Any, written: str) -> None:
    assert render("{{ Variables.V }}", V=value) == written
    assert render("{% echo Variables.V %}", V=value) == written
    assert render("{{ '' | append: Variables.V }}", V=value) == written


def test_a_range_is_written_by_its_bounds() -> None:
    assert render("{{ (1..3) }}") == "1..3"


@given(st.integers(min_value=-(10**40), max_value=10**40))
def test_integers_of_any_size_are_written_in_full(number: int) -> None:
    assert render("{{ Variables.N }}", N=number) == str(number)


@given(st.text())
def test_text_is_written_unchanged(words: str) -> None:
    assert render("{{ Variables.T }}", T=words) == words
    assert render("{% capture t %}{{ Variables.T }}{% endcapture %}{{ t }}", T=words) == words


# Numbers


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("{{ 0.1 | plus: 0.2 }}", "0.3"),
        ("{{ Variables.Float | plus: 0.2 }}", "0.3"),
        ("{{ Variables.Price | times: 3 }}", "3.30"),
        ("{{ Variables.Price | minus: 0.1 }}", "1.00"),
        ("{{ '4' | plus: '1.5' }}", "5.5"),
        ("{{ 7 | divided_by: 2 }}", "3"),
        ("{{ -7 | divided_by: 2 }}", "-4"),
        ("{{ 7 | divided_by: 2.0 }}", "3.5"),
        ("{{ 20 | divided_by: 7.0 }}", "2.857142857142857"),
        ("{{ 7 | modulo: 3 }} {{ -7 | modulo: 3 }} {{ 7.5 | modulo: 2 }}", "1 -1 1.5"),
        (
            "{{ 12.99 | round }} {{ 2.5 | round }} {{ 3.14159 | round: 2 }} {{ 12.5 | round: 2 }}",
            "13 2 3.14 12.5",
        ),
        ("{{ 1234 | round: -2 }} {{ 1234.5 | round: -2 }}", "1200 1200"),
        ("{{ 1.2 | ceil }} {{ 1.8 | floor }} {{ -3.5 | abs }}", "2 1 3.5"),
        ("{{ 4 | at_least: 5 }} {{ 4 | at_most: 3.5 }}", "5 3.5"),
        ("{{ nil | plus: 1 }} {{ 'words' | plus: 1 }} {{ true | plus: 1 }}", "1 1 2"),
    ],
)
def test_filters_calculate_in_decimals(source: str, written: str) -> None:
    assert render(source, Float=0.1, Price=Decimal("1.10")) == written


def test_numbers_compare_by_value_whatever_their_type() -> None:
    source = "{% if Variables.A == 0.1 and Variables.B == 0.1 and Variables.C == 3 %}equal{% endif %}"
    assert render(source, A=0.1, B=Decimal("0.1"), C=3.0) == "equal"
    assert render("{% if Variables.A < Variables.B %}less{% endif %}", A=1, B=Decimal("1.5")) == "less"


# Lists and objects

PRODUCTS = [
    {"name": "pen", "price": 2.5, "stock": True},
    {"name": "ink", "price": Decimal("10"), "stock": False},
    {"name": "Cap", "price": 1},
]


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("{{ Variables.Products | map: 'name' | join: ', ' }}", "pen, ink, Cap"),
        ("{{ Variables.Products | where: 'price', 2.5 | map: 'name' | join }}", "pen"),
        ("{{ Variables.Products | where: 'stock' | map: 'name' | join }}", "pen"),
        ("{{ Variables.Products | where: 'stock', false | map: 'name' | join }}", "ink"),
        ("{{ Variables.Products | reject: 'stock' | map: 'name' | join }}", "ink Cap"),
        ("{{ Variables.Products | sort: 'price' | map: 'name' | join }}", "Cap pen ink"),
        ("{{ Variables.Products | sort_natural: 'name' | map: 'name' | join }}", "Cap ink pen"),
        ("{{ Variables.Products | sum: 'price' }}", "13.5"),
        ("{{ Variables.Products | find_index: 'name', 'ink' }}", "1"),
        ("{% assign p = Variables.Products | find: 'price', 1 %}{{ p.name }}", "Cap"),
        ("{{ Variables.Products | has: 'name', 'tea' }}", "false"),
        ("{{ Variables.Products | compact: 'stock' | size }}", "2"),
        ("{{ Variables.Products[0] | keys | join }}", "name price stock"),
        ("{{ Variables.Products.first.name }} {{ Variables.Products | last | map: 'name' }}", "pen Cap"),
        ("{{ Variables.Numbers | uniq | join }}", "3 1 2"),
        ("{{ Variables.Numbers | sort | reverse | join }}", "3 3 2 1"),
        ("{{ Variables.Numbers | concat: Variables.Numbers | size }}", "8"),
        ("{{ 'b,a' | split: ',' | sort | first }}", "a"),
        ("{{ Variables.Mixed | sort | join }}", "10 a b"),
    ],
)
def test_lists_are_filtered_as_in_fluid(source: str, written: str) -> None:
    assert render(source, Products=PRODUCTS, Numbers=[3, 1, 3.0, 2], Mixed=["b", 10, "a"]) == written


def test_filters_leave_the_variables_as_they_were() -> None:
    scope = FakeScope(variables={"L": [3, 1, 2]})
    assert render("{{ Variables.L | sort | reverse | concat: Variables.L | join }}", scope) == "3 2 1 3 1 2"
    assert scope.variables == {"L": [3, 1, 2]}


def test_json_is_compact() -> None:
    value = {"id": 1, "price": 12.99, "exact": Decimal("1.10"), "at": datetime(2026, 1, 1, tzinfo=UTC)}
    expected = '{"id":1,"price":12.99,"exact":1.10,"at":"2026-01-01T00:00:00+00:00"}'
    assert render("{{ Variables.V | json }}", V=value) == expected
    assert (
        render("{{ 'a\"b' | json }} {{ nil | json }} {{ Variables.V | json }}", V=True) == '"a\\"b" null true'
    )


def test_json_of_all_variables_is_an_object() -> None:
    assert render("{{ Variables | json }}", A=1, B="x") == '{"A":1,"B":"x"}'


def test_base64_takes_text_bytes_and_objects() -> None:
    assert render("{{ 'abc' | base64 }} {{ Variables.B | base64 }}", B=b"abc") == "YWJj YWJj"
    assert render("{{ Variables.O | base64 | base64_decode }}", O={"a": 1}) == '{"a":1}'
    assert render("[{{ nil | base64 }}]") == "[]"


def test_text_filters_take_any_value() -> None:
    assert (
        render("{{ true | upcase }} {{ 3.0 | append: '!' }} {{ Variables.F | size }}", F="four")
        == "TRUE 3.0! 4"
    )
    assert render("{{ '<p>Hi <b>you</b></p> 1 > 0' | strip_html }}") == "Hi you 1  0"
    assert render(
        "{{ 'HelloBigWorld' | handleize }} {{ '<' | escape }} {{ 'a' | sha256 | slice: 0, 4 }}"
    ) == ("hello-big-world &lt; ca97")


# Dates


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("%Y-%m-%d %H:%M:%S", "2026-03-04 15:06:07"),
        ("%-d.%-m.%y", "4.3.26"),
        ("%e %b, %A %^a", " 4 Mar, Wednesday WED"),
        ("%I:%M %p %l%P", "03:06 PM  3pm"),
        ("%j %U %W %V %u %w", "063 10 10 10 3 3"),
        ("%L %N %z %:z %Z", "089 089000000 +0000 +00:00 +00:00"),
        ("%F %T %D %R %s", "2026-03-04 15:06:07 03/04/26 15:06 1772636767"),
        ("100%% %Q %", "100% %Q %"),
    ],
)
def test_dates_are_formatted_by_directives(form: str, written: str) -> None:
    moment = datetime(2026, 3, 4, 15, 6, 7, 89_000, tzinfo=UTC)
    assert render("{{ Variables.At | date: Variables.Form }}", At=moment, Form=form) == written


@pytest.mark.parametrize(
    "said",
    [
        "2026-03-04T00:00:00Z",
        "2026-03-04",
        "2026/03/04",
        "March 4, 2026",
        "03/04/2026",
        "4 Mar 2026",
        1772582400,
    ],
)
def test_dates_are_understood_in_usual_forms(said: object) -> None:
    assert render("{{ Variables.At | date: '%F' }}", At=said) == "2026-03-04"


def test_what_is_no_date_is_written_as_nothing() -> None:
    assert render("[{{ 'soon' | date: '%F' }}{{ nil | date: '%F' }}{{ true | date: '%F' }}]") == "[]"


def test_now_is_the_instant_of_the_burst() -> None:
    assert render("{{ 'now' | date: '%F' }} {{ now | date: '%Y' }} {{ today }}") == (
        "2026-01-01 2026 2026-01-01 00:00:00Z"
    )


def test_a_template_cannot_move_the_present() -> None:
    assert render("{% assign now = 'then' %}{{ 'now' | date: '%F' }} {{ now }}") == "2026-01-01 then"


def test_dates_move_between_time_zones() -> None:
    at = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert (
        render("{{ Variables.At | time_zone: 'Europe/Vienna' | date: '%H:%M %z' }}", At=at) == "14:00 +0200"
    )


# What stays and what does not


def test_nothing_a_template_keeps_is_there_the_next_time() -> None:
    template = liquid.compile(
        "{% assign Variables = 'mine' %}{% capture c %}x{% endcapture %}{% increment n %}{% increment n %}"
        "{% cycle 'a', 'b' %}{{ Variables }}{{ c }}"
    )
    scope = FakeScope(variables={"A": 1})
    assert [template(scope) for _ in range(3)] == ["01aminex"] * 3
    assert scope.variables == {"A": 1}
    assert render("[{{ c }}{{ n }}]{{ Variables.A }}", scope) == "[]1"


def test_one_compiled_template_serves_many_scopes() -> None:
    template = liquid.compile("{{ Variables.N }}")
    assert [template(FakeScope(variables={"N": n})) for n in (1, 2, 3)] == ["1", "2", "3"]


# What goes wrong, and in which words


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("Hello\n{{ Variables.Name", "line 2: '{{' is never closed with '}}'"),
        ("{% if Variables.A %}x", "expected tag endif"),
        ("a\nb\n{% frobnicate %}", "line 3: unexpected tag 'frobnicate'"),
        ("{{ 1 | frobnicate }}", "line 1: there is no filter 'frobnicate'"),
        ("{% if 1 == 1 %}{{ x | nope }}{% endif %}", "there is no filter 'nope'"),
        ("{% include 'other' %}", "include %} is not available: a template stands alone"),
        ("{% render 'other' %}", "render %} is not available: a template stands alone"),
        ("{% raw %}{{", "'raw' is never closed"),
    ],
)
def test_a_template_that_cannot_be_read_says_where_and_why(source: str, words: str) -> None:
    with pytest.raises(ExpressionInvalid) as caught:
        liquid.compile(source)
    assert words.lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a\n{{ 1 | divided_by: 0 }}", "line 2: divided_by: cannot divide by zero"),
        ("{{ 1 | keys }}", "keys: only an object has keys"),
        ("{{ '/w==' | base64_decode }}", "base64_decode: "),
        ("{{ Variables.L | where }}", "where: missing 1 required"),
    ],
)
def test_a_rendering_that_fails_names_the_filter(source: str, words: str) -> None:
    with pytest.raises(ExpressionFailed) as caught:
        render(source, L=[1])
    assert words in str(caught.value)


def test_markup_inside_raw_is_left_alone() -> None:
    assert render("{% raw %}{{ x }} {% y{% endraw %}") == "{{ x }} {% y"
