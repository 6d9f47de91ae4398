"""What JavaScript expressions see, give and change. What they may not do is in test_javascript_hostile."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.expression import ExpressionFailed, ExpressionInvalid
from holdfast.expressions.javascript import JavaScript
from tests.expressions.scope import FakeScope

LANGUAGE = JavaScript()


def evaluate(source: str, scope: FakeScope | None = None) -> Any:
    return LANGUAGE.compile(source)(scope or FakeScope())


# --- the value of a script


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 1", 2),
        ("1 + 1;", 2),
        ("'a' + 1 ;;\n", "a1"),
        ("// why\n5 // because; see below", 5),
        ("/* a; b */ 5", 5),
        ("var x = 2; x * 3", 6),
        ("var x = 2\nx * 3", 6),
        ("var x = 2\n\n\n// note\nx * 3\n", 6),
        ("let x = 1; // then; that\nx + 1", 2),
        ("var f = function () { return 3 }\nf()", 3),
        ("function twice(n) { return n * 2 }\ntwice(4)", 8),
        ("function twice(n) { return n * 2 } twice(4)", 8),
        ("class A { v() { return 1 } }\nnew A().v()", 1),
        ("var s = 0; for (const n of [1, 2, 3]) { s += n } s", 6),
        ("var s = 0; for (const n of [1, 2, 3]) { s += n }", 6),
        ("if (1 > 2) { 'yes' } else { 'no' }", "no"),
        ("switch (2) { case 2: 'two' }", "two"),
        ("try { null.x } catch (e) { e.name }", "TypeError"),
        ("var a = {}\n;[1, 2].length", 2),
        ("var f = x => x\n(7)", None),
        ("var a = 1, b = a\n+ 5", None),
        ("'use strict'; 3", 3),
        ("`a;\n}b`", "a;\n}b"),
        ("`${[1, 2].map(n => { return n + 1 })}`", "2,3"),
        ("/;}/.test(';}')", True),
        ("const o = { a: 1 }\no", {"a": 1}),
        ("({ a: 1 })", {"a": 1}),
        ("{ a: 1 }", 1),  # a block with a label, as in Jint
        ("return 5", 5),
        ("return;", None),
        ("const x = 5;\nreturn x + 1;", 6),
        ("if (false) return 1\n2", 2),
        ("if (true) { return 1 }\n2", 1),
        ("'please return it'", "please return it"),
        ("function f() { return 1 }", None),
        ("x = 1, x + 1", 2),
        ("", None),
        ("  \n", None),
        ("// nothing", None),
        ("undefined", None),
        ("async () => 1, 4", 4),
        ("(async () => { await null; return 7 })()", 7),
        ("Promise.resolve([1]).then(l => l.length)", 1),
        ("let order; (async () => { order = 5 })(); order", 5),
        ("(1, eval)('2 + 2')", 4),
        ("label: for (;;) { break label }\n8", 8),
        ("0x10 + 0b11", 19),
        ("-0", 0),
        ("\ufeff1", 1),
    ],
)
def test_a_script_comes_to_its_last_expression_or_what_it_returns(source: str, value: Any) -> None:
    assert evaluate(source) == value


@pytest.mark.parametrize(
    "source",
    [
        "var a = 1\nvar b = a + 1\nb",
        "function f() {\n return 2\n}\nf()",
        "let total = 0;\nfor (const n of [1, 1]) {\n total += n;\n}\ntotal",
        "total = 2; total",
        "const f = () => {\n return 2 }\nf()",
        "if (true) { x = 2 } x",
    ],
)
def test_scripts_of_several_statements_are_compiled_and_not_evaluated_anew_each_time(source: str) -> None:
    script: Any = LANGUAGE.compile(source)
    assert script(FakeScope()) == 2
    assert "eval" not in script._body


def test_a_text_that_is_no_javascript_says_where() -> None:
    with pytest.raises(ExpressionInvalid, match=r"SyntaxError: .* \(line 3\)"):
        LANGUAGE.compile("var a = 1\n\nvar b = = 2")


@pytest.mark.parametrize(
    "source", ["a b", "}", "})(); (() => {", "}}); (() => {{", "1)(2", "'", "\ud800", "x" * 200_000]
)
def test_what_does_not_compile_is_invalid(source: str) -> None:
    with pytest.raises(ExpressionInvalid):
        LANGUAGE.compile(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("foo", "ReferenceError: foo is not defined (line 1)"),
        ("1\n\nfoo", "ReferenceError: foo is not defined (line 3)"),
        ("var a = 1\nif (a) {\n  a.b.c\n}", "TypeError: cannot read property 'c' of undefined (line 3)"),
        ("function f() {\n throw new RangeError('far') }\nf()", "RangeError: far (line 2)"),
        ("return getTotal()", "ReferenceError: getTotal is not defined (line 1)"),
        ("\nparseGuid('x')", "Error: 'x' is not a GUID. (line 2)"),
        ("throw new Error()", "Error (line 1)"),
        ("DateTime.UtcNow.AddDays(1e9)", "RangeError: The date is out of range. (line 1)"),
        ("throw 'text'", "Threw text"),
        ("throw null", "Threw null"),
        ("throw { code: 5 }", 'Threw {"code":5}'),
        ("Promise.reject(new Error('later'))", "Error: later (line 1)"),
        ("new Promise(() => {})", "The result is a promise that nothing resolves."),
        ("0 / 0", "The result is NaN, which is not a number to keep."),
        ("-1 / 0", "The result is -Infinity, which is not a number to keep."),
        ("[1 / 0]", "The result holds Infinity, which is not a number to keep."),
        ("() => 1", "The result is a function. Only data can leave a script."),
        ("Symbol()", "The result is a symbol. Only data can leave a script."),
        ("var a = []; a[0] = a; a", "The result contains itself."),
        ("var a = []; for (let i = 0; i < 64; i++) a = [a]; a", "The result is nested deeper than 64."),
        ("new Date(NaN)", "The result holds an invalid date."),
        ("new Date(8e15)", "A date lies outside the years 1 to 9999."),
        ("'x'.repeat(5e6)", "What the script gives back is too large."),
        ("setVariable('x', () => 1)", "Variable x is a function. Only data can leave a script."),
        ("new Function('return 1')", "EvalError: Functions cannot be made from text here. (line 1)"),
    ],
)
def test_a_failure_says_what_happened_and_in_which_line(source: str, message: str) -> None:
    with pytest.raises(ExpressionFailed) as failure:
        evaluate(source)
    assert str(failure.value) == message


# --- variables


def test_variables_are_read_by_name_by_accessor_and_from_the_container() -> None:
    scope = FakeScope(variables={"total": 5, "Name": "Ann", "my_item": 7, "empty": None, "nö": 1, "a b": 2})
    assert (
        evaluate("[getTotal(), getVariable('total'), variables.total, variables['total']]", scope) == [5] * 4
    )
    assert evaluate("getName() + getEmpty()", scope) == "Annnull"
    assert evaluate("[getMyItem(), getVariable('a b'), getVariable('gone')]", scope) == [7, 2, None]
    assert evaluate("let n = 'to' + 'tal'; [getVariable(n), variables[n]]", scope) == [5, 5]
    assert evaluate("Object.keys(variables).includes('Name') && 'total' in variables", scope) is True
    assert evaluate("const { total, Name } = variables; total + Name", scope) == "5Ann"
    assert evaluate("({ ...variables }).Name", scope) == "Ann"
    assert evaluate("[...getName(), getNö()]", scope) == ["A", "n", "n", 1]


def test_only_a_variable_in_scope_has_an_accessor() -> None:
    assert evaluate("typeof getTotal", FakeScope()) == "undefined"
    assert evaluate("typeof getTotal", FakeScope(variables={"total": None})) == "function"
    script = LANGUAGE.compile("typeof getTotal === 'function' ? getTotal() : 'none'")
    scopes = [FakeScope(variables={"total": 1}), FakeScope(), FakeScope(variables={"Total": 2})]
    assert [script(scope) for scope in scopes] == [1, "none", 2]


@pytest.mark.parametrize(
    "source",
    [
        "setTotal(6)",
        "setVariable('total', 6)",
        "variables.total = 6",
        "variables['to' + 'tal'] = 6",
        "variables.total++",
        "setTotal(getTotal() + 1)",
        "setVariable('total', 1); if (getTotal() === 1 && variables.total === 1) variables.total = 6",
        "(async () => { await null; setTotal(6) })(); 1",
    ],
)
def test_a_variable_is_written_when_the_script_has_ended(source: str) -> None:
    scope = FakeScope(variables={"total": 5})
    evaluate(source, scope)
    assert scope.variables == {"total": 6}


def test_what_is_written_is_read_again_in_the_same_script() -> None:
    scope = FakeScope(variables={"total": 5})
    assert evaluate("setTotal(6); [getTotal(), getVariable('total'), variables.total]", scope) == [6] * 3


def test_a_variable_nobody_declared_is_created() -> None:
    scope = FakeScope()
    assert evaluate("setVariable('made', [1]); variables.other = 2; getVariable('made')", scope) == [1]
    assert scope.variables == {"made": [1], "other": 2}


def test_a_value_changed_in_place_is_written_too() -> None:
    scope = FakeScope(
        variables={"order": {"lines": [1]}, "list": [1], "when": datetime(2026, 1, 1, tzinfo=UTC)}
    )
    evaluate("getOrder().lines.push(2); variables.list.length = 0; getVariable('when').setUTCDate(2)", scope)
    assert scope.variables["order"] == {"lines": [1, 2]}
    assert scope.variables["list"] == []
    assert scope.variables["when"] == datetime(2026, 1, 2, tzinfo=UTC)


def test_a_value_only_looked_at_is_not_written() -> None:
    class Watched(FakeScope):
        def set_variable(self, name: str, value: Any) -> None:
            raise AssertionError(f"{name} was written")

    order: dict[str, Any] = {
        "a": 1.0,
        "b": 1e-7,
        "10": "é\u2028\x01",
        "2": None,
        "when": datetime(2026, 1, 1, microsecond=1),
        "id": 2**70,
        "raw": b"\0\1",
        "wait": timedelta(microseconds=1),
    }
    scope = Watched(variables={"order": order, "list": [1.5, [2]], "when": datetime(2026, 1, 1, tzinfo=UTC)})
    assert evaluate("getOrder().a + getList()[0] + variables.when.getTime() * 0", scope) == 2.5


def test_null_in_the_container_is_not_copied_back_but_set_variable_writes_it() -> None:
    scope = FakeScope(variables={"a": 1, "b": 1, "c": [1]})
    assert evaluate("variables.a = null; variables.c = undefined; setB(null); variables.a", scope) is None
    assert scope.variables == {"a": 1, "b": None, "c": [1]}


def test_a_script_that_fails_changes_nothing() -> None:
    scope = FakeScope(variables={"total": 5})
    for source in [
        "setTotal(6); throw 1",
        "setTotal(6); setCorrelationId('x'); (() => 1)",
        "setTotal(6); for (;;);",
    ]:
        with pytest.raises(ExpressionFailed):
            evaluate(source, scope)
    assert (scope.variables, scope.correlation_id) == ({"total": 5}, "c1")


def test_names_assigned_without_a_declaration_belong_to_this_evaluation() -> None:
    assert evaluate("a = 1; b = c = 2; d += 1; [a, b, c, typeof d]") == [1, 2, 2, "number"]
    assert evaluate("for (k in { x: 1 }) {} k") == "x"
    assert evaluate("[p, q] = [1, 2]; ({ r } = { r: 3 }); p + q + r") == 6
    assert evaluate("[p, q] = ['1', '2'].map(Number).map(isNaN).map(toJson); p + q") == "falsefalse"
    assert evaluate("i = 0; i++; ++i; f = () => { i = 9 }; f(); i") == 9
    for name in ["a", "b", "c", "k", "p", "r", "i", "f"]:
        assert evaluate(f"typeof {name}") == "undefined"


def test_a_script_may_use_our_names_for_its_own() -> None:
    scope = FakeScope(variables={"total": 5})
    assert evaluate("const getTotal = () => 1; getTotal()", scope) == 1
    assert evaluate("function getTotal() { return 2 } getTotal()", scope) == 2
    assert evaluate("var getTotal = 3; getTotal", scope) == 3
    assert evaluate("let variables = { total: 4 }; variables.total", scope) == 4
    assert evaluate("const args = [1]; let toJson = 5; args[0] + toJson", scope) == 6


# --- the rest of the scope


def test_identity_correlation_and_name() -> None:
    scope = FakeScope()
    identity = "getWorkflowDefinitionId(), getWorkflowDefinitionVersionId(), getWorkflowDefinitionVersion()"
    assert evaluate(f"[{identity}, getWorkflowInstanceId()]", scope) == ["orders", "orders-v3", 3, "i1"]
    assert evaluate("[getCorrelationId(), getWorkflowInstanceName()]", scope) == ["c1", "Order 1"]
    assert evaluate("setCorrelationId('c2'); setWorkflowInstanceName(7); getCorrelationId()", scope) == "c2"
    assert (scope.correlation_id, scope.instance_name) == ("c2", "7")
    evaluate("setCorrelationId('x'.repeat(5000))", scope)
    assert scope.correlation_id == "x" * 5000
    evaluate("setCorrelationId(null)", scope)
    assert scope.correlation_id is None


def test_a_variable_hides_a_function_of_ours_with_its_name_as_in_elsa() -> None:
    scope = FakeScope(variables={"CorrelationId": "mine", "Variable": 1, "input": 2}, given={"a": 5})
    assert evaluate("getCorrelationId()", scope) == "mine"
    assert evaluate("setCorrelationId('other')", scope) is None
    assert (scope.variables["CorrelationId"], scope.correlation_id) == ("other", "c1")
    assert evaluate("[getVariable('input'), getInput('a')]", scope) == [2, 5]


def test_inputs_outputs_arguments_and_configuration() -> None:
    scope = FakeScope(
        variables={"Customer": "variable"},
        given={"Customer": "Ann", "order": {"id": 1}},
        declared=["Customer", "Limit"],
        outputs={("fetch", "Result"): {"ok": True}, ("fetch", "Status"): 200},
        accessors={"getStatusFromFetch1": ("fetch", "Status")},
        arguments={"Item": [1], "index": 2},
        configuration={"Mail": {"Host": "mx"}, "A:B": 1},
        last_result="last",
    )
    assert evaluate("[getCustomer(), getLimit(), getInput('ORDER').id]", scope) == ["Ann", None, 1]
    assert evaluate("let n = 'cust'; getInput(n + 'omer')", scope) == "Ann"
    assert evaluate("[getOutputFrom('fetch').ok, getOutputFrom('fetch', 'Status')]", scope) == [True, 200]
    assert evaluate("let a = 'fetch'; getOutputFrom(a, 'Stat' + 'us')", scope) == 200
    assert evaluate("getStatusFromFetch1() + getLastResult()", scope) == "200last"
    assert evaluate("[args.Item, getItem(), getIndex(), args.index]", scope) == [[1], [1], 2, 2]
    assert evaluate("[getConfig('Mail:Host'), getConfig('A:B'), getConfig('Mail:Host:x')]", scope) == [
        "mx",
        1,
        None,
    ]
    assert evaluate("args", FakeScope()) == {}


def test_outcomes_are_set_where_the_activity_listens_and_fail_elsewhere() -> None:
    scope = FakeScope()
    evaluate("setOutcome('Paid')", scope)
    assert scope.outcomes == ["Paid"]
    evaluate("setOutcomes(['A', 1]); setOutcomes('B', 'C')", scope)
    assert scope.outcomes == ["B", "C"]
    with pytest.raises(ExpressionFailed, match="script activities only"):
        evaluate("setOutcome('Paid')", FakeScope(is_script=False))


def test_host_functions_are_called_once_each_whatever_happens_around_them() -> None:
    calls: list[Any] = []

    def add(*numbers: Any) -> Any:
        calls.append(numbers)
        return {"sum": sum(numbers)}

    def fail(_: Any = None) -> None:
        raise ValueError("no luck")

    scope = FakeScope(functions={"add": add, "fail": fail, "unused": fail}, variables={"one": 1})
    source = "let a = add(1, 2).sum; try { a += add(a, getOne()).sum } finally { a += 0 } [a, add().sum]"
    assert evaluate(source, scope) == [7, 0]
    assert calls == [(1, 2), (3, 1), ()]
    assert evaluate("try { fail() } catch (e) { e.message }", scope) == "no luck"
    assert evaluate("[1, 2, 3].map(n => add(n).sum)", scope) == [1, 2, 3]
    with pytest.raises(ExpressionFailed, match=r"Error: no luck \(line 2\)"):
        evaluate("\nfail(1)", scope)
    calls.clear()
    assert evaluate("try { add(1) } catch { add(2) }", scope) == {"sum": 1}
    assert calls == [(1,)]  # the catch ran while the answer was not there yet; that did not count


def test_values_reach_host_functions_and_come_back_as_they_are() -> None:
    seen: list[Any] = []
    scope = FakeScope(functions={"keep": lambda value: seen.append(value) or value})
    evaluate(
        "keep(new Date(0)); keep(TimeSpan.FromDays(1)); keep(bytesFromString('a')); keep([2n ** 64n])", scope
    )
    assert seen == [datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1), b"a", [2**64]]
    assert evaluate("keep(new Date(5)).getTime()", scope) == 5


@pytest.mark.parametrize(
    "source",
    [
        "eval('getTotal() + getLimit() + twice(1)')",
        "this['get' + 'Total']() + this.getLimit() + this['twice'](1)",
        "globalThis.getTotal() + globalThis['get' + 'Limit']() + globalThis.twice(1)",
        "with ({ a: 1 }) { a + getTotal() + getLimit() - 1 + twice(1) }",
        "let f = 'get' + 'Total'; eval(f + '()') + getLimit() + twice(1)",
    ],
)
def test_names_looked_for_at_run_time_are_found_too(source: str) -> None:
    scope = FakeScope(variables={"total": 5}, given={"Limit": 3}, functions={"twice": lambda n: 2 * n})
    assert evaluate(source, scope) == 10


def test_globals_that_a_script_sets_are_its_own() -> None:
    assert evaluate("globalThis.a = 1; this.a === undefined ? 0 : globalThis.a") == 1
    assert evaluate("typeof globalThis.a") == "undefined"


# --- time and chance


def test_time_is_the_time_of_the_burst() -> None:
    scope = FakeScope(now_ms=1_000.5)
    assert evaluate("[Date.now(), new Date().getTime(), +DateTime.UtcNow]", scope) == [1000.5, 1000, 1000]
    assert evaluate("Date()", scope) == evaluate("new Date(1000).toString()")
    assert evaluate("new Date(2020, 0).getFullYear() + Date.UTC(1970, 0)") == 2020
    assert evaluate("new Date() instanceof Date && DateTime.Now instanceof Date") is True
    assert evaluate("let D = globalThis['Da' + 'te']; D.now()", scope) == 1000.5


def test_chance_is_the_same_when_a_burst_is_done_again() -> None:
    source = "[Math.random(), Math.random(), newGuid(), new Random().Next(100)]"
    first, again = evaluate(source, FakeScope()), evaluate(source, FakeScope())
    assert first == again
    assert first != evaluate(source, FakeScope(guids=5))
    assert first[0] != first[1]


def test_random_numbers_are_spread_evenly() -> None:
    source = "Array.from({ length: 2000 }, Math.random)"
    drawn = evaluate(source)
    assert all(0 <= number < 1 for number in drawn)
    assert 900 < sum(drawn) < 1100


def test_guids_are_drawn_from_the_scope_as_many_as_are_asked_for() -> None:
    scope = FakeScope()
    drawn = evaluate("Array.from({ length: 50 }, () => newGuid())", scope)
    assert len(set(drawn)) == 50
    assert drawn[0] == "00000000-0000-0000-0000-000000000001"
    assert (
        evaluate("Guid.NewGuid().ToString('N').length + newGuidString().length + getGuidString().length")
        == 104
    )
    assert 10 < len(evaluate("newShortGuid()")) <= 22
    assert (
        evaluate("parseGuid('{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}')")
        == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    )


# --- functions and host types


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[null, undefined, '', ' ', 'a', 0].map(isNullOrEmpty)", [True, True, True, False, False, False]),
        (
            "[null, undefined, '', ' ', 'a', 0].map(isNullOrWhiteSpace)",
            [True, True, True, True, False, False],
        ),
        (
            "toJson({ a: [1, 2n ** 64n], d: new Date(0), b: bytesFromString('a'), u: undefined })",
            '{"a":[1,18446744073709551616],"d":"1970-01-01T00:00:00.000Z","b":"YQ=="}',
        ),
        ("toJson(undefined)", "null"),
        ("toJson(TimeSpan.FromSeconds(90))", '"00:01:30"'),
        ("bytesToString(bytesFromString('aé€😀'))", "aé€😀"),
        (
            "bytesToString(new Uint8Array([97, 0xff, 0xe2, 0x82, 98, 0xc0, 0x80]))",
            "a\ufffd\ufffdb\ufffd\ufffd",
        ),
        ("bytesToBase64(bytesFromString('hi'))", "aGk="),
        ("bytesToString(bytesFromBase64('aGk='))", "hi"),
        ("stringToBase64('é')", "w6k="),
        ("stringFromBase64('w6k=')", "é"),
        ("streamToBase64(streamToBytes(bytesFromString('hi')))", "aGk="),
        ("btoa('hi') + atob('aGk=')", "aGk=hi"),
        ("TimeSpan.FromMinutes(90).TotalHours", 1.5),
        ("TimeSpan.FromHours(25).ToString()", "1.01:00:00"),
        ("TimeSpan.Parse('-1.02:03:04.5').toString()", "-1.02:03:04.5000000"),
        ("String(new TimeSpan(1, 2, 3))", "01:02:03"),
        ("TimeSpan.FromSeconds(90).minutes + TimeSpan.fromSeconds(90).Seconds", 31),
        ("TimeSpan.FromDays(1) > TimeSpan.FromHours(23)", True),
        ("TimeSpan.FromDays(1).Add(TimeSpan.FromHours(1)).Subtract(TimeSpan.FromHours(2)).TotalHours", 23),
        ("DateTime.UtcNow.AddDays(31).ToString('yyyy-MM-dd HH:mm')", "2026-02-01 00:00"),
        ("DateTime.Parse('2024-01-31').AddMonths(1).ToString('o')", "2024-02-29T00:00:00.0000000Z"),
        ("DateTime.Parse('2024-01-31 10:20').ToString()", "01/31/2024 10:20:00"),
        (
            "new DateTime(2024, 3, 5, 14, 7, 9).ToString(\"dddd d MMMM yy, h:mm tt 'o''clock'\")",
            "Tuesday 5 March 24, 2:07 PM oclock",
        ),
        (
            "let d = new DateTime(2024, 12, 31); [d.Year, d.Month, d.Day, d.DayOfYear, d.dayOfWeek]",
            [2024, 12, 31, 366, 2],
        ),
        ("DateTime.Parse('2024-01-02').Subtract(DateTime.Parse('2024-01-01')).TotalDays", 1),
        ("DateTime.UtcNow.AddHours(1) > DateTime.UtcNow", True),
        ("DateTime.UtcNow.addSeconds(1).Equals(DateTimeOffset.UtcNow.AddSeconds(1))", True),
        ("DateTimeOffset.FromUnixTimeSeconds(60).ToUnixTimeSeconds()", 60),
        ("new DateTime(0).Year", 1),
        ("[1, 5].every(n => { const r = new Random(n).Next(3, 6); return r >= 3 && r < 6 })", True),
        ("Guid.Empty", "00000000-0000-0000-0000-000000000000"),
    ],
)
def test_functions_and_types_of_the_host(source: str, value: Any) -> None:
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("function P() {} P.prototype.toString = () => 'mine'; `${new P()}`", "mine"),
        ("let o = {}; o.constructor = 5; o.valueOf = 6; [o.constructor, Object.keys(o).length]", [5, 2]),
        ("let e = new Error(); e.message = 'm'; e.name = 'N'; `${e}`", "N: m"),
        (
            (
                "class E extends Error { constructor() { super(); this.name "
                "= 'E' } } try { throw new E() } catch (e) { e.name }"
            ),
            "E",
        ),
        ("let a = [1]; a.toString = () => 'mine'; a.constructor = 5; [`${a}`, a.constructor]", ["mine", 5]),
        (
            (
                "function L() {} L.prototype = Object.create(Array.prototype); "
                "L.prototype.constructor = L; new L().constructor === L"
            ),
            True,
        ),
        ("Object.prototype.toString.call([])", "[object Array]"),
        ("({}).constructor === Object && [].constructor === Array", True),
        ("(() => 1) instanceof Function", True),
        ("[1, [2, [3]]].flat(Infinity).concat([4], 5, [[6]])", [1, 2, 3, 4, 5, [6]]),
        ("[3, 1, 2].sort().reverse().join('-') + [1, 2].flatMap(n => [n, n])", "3-2-11,1,2,2"),
        ("[1, 2, 3, 4].slice(1, -1).concat([9].splice(0, 1))", [2, 3, 9]),
        ("(function () { return Array.prototype.slice.call(arguments, 1) })(1, 2, 3)", [2, 3]),
        ("Array.prototype.join.call('abc', '.')", "a.b.c"),
        ("'a.b.c'.split('.').length + 'aXbX'.replace('X', '-') + 'aXbX'.replaceAll('X', '')", "3a-bXab"),
        ("'a1b22'.replace(/\\d+/g, d => `<${d}>`) + 'a1b'.split(/\\d/)", "a<1>b<22>a,b"),
        (
            (
                "'abc'.indexOf('c') + 'abcabc'.lastIndexOf('b') "
                "+ +'abc'.includes('bc') + +'abc'.includes('a', 1)"
            ),
            7,
        ),
        ("'a,b'.split()[0] + 'null'.indexOf(null) + 'abc'.split('').length", "a,b03"),
        ("String.raw`a\\n${1}b`", "a\\n1b"),
        ("JSON.stringify({ a: 1, b: 2 }, ['a']) + JSON.stringify([1], null, 1)", '{"a":1}[\n 1\n]'),
        ("new Map([[1, 2]]).get(1) + new Set([1, 1]).size", 3),
        ("function* g() { yield 1; yield 2 } [...g()]", [1, 2]),
        ("Object.entries({ a: 1 }).map(([k, v]) => k + v)[0]", "a1"),
        ("[1, 2, 3].at(-1) ?? 0", 3),
        ("({ a: { b: null } }).a?.b?.c ?? 'none'", "none"),
    ],
)
def test_ordinary_javascript_works_although_everything_is_frozen(source: str, value: Any) -> None:
    assert evaluate(source) == value


# --- conversion


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("3.0", 3),
        ("2 ** 53", 2**53),
        ("2 ** 60", float(2**60)),
        ("[2 ** 60, 1e300, 1.5]", [float(2**60), 1e300, 1.5]),
        ("2n ** 64n", 2**64),
        ("true", True),
        ("'\\0\\ud83d\\ude00'", "\0😀"),
        ("'a\\ud800'", "a\ufffd"),
        ("({ '\\ud800': 1 })", {"\ufffd": 1}),
        ("new Date(1500)", datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)),
        ("[new Date(0)]", [datetime(1970, 1, 1, tzinfo=UTC)]),
        ("TimeSpan.FromMilliseconds(1.5)", timedelta(microseconds=1500)),
        ("new Uint8Array([1, 2])", b"\1\2"),
        ("new Uint8Array([1, 2, 3]).subarray(1)", b"\2\3"),
        ("new Uint8Array([1, 2]).buffer", b"\1\2"),
        ("new Float64Array([1.5, 2])", [1.5, 2]),
        ("new Map([['a', new Set([1, 2])], [5, null]])", {"a": [1, 2], "5": None}),
        ("({ f() {}, s: Symbol(), u: undefined, n: null })", {"n": None}),
        ("[() => 1, undefined]", [None, None]),
        ("[new Number(1), new String('a'), new Boolean(false)]", [1, "a", False]),
        ("({ toJSON() { return { a: 1 } } })", {"a": 1}),
        ("class P { constructor() { this.x = 1 } get y() { return 2 } } new P()", {"x": 1}),
        (
            "try { null.x } catch (e) { e }",
            {"name": "TypeError", "message": "cannot read property 'x' of null"},
        ),
        ("[/a/g]", ["/a/g"]),
        ("({ __proto__: null, ['__proto__']: 1 })", {"__proto__": 1}),
        ("[,1]", [None, 1]),
        ("Object.create({ inherited: 1 })", {}),
    ],
)
def test_what_a_script_gives_becomes_plain_python(source: str, value: Any) -> None:
    result = evaluate(source)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("value", "source", "seen"),
    [
        (5, "typeof v + v", "number5"),
        (2**31, "v + 1", 2**31 + 1),
        (-(2**53), "v", -(2**53)),
        (2**53 + 1, "typeof v + v", "bigint9007199254740993"),
        ({"id": 2**53 + 1}, "`${v.id}`", "9007199254740993"),
        (Decimal("1.5"), "v + 1", 2.5),
        ([Decimal("0.1")], "v[0]", 0.1),
        (UUID(int=5), "v", "00000000-0000-0000-0000-000000000005"),
        ([UUID(int=5)], "v[0].length", 36),
        (
            datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            "v.toISOString()",
            "2026-01-01T00:00:00.000Z",
        ),
        (datetime(2026, 1, 1), "v.getTime()", 1_767_225_600_000),
        (timedelta(days=1, seconds=1), "v.TotalSeconds", 86401),
        (b"\0\xff", "v[1] + v.length", 257),
        ("a\0b\ud800", "v.length + v", "4a\0b\ufffd"),
        (["\ud800"], "v[0]", "\ufffd"),
        (float("nan"), "Number.isNaN(v)", True),
        ([float("inf"), -float("inf"), float("nan")], "v.join()", "Infinity,-Infinity,NaN"),
        ((1, 2), "v.length", 2),
        ({"__proto__": {"a": 1}}, "typeof v.a + Object.keys(v)", "undefined__proto__"),
        ("x" * 100_000, "v.length", 100_000),
        (True, "v === true", True),
        (None, "v === null", True),
    ],
)
def test_what_a_script_sees_of_python_values(value: Any, source: str, seen: Any) -> None:
    assert evaluate(f"let v = getV(); {source}", FakeScope(variables={"v": value})) == seen


def test_a_value_that_javascript_cannot_have_is_refused_with_a_reason() -> None:
    with pytest.raises(ExpressionFailed, match="cannot be given this value: it holds a object"):
        evaluate("getV()", FakeScope(variables={"v": [object()]}))


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.just(UTC))
    | st.timedeltas(timedelta(days=-50_000), timedelta(days=50_000))
)
_values = st.recursive(_scalars, lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=8)


@given(value=_values)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_value_passed_through_unchanged_is_the_same_and_counts_as_unchanged(value: Any) -> None:
    scope = FakeScope(variables={"v": value})
    given_before = scope.variables["v"]
    assert evaluate("getV()", scope) == value
    assert scope.variables["v"] is given_before


# --- the language object


def test_the_language_says_its_name() -> None:
    assert (LANGUAGE.name, LANGUAGE.display_name, LANGUAGE.editor) == (
        "JavaScript",
        "JavaScript",
        "javascript",
    )


def test_a_script_may_be_compiled_in_one_thread_and_evaluated_in_others() -> None:
    script = LANGUAGE.compile("let s = 0; for (let i = 0; i < 1000; i++) s += getStep(); s")
    results: list[Any] = []

    def work() -> None:
        for step in range(50):
            results.append(script(FakeScope(variables={"step": step})) == step * 1000)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 200


async def test_scripts_run_on_an_event_loop_and_in_its_threads_alike() -> None:
    script = LANGUAGE.compile("getStep() * 2")
    scopes = [FakeScope(variables={"step": step}) for step in range(8)]
    assert [script(scope) for scope in scopes] == [0, 2, 4, 6, 8, 10, 12, 14]
    results = await asyncio.gather(*(asyncio.to_thread(script, scope) for scope in scopes))
    assert results == [0, 2, 4, 6, 8, 10, 12, 14]


def test_limits_are_settings() -> None:
    language = JavaScript(time_limit=0.02, memory_limit=8 * 1024 * 1024)
    with pytest.raises(ExpressionFailed, match=r"ran longer than 20 ms\."):
        language.compile("for (;;);")(FakeScope())
    with pytest.raises(ExpressionFailed, match=r"needed more than 8 MB of memory\."):
        language.compile("new Uint8Array(9e6)")(FakeScope())
