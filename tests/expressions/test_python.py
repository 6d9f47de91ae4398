"""What Python expressions see, compute and give."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.expression import ExpressionFailed, ExpressionInvalid, Language
from holdfast.expressions.python import Python
from tests.expressions.scope import FakeScope

python = Python()


def evaluate(source: str, scope: FakeScope | None = None, **variables: Any) -> Any:
    return python.compile(source)(scope or FakeScope(variables=variables))


def test_it_is_a_language() -> None:
    language: Language = python
    assert (language.name, language.display_name, language.editor) == ("Python", "Python", "python")


# What counts as an expression


@pytest.mark.parametrize(
    "source",
    [
        "variables.Count + 1",
        "return variables.Count + 1",
        "\n\n  variables.Count + 1  \n",
        "# how many\n   # there are\n   return variables.Count + 1  # and one\n\n",
        "(variables.Count\n + 1)",
        "\treturn (\n\t\tvariables.Count + 1\n\t)",
        "variables.Count + 1\r\n",
    ],
)
def test_one_expression_is_a_script_with_or_without_return(source: str) -> None:
    assert evaluate(source, Count=2) == 3


@pytest.mark.parametrize("source", ["", "  \n ", "# only a comment", "return"])
def test_nothing_gives_none(source: str) -> None:
    assert evaluate(source) is None


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("variables.Total = 1", 'line 1: a variable is set with variables.Set("Total", ...)'),
        ("\nvariables.Total += 1", 'line 2: a variable is set with variables.Set("Total", ...)'),
        ("variables.A = 1\nreturn variables.A", 'variables.Set("A", ...)'),
        ("x = 1", "nothing can be assigned"),
        ("1\n2", "line 2: only one expression is allowed"),
        ("import os", "nothing can be imported"),
        ("from os import path", "nothing can be imported"),
        ("for x in [1]: x", "loops are not available; write: [something for item in items]"),
        ("while True: 1", "loops are not available"),
        ("if True: 1", "write: this if condition else that"),
        ("def f(): return 1", "another statement (FunctionDef)"),
        ("del variables.X", "another statement (Delete)"),
        ("lambda: 1", "lambda is not available"),
        ("(x := 1)", ":= is not available"),
        ("1 << 2", "<< is not available"),
        ("1 @ 2", "@ is not available"),
        ("1j", "1j is not available"),
        ("...", "Ellipsis is not available"),
        ("*variables.L", "* is available inside lists only"),
        ("max(*variables.L)", "* and ** are not available in calls"),
        ("dict(**variables.L)", "* and ** are not available in calls"),
        ("[x async for x in []]", "async is not available"),
        ("[x for x.y in []]", "only plain names can follow for"),
        ("[1][0]()", "only functions and methods can be called"),
        ("Count + 1", "for a variable write variables.Count"),
        ("len", "to call a function len(...)"),
        ("1 +", "line 1: invalid syntax"),
        ("(1,\n 2", "line 1: '(' was never closed"),
    ],
)
def test_what_is_more_than_an_expression_is_refused_with_advice(source: str, words: str) -> None:
    with pytest.raises(ExpressionInvalid) as caught:
        python.compile(source)
    assert words in str(caught.value)


# What an expression sees


def test_variables_are_members_and_items() -> None:
    assert (
        evaluate("variables.A + variables['B'] + variables.Get('C') + variables.get('C')", A=1, B=2, C=3) == 9
    )


def test_variables_are_set_through_the_scope() -> None:
    scope = FakeScope(variables={"A": 1})
    assert evaluate("[variables.Set('A', variables.A + 1), variables.set('New', (1, {2}))]", scope) == [
        None,
        None,
    ]
    assert scope.variables == {"A": 2, "New": [1, [2]]}


def test_an_unknown_variable_fails_by_name_and_is_none_when_asked_for() -> None:
    with pytest.raises(
        ExpressionFailed, match=r"There is no variable 'Cuont'\. Variables here: Count, Name\."
    ):
        evaluate("variables.Cuont", Count=1, Name="x")
    assert evaluate("variables.Get('Cuont')") is None
    assert evaluate("variables.Get('Cuont', 5)") == 5
    assert evaluate("'Count' in variables and 'Cuont' not in variables", Count=None) is True
    assert evaluate("variables.Count", Count=None) is None


def test_inputs_are_found_in_any_case() -> None:
    scope = FakeScope(given={"City": "Wien"}, declared=["City", "Street"])
    assert evaluate("[input.City, input.city, input['CITY'], input.Get('city'), input.get('x')]", scope) == [
        *["Wien"] * 4,
        None,
    ]
    assert evaluate("input.Street", scope) is None
    with pytest.raises(ExpressionFailed, match=r"There is no input 'Zip'\. Inputs here: City, Street"):
        evaluate("input.Zip", scope)


def test_outputs_and_the_last_result_can_be_read() -> None:
    scope = FakeScope(outputs={("Read1", "Result"): "hi", ("Read1", "Line"): 7}, last_result={"a": 1})
    assert evaluate("[output.Get('Read1'), output.Get('Read1', 'Line'), output.get('Other')]", scope) == [
        "hi",
        7,
        None,
    ]
    assert evaluate("output.LastResult.a + output.last_result['a']", scope) == 2


def test_outcomes_are_set_one_by_one_or_as_a_list() -> None:
    scope = FakeScope()
    evaluate("outcome.Set('Done')", scope)
    assert scope.outcomes == ["Done"]
    evaluate("outcome.Set(['Done', 'Paid'])", scope)
    assert scope.outcomes == ["Done", "Paid"]
    evaluate("outcome.Set('A', 'B')", scope)
    assert scope.outcomes == ["A", "B"]
    with pytest.raises(ExpressionFailed, match="Outcomes can be set by script activities only"):
        evaluate("outcome.Set('Done')", FakeScope(is_script=False))


def test_the_execution_context_tells_who_is_running() -> None:
    assert evaluate(
        "[execution_context.WorkflowInstanceId, execution_context.workflow_instance_id,"
        " execution_context.CorrelationId, execution_context.name, execution_context.WorkflowDefinitionId,"
        " execution_context.version]"
    ) == ["i1", "i1", "c1", "Order 1", "orders", 3]
    with pytest.raises(ExpressionFailed, match="execution_context has no member 'services'"):
        evaluate("execution_context.services")


def test_arguments_are_a_dict() -> None:
    scope = FakeScope(arguments={"Item": 5})
    assert evaluate("args.Item + args['Item'] + args.get('Other', 1) + len(args)", scope) == 12


def test_host_functions_are_called_by_name_with_copies() -> None:
    seen: list[Any] = []
    scope = FakeScope(
        variables={"L": [1, 2]}, functions={"keep": lambda *a, **k: seen.append((a, k)) or [a, k]}
    )
    assert evaluate("keep(variables.L, (1, 2), unit='kg')", scope) == [[[1, 2], [1, 2]], {"unit": "kg"}]
    seen[0][0][0].append(3)
    assert scope.variables == {"L": [1, 2]}


def test_a_host_function_that_raises_makes_the_expression_fail() -> None:
    def lookup() -> None:
        raise OSError("the line is dead")

    with pytest.raises(ExpressionFailed, match=r"lookup\(\) failed: the line is dead"):
        evaluate("lookup()", FakeScope(functions={"lookup": lookup}))


def test_the_present_is_the_instant_of_the_burst() -> None:
    assert evaluate("datetime.utcnow()") == datetime(2026, 1, 1, tzinfo=UTC)


# What it computes


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 2 * 3 - 4 / 2", 5.0),
        ("7 // 2, 7 % 3, 2 ** 10, -3, +3, ~3", [3, 1, 1024, -3, 3, -4]),
        ("6 & 3, 6 | 3, 6 ^ 3", [2, 7, 5]),
        ("1 < variables.Count <= 3", True),
        ("1 < 5 < 3", False),
        ("'da' in variables.Name and not 'x' in variables.Name", True),
        ("None or 0 or 'last'", "last"),
        ("0 and 1", 0),
        ("variables.Missing is None", True),
        ("'many' if variables.Count > 1 else 'one'", "many"),
        (
            "variables.List[0], variables.List[-1], variables.List[1:], variables.List[::-1]",
            [3, 2, [1, 2], [2, 1, 3]],
        ),
        ("variables.Order.lines[0].sku", "a"),
        ("variables.Order['lines'][0]['sku']", "a"),
        ("variables.Order.items, len(variables.Order.items())", [1, 3]),
        ("variables.Order._id", 9),
        ("[x * 2 for x in variables.List if x > 1]", [6, 4]),
        ("[x + y for x in [1, 2] for y in [10, 20] if x + y != 12]", [11, 21, 22]),
        ("[[y for y in range(x)] for x in range(3)]", [[], [0], [0, 1]]),
        ("{k: v for k, v in [('a', 1), ('b', 2)]}", {"a": 1, "b": 2}),
        ("{c for c in 'banana'}", ["a", "b", "n"]),
        ("sum(x for x in variables.List)", 6),
        ("[a + b for a, (b, _) in [(1, (2, 3))]]", [3]),
        ("{**variables.Order, 'items': [*variables.List, 4]}['items']", [3, 1, 2, 4]),
        (
            "f'{variables.Name}: {variables.Count:03d} {1/3:.2f} {variables.Name!r:>6}'",
            "Ada: 003 0.33  'Ada'",
        ),
        (
            "f'{variables.At:%d.%m.%Y} {variables.Price} {variables.List} {None}'",
            "02.01.2026 1.10 [3, 1, 2] None",
        ),
        ("f'{variables.Count:{1 + 2}}|'", "  3|"),
        ("len('abc'), len([1]), len({})", [3, 1, 0]),
        (
            "str(1.5), str(None), str([1, 'a', (2,), {'k': True}])",
            ["1.5", "None", "[1, 'a', (2,), {'k': True}]"],
        ),
        ("int('42'), int(3.9), int('ff', 16), float('1.5'), bool([])", [42, 3, 255, 1.5, False]),
        ("round(2.675, 2), round(2.5), abs(-2)", [2.67, 2, 2]),
        ("min(3, 1), max([1, 5, 2]), any([0, 1]), all([])", [1, 5, True, True]),
        ("sorted([3, 1, 2], reverse=True), reversed('ab')", [[3, 2, 1], ["b", "a"]]),
        (
            "list('ab'), tuple([1]), set([1, 1]), dict(a=1), dict([('b', 2)])",
            [["a", "b"], [1], [1], {"a": 1}, {"b": 2}],
        ),
        (
            "enumerate('ab'), zip([1, 2], 'xy'), range(1, 6, 2)",
            [[[0, "a"], [1, "b"]], [[1, "x"], [2, "y"]], [1, 3, 5]],
        ),
        ("join(', ', ['a', 'b']), ', '.join(['a', 'b'])", ["a, b", "a, b"]),
        ("replace('a-b', '-', '+'), 'a-b'.replace('-', '+')", ["a+b", "a+b"]),
        ("' A b '.strip().upper().split(' ')", ["A", "B"]),
        ("'a b c'.split(maxsplit=1)", ["a", "b c"]),
        ("'abc'.startswith('ab'), 'abc'.find('c'), 'a,b'.partition(',')", [True, 2, ["a", ",", "b"]]),
        ("{'a': 1}.get('b', 2), {'a': 1}.keys(), {'a': 1}.items()", [2, ["a"], [["a", 1]]]),
        ("[1, 2, 1].count(1), (1, 2).index(2), b'abc'.decode(), 2.0.is_integer()", [2, 1, "abc", True]),
        ("{1, 2} & {2, 3}, {1} | {2}, {1, 2} - {1}", [[2], [1, 2], [2]]),
        ("[1] + [2], 'a' + 'b', (1,) + (2,), [0] * 3, 'ab' * 2", [[1, 2], "ab", [1, 2], [0, 0, 0], "abab"]),
    ],
)
def test_it_computes_as_python_does(source: str, value: Any) -> None:
    order = {"lines": [{"sku": "a"}], "items": 1, "_id": 9}
    result = evaluate(
        source,
        Count=3,
        Name="Ada",
        Missing=None,
        List=[3, 1, 2],
        Order=order,
        At=datetime(2026, 1, 2, tzinfo=UTC),
        Price=Decimal("1.10"),
    )
    assert result == value


def test_decimals_are_exact() -> None:
    assert evaluate("Decimal('0.1') + Decimal(0.2) + variables.P", P=Decimal("1.10")) == Decimal("1.40")
    assert str(evaluate("variables.P * 3", P=Decimal("1.10"))) == "3.30"


def test_instants_and_durations_are_calculated_with() -> None:
    at = datetime(2026, 1, 2, 3, tzinfo=UTC)
    assert evaluate("variables.At + timedelta(days=1, hours=2)", At=at) == datetime(2026, 1, 3, 5, tzinfo=UTC)
    assert evaluate("(variables.At - datetime(2026, 1, 1)).total_seconds()", At=at) == 97200
    assert evaluate("datetime.fromisoformat('2026-01-02T03:00:00') == variables.At", At=at) is True
    assert evaluate("[variables.At.year, variables.At.weekday(), variables.At.isoformat()]", At=at) == [
        2026,
        4,
        "2026-01-02T03:00:00+00:00",
    ]
    assert evaluate("timedelta(hours=36)") == timedelta(hours=36)


@given(st.integers(-(10**30), 10**30), st.integers(-(10**30), 10**30))
def test_whole_numbers_are_exact(a: int, b: int) -> None:
    assert evaluate("[variables.A + variables.B, variables.A * variables.B]", A=a, B=b) == [a + b, a * b]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_a_value_comes_out_as_it_went_in_and_as_a_copy(value: Any) -> None:
    result = evaluate("variables.V", V=value)
    assert result == value
    assert not isinstance(value, (list, dict)) or result is not value


@given(values)
def test_text_of_a_value_is_what_python_writes(value: Any) -> None:
    assert evaluate("str(variables.V)", V=value) == str(value)


def test_sets_come_out_in_the_same_order_every_time() -> None:
    assert evaluate("{'pear', 'fig', 'apple'}") == ["apple", "fig", "pear"]
    assert evaluate("[x for x in {3, 1, 2}], str({'b', 'a'}), list({1, 'a'})") == [
        [1, 2, 3],
        "{'a', 'b'}",
        [1, "a"],
    ]


def test_names_of_a_comprehension_end_with_it() -> None:
    scope = FakeScope(variables={"L": [1, 2]})
    assert evaluate("[[x for x in variables.L], [x for x in [9] if [x for x in 'ab']]]", scope) == [
        [1, 2],
        [9],
    ]
    with pytest.raises(ExpressionFailed, match="There is no name 'x' here"):
        evaluate("[[x for x in [1]], x]")


def test_one_compiled_expression_serves_many_scopes() -> None:
    double = python.compile("[variables.N * 2]")
    results = [double(FakeScope(variables={"N": n})) for n in (1, 2, 3)]
    results[0].append("mine")
    assert double(FakeScope(variables={"N": 1})) == [2]
    assert results[1:] == [[4], [6]]


# What goes wrong, and in which words


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("variables.Order.totl", "There is no member 'totl'. Members: total."),
        ("variables.Order['totl']", "There is no member 'totl'. Members: total."),
        ("variables.List[5]", "There is no item 5 in a list of 2."),
        ("variables.Nothing.name", "'name' cannot be read from a value of the type NoneType."),
        ("variables.Name.size", "'size' cannot be read from a value of the type str."),
        ("variables.Name.upper", "upper is a method: call it, as in upper()."),
        ("variables.Name.format(1)", "The type str has no method 'format' here"),
        ("variables.Frobnicate(1)", "variables has no method 'Frobnicate', only: Get, Set, get, set."),
        ("frobnicate(1)", "There is no function 'frobnicate'. Functions: Decimal, abs"),
        ("1 / 0", "The expression failed: division by zero."),
        ("'a' + 1", "can only concatenate str"),
        ("variables.Name < 1", "not supported between instances of 'str' and 'int'"),
        ("int('x')", "invalid literal for int()"),
        ("[a for a, b in [(1, 2, 3)]]", "3 values cannot be taken apart into 2 names."),
        ("[x for x in 5]", "A value of the type int has no items to go through."),
        ("len(5)", "len() does not apply to the type int."),
        ("{1: 2}", "The keys of a dict must be texts, and 1 is not"),
        ("'%s' % 1", "% on a text is not available: use an f-string"),
        ("(-8) ** 0.5", "The root of a negative number"),
        ("variables", "A value of the type Variables is not a value"),
        ("[input]", "A value of the type Input is not a value"),
        ("variables[1]", "A name must be a text, not of the type int."),
        ("input.Get(1)", "A name must be a text"),
        ("outcome.Set(1)", "A name must be a text"),
        ("{**1}", "** in a dict takes another dict"),
        ("5[0]", "A value of the type int has no items to pick."),
    ],
)
def test_a_failure_says_what_is_wrong_and_what_there_is(source: str, words: str) -> None:
    with pytest.raises(ExpressionFailed) as caught:
        evaluate(source, Order={"total": 1}, List=[1, 2], Nothing=None, Name="Ada")
    assert words in str(caught.value)
