"""Templates written to take the memory, the processor or the host. None of them gets it."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.expression import ExpressionFailed, ExpressionInvalid
from holdfast.expressions.liquid import Liquid
from tests.expressions.scope import FakeScope

liquid = Liquid(seconds=0.1)


class Hostile(FakeScope):
    """Its values are not for `repr`, which pytest uses on everything when a test fails."""

    def __repr__(self) -> str:
        return "Hostile()"


@pytest.fixture
def scope() -> Iterator[FakeScope]:
    """A scope that is as before when the test is over, in a language that still works."""
    shared = {"id": "x" * 1000}
    variables: dict[str, Any] = {
        "Name": "Ada",
        "Long": "a" * 200_000,
        "Objects": [shared] * 15_000,
        "Nested": _nested(16),
    }
    scope = Hostile(variables=variables)
    yield scope
    assert scope.variables is variables
    assert list(variables) == ["Name", "Long", "Objects", "Nested"]
    after = liquid.compile("Hello {{ Variables.Name }}{% increment n %}{{ x }}")
    assert after(scope) == "Hello Ada0"


def _nested(depth: int) -> list[Any]:
    """A few hundred bytes that hold 10**depth items for whoever goes through them."""
    value: list[Any] = ["x"]
    for _ in range(depth):
        value = [value] * 10
    return value


def attack(source: str, scope: FakeScope) -> str:
    """What the failure says. It comes soon, whichever way the attack is stopped."""
    began = time.thread_time()
    with pytest.raises((ExpressionInvalid, ExpressionFailed)) as caught:
        liquid.compile(source)(scope)
    assert time.thread_time() - began < 3  # a fraction of it, on a machine with nothing else to do
    return str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        "{{ (1..30000000) | join }}",
        "{{ (1..30000000) | reverse | size }}",
        "{% for i in (1..1000000000) reversed %}{% endfor %}",
        "{% for i in (1..1000000000) offset: 999999999 limit: 1 %}x{% endfor %}",
        "{% tablerow i in (1..1000000000) %}{% endtablerow %}",
        "{% if (1..1000000000) contains 'x' %}{% endif %}",
        "{% case 1 %}{% when (1..1000000000) %}{% endcase %}",
        "{% assign r = (1..1000000000) %}{{ r | sort }}",
        "{{ 'a' | default: (1..1000000000) }}",
    ],
)
def test_a_long_range_is_refused_wherever_it_stands(source: str, scope: FakeScope) -> None:
    assert "a range has more than 20,000 numbers" in attack(source, scope)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{% assign x = x | append: x | append: x %}", "append: a text has more than"),
        ("{% assign x = x | prepend: x %}", "prepend: a text has more than"),
        ("{% assign x = x | replace: 'a', x %}", "replace: a text has more than"),
        ("{% assign x = x | replace: '', x %}", "replace: a text has more than"),
        ("{% assign x = x | url_encode | replace: '%', '%25%25' | append: x %}", "a text has more than"),
        ("{% assign l = l | concat: l %}", "concat: a list has more than 20,000 items"),
        ("{% assign n = n | times: n %}", "times: the number is too large"),
        ("{% capture x %}{{ x }}{{ x }}{% endcapture %}", "the output has more than"),
        ("{% assign l = x | split: '' %}{% assign x = x | append: x %}", "more than"),
    ],
)
def test_what_doubles_in_a_loop_is_stopped(source: str, words: str, scope: FakeScope) -> None:
    start = "{% assign x = 'aaaaaaaaaa' %}{% assign n = 99999 %}{% assign l = 'a,b,c' | split: ',' %}"
    assert words in attack(start + "{% for i in (1..60) %}" + source + "{% endfor %}", scope)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ Variables.Nested | join }}", "join: a value has more than"),
        ("{{ Variables.Nested }}", "a value has more than"),
        ("{{ Variables.Nested | json }}", "json: a value has more than"),
        ("{{ Variables.Nested | upcase }}", "upcase: a value has more than"),
        ("{{ Variables.Nested | uniq | size }}", "uniq: a value has more than"),
        ("{{ Variables.Objects | uniq | size }}", "uniq: a value has more than"),
        ("{{ Variables.Objects | sort_natural | size }}", "sort_natural: a value has more than"),
        ("{{ Variables | json }}", "json: a value has more than"),
    ],
)
def test_a_small_value_that_is_huge_to_write_is_refused(source: str, words: str, scope: FakeScope) -> None:
    assert words in attack(source, scope)


def test_loops_in_loops_are_counted_together(scope: FakeScope) -> None:
    source = "{% for i in (1..20000) %}{% for j in (1..20000) %}x{% endfor %}{% endfor %}"
    assert "a loop goes round more than 20,000 times" in attack(source, scope)


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in (1..20000) %}{% endfor %}" * 200,
        "{% for i in (1..20000) reversed %}{% endfor %}" * 200,
        "{% for i in (1..140) %}{% for j in (1..140) %}{{ 'a' | upcase | downcase }}{% endfor %}{% endfor %}"
        * 9,
        "{% for i in (1..20000) %}{% assign z = Variables.Long | upcase | downcase %}{% endfor %}",
        "{% for i in (1..20000) %}{% assign z = Variables.Objects | map: 'id' %}{% endfor %}",
        "{% for i in (1..20000) %}{% if Variables.Long contains 'b' %}{% endif %}{% endfor %}",
        "{% assign z = Variables.Long | upcase %}" * 2000,
    ],
)
def test_time_runs_out_in_loops_and_between_filters(source: str, scope: FakeScope) -> None:
    assert "rendering took longer than 100 ms" in attack(source, scope)


def test_output_is_limited(scope: FakeScope) -> None:
    assert "the output has more than 1,000,000" in attack("{{ Variables.Long }}" * 10, scope)


def test_assigned_values_are_limited_together(scope: FakeScope) -> None:
    source = "".join(f"{{% assign x{n} = Variables.Long | append: '{n}' %}}" for n in range(100))
    assert "the template assigns more than 4,000,000" in attack(source, scope)


@pytest.mark.parametrize(
    "source",
    [
        "{{ '1e999999999' | plus: 1 }}",
        "{{ '1e999999' | ceil }}",
        "{{ '1e999999' | round: 2 }}",
        "{{ '1e-999999' | times: 2 }}",
    ],
)
def test_numbers_that_are_long_to_write_are_refused(source: str, scope: FakeScope) -> None:
    assert "is too large or too small" in attack(source, scope)


@pytest.mark.parametrize(
    "source",
    [
        "{{" * 40_000,
        "{{" + " " * 90_000,
        "{{" + " " * 4_000 + "}}",
        "{% if" + " " * 4_000 + "%}",
        "{% raw %}" * 10_000,
        "{% doc %}" * 10_000,
        "{{ " + "(" * 4_000 + " }}",
        "{{ a" + "[a" * 1_500 + "]" * 1_500 + " }}",
        "{% if a" + " and a" * 800 + " %}{% endif %}",
        "{% if a %}" * 5_000,
        "{{ " + "9" * 4_500 + " }}",
        "{{ x }}" * 20_000,
    ],
)
def test_a_template_that_is_hard_to_read_is_refused_quickly(source: str, scope: FakeScope) -> None:
    assert attack(source, scope)


@pytest.mark.parametrize(
    "path",
    [
        "Variables.__class__",
        "Variables.__class__.__mro__",
        "Variables._get.__globals__",
        "Variables._names",
        "Variables.Name.__class__",
        "Variables.Name.upper",
        "Variables.Objects.append",
        "Variables.Objects[0].keys",
        "Variables['__init__']",
        "Input.__class__",
        "Configuration.__class__",
        "now.__class__",
        "now.year",
        "forloop",
        "scope",
        "self",
        "_scope",
    ],
)
def test_nothing_of_python_can_be_reached(path: str, scope: FakeScope) -> None:
    assert liquid.compile(f"[{{{{ {path} }}}}]")(scope) == "[]"
    loop = (
        f"{{% for i in (1..1) %}}{{{{ forloop.parentloop.__class__ }}}}{{{{ forloop.it }}}}{{{{ {path} }}}}"
    )
    assert liquid.compile(f"[{loop}{{% endfor %}}]")(scope) == "[]"
    assert (
        liquid.compile(f"{{{{ Variables.Objects | map: '__class__' | compact | size }}}}{{{{ {path} }}}}")(
            scope
        )
        == "0"
    )


def test_a_format_cannot_ask_for_a_width(scope: FakeScope) -> None:
    assert liquid.compile("{{ 'now' | date: '%999999999Y' }}")(scope) == "%999999999Y"


def test_a_long_format_is_refused(scope: FakeScope) -> None:
    assert "the format has more than 1,000" in attack("{{ 'now' | date: Variables.Long }}", scope)


def test_stripping_brackets_takes_no_time_squared(scope: FakeScope) -> None:
    source = "{% assign x = Variables.Long | replace: 'a', '<a' | strip_html %}{{ x | size }}"
    assert liquid.compile(source)(scope) == "0"


def test_a_scope_that_fails_makes_the_template_fail(scope: FakeScope) -> None:
    class Broken(FakeScope):
        def get_variable(self, name: str) -> Any:
            raise ValueError("the store is away")

    assert "the store is away" in attack("{{ Variables.X }}", Broken())
