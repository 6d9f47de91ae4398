"""Expressions written to take the memory, the processor or the host. None of them gets it."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.expression import ExpressionFailed, ExpressionInvalid
from holdfast.expressions.python import Python
from tests.expressions.scope import FakeScope

python = Python()


class Hostile(FakeScope):
    """Its values are not for `repr`, which pytest uses on everything when a test fails."""

    def __repr__(self) -> str:
        return "Hostile()"


@pytest.fixture
def scope() -> Iterator[FakeScope]:
    """A scope whose own values are as before when the test is over, in a language that still works."""
    scope = Hostile(
        variables={
            "Name": "Ada",
            "Text": "x" * 300_000,
            "List": list(range(30_000)),
            "Dict": {"a": 1},
            "Count": 1,
        },
        functions={"echo": lambda value: value, "opaque": object},
    )
    yield scope
    assert scope.variables["Name"] == "Ada"
    assert scope.variables["Dict"] == {"a": 1}
    assert scope.variables["List"] == list(range(30_000))
    assert python.compile("[variables.Count + 1 for x in [1]]")(scope) == [2]


def attack(source: str, scope: FakeScope) -> str:
    """What the failure says. It comes soon, whichever way the attack is stopped."""
    began = time.thread_time()
    with pytest.raises((ExpressionInvalid, ExpressionFailed)) as caught:
        python.compile(source)(scope)
    assert time.thread_time() - began < 3  # a fraction of it, on a machine with nothing else to do
    return str(caught.value)


TOO_MUCH = "reads or builds too much"
TOO_MANY_STEPS = "takes too many steps"
TOO_LARGE = "A number gets too large"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("9 ** 9 ** 9", TOO_LARGE),
        ("2 ** 100000", TOO_LARGE),
        ("10 ** 2000 * 10 ** 2000", TOO_LARGE),
        ("Decimal(2) ** 10 ** 9", TOO_LARGE),
        ("1 << 10 ** 9", "<< is not available"),
        ("1 >> 1", ">> is not available"),
        ("int('9' * 5000)", "cannot become a number"),
        ("float('9' * 5000)", "cannot become a number"),
        ("str(10 ** 4000)", TOO_LARGE),
        ("0x" + "F" * 15_000, "the number is too large"),
        ("9" * 5000, "the number is too large"),
        ("Decimal('1e999999999')", "too large or too small"),
        ("int(Decimal('9e900') * Decimal('9e900'))", "too large or too small"),
        ("round(Decimal('9e900') * Decimal('9e900'))", "too large or too small"),
        ("f\"{Decimal('9e900') * Decimal('9e900'):f}\"", "too large or too small"),
        ("round(5, -10 ** 9)", "round() goes to at most 100 places"),
        ("timedelta(days=10 ** 400)", "too large"),
    ],
)
def test_numbers_cannot_grow_beyond_writing(source: str, words: str, scope: FakeScope) -> None:
    assert words in attack(source, scope)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("'x' * 10 ** 9", TOO_MUCH),
        ("b'x' * 10 ** 9", TOO_MUCH),
        ("[0] * 10 ** 9", TOO_MUCH),
        ("10 ** 9 * (0,)", TOO_MUCH),
        ("'a'.ljust(10 ** 9)", "no method 'ljust'"),
        ("'a'.center(10 ** 9)", "no method 'center'"),
        ("'a'.zfill(10 ** 9)", "no method 'zfill'"),
        ("'a'.expandtabs(10 ** 9)", "no method 'expandtabs'"),
        ("'%1000000000d' % 5", "% on a text is not available"),
        ("b'%1000000000d' % 5", "% on a text is not available"),
        ("f'{5:1000000000}'", "more than 100 characters of width"),
        ("f'{5:{10 ** 9}}'", "more than 100 characters of width"),
        ("f'{1.5:.1000000000f}'", "more than 100 characters of width"),
        ("datetime(2026, 1, 1).strftime('%1000000000Y')", "more than 100 characters of width"),
        ("f'{datetime(2026, 1, 1):%1000000000d}'", "more than 100 characters of width"),
        ("replace('a' * 1000, 'a', 'b' * 100000)", TOO_MUCH),
        ("('a' * 1000).replace('a', 'b' * 100000)", TOO_MUCH),
        ("'a'.replace('', 'b' * 3000000)", TOO_MUCH),
        ("join('x' * 100000, ['a'] * 1000)", TOO_MUCH),
        ("('x' * 100000).join(['a'] * 1000)", TOO_MUCH),
        ("variables.Text * 100", TOO_MUCH),
        ("f'{variables.Text}' * 100", TOO_MUCH),
        ("[" + "variables.Text + " * 60 + "'']", TOO_MUCH),
        ("range(10 ** 9)", TOO_MUCH),
        ("len(range(10 ** 9))", TOO_MUCH),
        ("range(10 ** 30)", "too large"),
        ("['x' * 100000 for i in range(10000)]", TOO_MUCH),
        ("[variables.Text.upper() for i in range(10000)]", TOO_MUCH),
        ("[f'{variables.Text}{i}' for i in range(10000)]", TOO_MUCH),
    ],
)
def test_texts_and_lists_cannot_fill_the_memory(source: str, words: str, scope: FakeScope) -> None:
    assert words in attack(source, scope)


def test_many_medium_results_count_together(scope: FakeScope) -> None:
    source = "[" + ", ".join(["'x' * 90000"] * 100) + "]"
    assert TOO_MUCH in attack(source, scope)


def _nest(depth: int) -> str:
    """An expression of a few lines whose value holds 10**depth items for whoever goes through them."""
    source = "['x']"
    for name in "abcdefghijklmnop"[:depth]:
        source = f"[[{', '.join(name * 10)}] for {name} in [{source}]][0]"
    return source


NEST = _nest(12)


@pytest.mark.parametrize(
    "source",
    [
        NEST,
        f"str({NEST})",
        f"len(str({NEST}))",
        f"{NEST} == {NEST}",
        f"{NEST} in [{NEST}]",
        f"sorted([{NEST}, {NEST}])",
        f"max([{NEST}, {NEST}])",
        f"echo({NEST})",
        f"variables.Set('Bomb', {NEST})",
        f"f'{{{NEST}}}'".replace("'x'", '"x"'),
        "[[[[[[['x'] * 100] * 100] * 100] * 100] * 100] * 100]",
        "[variables.Set('Bomb', [variables.Get('Bomb')] * 10) for i in range(50)]",
        "len({((((((1,) * 10,) * 10,) * 10,) * 10,) * 10,) * 10})",
        "len([1 for a in [((((((1,) * 10,) * 10,) * 10,) * 10,) * 9,) * 9] for i in range(99) if {a: 1}])",
    ],
)
def test_a_small_value_that_is_huge_to_walk_through_is_refused(source: str, scope: FakeScope) -> None:
    assert TOO_MUCH in attack(source, scope)
    assert len(str(scope.variables.get("Bomb"))) < 5_000_000


def test_a_variable_cannot_be_nested_without_end(scope: FakeScope) -> None:
    source = "[variables.Set('Deep', [variables.Get('Deep')]) for i in range(5000)]"
    assert "nested more than 64 deep" in attack(source, scope)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("[1 for a in range(1000) for b in range(1000) for c in range(1000)]", TOO_MANY_STEPS),
        ("[[j for j in range(1000)] for i in range(1000)]", TOO_MANY_STEPS),
        ("sum(1 for a in range(1000) for b in range(1000))", TOO_MANY_STEPS),
        ("{a: 1 for a in range(200000)}", TOO_MANY_STEPS),
        ("[variables.Text.count('y') for i in range(10000)]", TOO_MUCH),
        ("['y' in variables.Text for i in range(10000)]", TOO_MUCH),
        ("[-1 in variables.List for i in range(10000)]", TOO_MUCH),
        ("[variables.List.index(29999) for i in range(10000)]", TOO_MUCH),
        ("[variables.List == variables.List for i in range(10000)]", TOO_MUCH),
        ("[sorted(variables.List) for i in range(10000)]", TOO_MUCH),
        ("[sum(variables.List) for i in range(10000)]", TOO_MUCH),
        ("[variables.List[1:] for i in range(10000)]", TOO_MUCH),
        ("[set(variables.List) for i in range(10000)]", TOO_MUCH),
        ("[2 ** 4000 % 12345678901 * 3 ** 2500 for i in range(90000)]", TOO_MANY_STEPS),
        ("sum([[1], [2]], [])", "sum() adds numbers"),
        ("sum([[1] * 1000] * 1000, [])", TOO_MUCH),
        ("sum(['a'] * 1000, '')", "sum() adds numbers"),
        ("sorted(list(range(600000)))", TOO_MUCH),
        ("('a' * 100000).strip('b' * 100000 + 'a')", TOO_MUCH),
        ("while True: pass", "loops are not available"),
    ],
)
def test_time_is_counted_in_steps_and_in_what_is_read(source: str, words: str, scope: FakeScope) -> None:
    assert words in attack(source, scope)


@pytest.mark.parametrize(
    "source",
    [
        "-" * 15_000 + "1",
        "not " * 4_000 + "1",
        "(" * 5_000 + "1" + ")" * 5_000,
        "[" * 190 + "]" * 190,
        "[" * 120 + "]" * 120,
        "1" + " + 1" * 3_000,
        "1" + " + 1" * 200,
        "1 if 1 else " * 300 + "1",
        "variables" + ".a" * 9_000,
        "f'{" * 300,
        "{1:" * 300,
        "a" * 25_000,
        "1, " * 6_000 + "-" * 1_000 + "1",
        "[0 " + "for x in [0] if [" * 160,
        "\x00",
        "\ud800",
        "'" * 5_001,
    ],
)
def test_text_that_is_hard_to_parse_is_refused_quickly(source: str, scope: FakeScope) -> None:
    assert attack(source, scope)


@pytest.mark.parametrize(
    "source",
    [
        "open('/etc/passwd').read()",
        "__import__('os').system('id')",
        "eval('1')",
        "exec('1')",
        "compile('1', '', 'eval')",
        "getattr(variables, '_scope')",
        "setattr(variables, 'x', 1)",
        "type(variables)",
        "globals()",
        "locals()",
        "vars(variables)",
        "dir(variables)",
        "input.__class__",
        "object()",
        "print(1)",
        "help()",
        "breakpoint()",
        "().__class__.__bases__[0].__subclasses__()",
        "''.__class__.__mro__",
        "variables.__class__.__init__.__globals__",
        "variables.Get.__globals__",
        "variables._scope",
        "variables._scope.variables",
        "execution_context._scope",
        "output._budget",
        "datetime._scope",
        "datetime.__self__",
        "datetime.max",
        "len.__self__",
        "str.format",
        "'{0.__class__}'.format(1)",
        "'{x}'.format_map({'x': 1})",
        "'a'.__add__('b')",
        "'a'.encode()",
        "(x for x in [1]).gi_frame",
        "[x for x in variables.List].__iter__()",
        "variables.Name.join.__self__",
        "f'{variables.Name.__class__}'",
        "f'{variables!r}'",
        "f'{variables}'",
        "str(variables)",
        "[variables, input]",
        "{'v': variables}",
        "sorted([variables, input])",
        "opaque()",
        "str(opaque())",
        "echo(variables)",
        "echo",
        "variables.Set('x', input)",
        "variables.Set(variables, 1)",
        "[f for f in [len]][0]('a')",
        "[f('a') for f in ['x']]",
        "[len('a') for len in [1]]",
        "await x",
        "yield 1",
        "(lambda: 1)()",
        "[x := 1]",
        "variables.Dict.update({'b': 2})",
        "variables.Dict.pop('a')",
        "variables.Dict.clear()",
        "variables.List.append(1)",
        "variables.List.sort()",
        "variables.List.clear()",
        "datetime.fromtimestamp(0)",
        "timedelta.__new__(1)",
        "Decimal.from_float(1)",
        "import os; os.system('id')",
        "raise SystemExit",
        "assert False",
    ],
)
def test_nothing_of_the_host_can_be_reached_or_changed(source: str, scope: FakeScope) -> None:
    words = attack(source, scope)
    assert "0x" not in words
    assert "object at" not in words


def test_a_result_is_not_the_variable_itself(scope: FakeScope) -> None:
    result = python.compile("variables.Dict")(scope)
    result["b"] = 2
    nested = python.compile("[variables.Dict]")(scope)
    nested[0]["b"] = 2
    assert scope.variables["Dict"] == {"a": 1}


def test_an_attack_in_the_middle_leaves_nothing_in_the_language(scope: FakeScope) -> None:
    bomb = python.compile("[[x, 'x' * 10 ** 9] for x in [1]]")
    for _ in range(3):
        with pytest.raises(ExpressionFailed):
            bomb(scope)
    with pytest.raises(ExpressionInvalid, match="there is no name 'x'"):
        python.compile("x")


def test_the_budget_is_new_for_every_evaluation(scope: FakeScope) -> None:
    nearly = Python(steps=50).compile("[x for x in range(20)]")
    assert [len(nearly(scope)) for _ in range(5)] == [20] * 5
    with pytest.raises(ExpressionFailed, match=TOO_MANY_STEPS):
        Python(steps=30).compile("[x for x in range(20)]")(scope)


def test_a_scope_that_fails_makes_the_expression_fail(scope: FakeScope) -> None:
    class Broken(FakeScope):
        def get_variable(self, name: str) -> Any:
            raise ValueError("the store is away")

    assert "the store is away" in attack("variables.X", Broken())
