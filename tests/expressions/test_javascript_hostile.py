"""Scripts that mean harm: they end in time, and leave nothing for the next one.

All of them run in one language object and so, as far as it survives them, in one realm.
"""

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.expression import ExpressionFailed, ExpressionInvalid
from holdfast.expressions import javascript_watchdog
from holdfast.expressions.javascript import JavaScript
from tests.expressions.scope import FakeScope

LANGUAGE = JavaScript(time_limit=0.05, memory_limit=16 * 1024 * 1024)

# What a script could have changed for others, as a fresh realm has it.
WITNESS = """
[
  [].x, ({}).x, (() => 1).x, 'a'.x, new Error().x, /a/.x, new Map().x, new Date(0).x, Promise.prototype.x,
  (function* () {})().x, (async () => 1).x, DateTime.x, TimeSpan.FromDays(1).x, Guid.x, Math.x, toJson.x,
  variables.x, typeof leaked, typeof globalThis.leaked, typeof Proxy, typeof queueMicrotask,
  [3, 1, 2].sort().map(n => n * 2).join(), JSON.stringify(JSON.parse('{"a":[1]}')), `${{}}`,
  `${new Error('m')}`,
  'a-b'.split('-').length, Object.keys({ a: 1 }).length, Math.max(1, 2), parseInt('7'), new Set([1]).size,
  /b/.exec('abc').index, Date.now(), isNaN(1), TimeSpan.FromSeconds(1).TotalSeconds, newGuid(), eval('1 + 1'),
  Object.getPrototypeOf({}) === Object.prototype, new Date(0).getTime(), Symbol.iterator.toString(),
  Array.isArray([]), [...'ab'].length, [1, 2].includes(2), bytesFromString('a').length, NaN !== NaN,
]
"""


CHECK = LANGUAGE.compile(WITNESS)


@pytest.fixture(scope="module")
def untouched() -> Any:
    return JavaScript().compile(WITNESS)(FakeScope())


@pytest.fixture(autouse=True)
def nothing_is_left_behind(untouched: Any) -> Iterator[None]:
    yield
    assert LANGUAGE.compile("1 + 1")(FakeScope()) == 2
    assert CHECK(FakeScope()) == untouched


def run(source: str, scope: FakeScope | None = None) -> Any:
    began = time.process_time()
    try:
        return LANGUAGE.compile(source)(scope or FakeScope())
    finally:
        assert time.process_time() - began < 5


ENDLESS = {
    "a loop": "for (;;);",
    "a loop that catches": "for (;;) try { for (;;); } catch { continue } finally { continue }",
    "a comparison that loops": "[3, 1, 2].sort(() => { for (;;); })",
    "a regular expression that backtracks": "/^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(60))",
    "a callback over holes": "Array(2 ** 32 - 1).forEach(x => x)",
    "a search through holes": "Array(2 ** 32 - 1).indexOf(1)",
    "a set of holes": "new Set(Array(2 ** 32 - 1))",
    "a generator without end": "function* g() { for (;;) yield 1 } let n = 0; for (const x of g()) n += x",
    "a getter on the result": "({ get a() { for (;;); } })",
    "toJSON of the result": "({ toJSON() { for (;;); } })",
    "toJSON of a variable": "setVariable('a', { toJSON() { for (;;); } })",
    "the text of what is thrown": "throw { toString() { for (;;); }, toJSON() { for (;;); } }",
    "the message of what is thrown": "class E extends Error { get message() { for (;;); } } throw new E()",
    "the stack of what is thrown": "class E extends Error { get stack() { for (;;); } } throw new E()",
    "the name of what is thrown": "class E extends Error { get name() { for (;;); } } throw new E()",
    "an async loop": "(async () => { for (;;) await null })()",
    "a loop in a promise": "Promise.resolve().then(() => { for (;;); })",
    "promises that make promises": "const f = () => Promise.resolve().then(f); f()",
    "a thenable": "Promise.resolve({ then() { for (;;); } })",
    "an async loop that catches": "(async () => { for (;;) try { for (;;); } catch {} })()",
    "a loop that waits for an answer": "for (;;) try { getVariable('a' + Math.random()) } catch {}",
    "requests without end": "for (let i = 0; ; i++) getOutputFrom('a' + i)",
    "guids without end": "for (;;) newGuid()",
    "a comparison of long texts": "let s = 'x'.repeat(1e6), t = 'x'.repeat(1e6); for (;;) s == t",
    "a search in a long text": "let s = 'x'.repeat(4e6); for (;;) s.indexOf('y')",
    "a search that catches": "let s = 'x'.repeat(4e6); for (;;) try { s.indexOf('y') } catch {}",
    "large integers": "for (;;) 3n ** 200000n",
    "large integers that catch": "for (;;) try { 3n ** 200000n } catch {}",
    "many keys": "let o = {}; for (let i = 0; i < 1e4; i++) o['k' + i] = 1; for (;;) ({ ...o })",
    "eval": "eval('for (;;);')",
    "a loop in a loop of eval": "for (;;) try { eval('for (;;);') } catch {}",
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS.keys())
def test_what_does_not_end_is_ended(source: str) -> None:
    with pytest.raises(ExpressionFailed, match=r"ran longer than 50 ms|more than 1,000 values"):
        run(source)


HUGE = {
    "an array": "let a = []; for (;;) a.push([1])",
    "a chain of objects": "let o = {}; for (;;) o = { o }",
    "a map": "let m = new Map(); for (;;) m.set({}, 1)",
    "bytes": "let a = []; for (;;) a.push(new Uint8Array(1e6))",
    "a buffer": "new ArrayBuffer(1e9)",
    "a filled array": "Array(1e8).fill(0)",
    "a spread": "[...Array(1e8)]",
    "from a length": "Array.from({ length: 2 ** 32 - 1 })",
    "arguments": "Math.max(...Array(1e7))",
    "text": "'x'.repeat(2 ** 29)",
    "JSON": "JSON.stringify(Array(2 ** 32 - 1))",
    "the result": "Array(2 ** 32 - 1)",
    "prototypes": "let p = {}; for (;;) p = Object.create(p)",
    "bound functions": "let f = () => 1; for (;;) f = f.bind()",
    "promises": "let all = []; for (;;) all.push((async () => { await new Promise(() => 1) })())",
    "caught": "let a = []; for (;;) try { for (;;) a.push([1]) } catch {}",
}


@pytest.mark.parametrize("source", HUGE.values(), ids=HUGE.keys())
def test_what_needs_too_much_memory_is_ended(source: str) -> None:
    with pytest.raises(ExpressionFailed, match=r"more than 16 MB|ran longer than 50 ms|RangeError"):
        run(source)


def test_it_is_said_when_memory_was_the_reason() -> None:
    with pytest.raises(ExpressionFailed, match=r"The script needed more than 16 MB of memory\."):
        run("new Uint8Array(2e7)")


REFUSED = {
    "recursion": ("(function f() { f() })()", "too deeply"),
    "recursion through getters": ("let o = { get a() { return this.a } }; o.a", "too deeply"),
    "recursion through toJSON": ("({ toJSON() { return { toJSON: this.toJSON } } })", "too deeply|nested"),
    "deep JSON": ("JSON.parse('['.repeat(1e5))", "too deeply"),
    "deep source": ("eval('['.repeat(1e5) + ']'.repeat(1e5))", "too deeply"),
    "doubled text": ("let s = 'x'; for (;;) s += s", "too long|16 MB"),
    "a shared structure": ("let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; a", "longer than|16 MB"),
    "joining holes": ("Array(2 ** 32 - 1).join('')", "too long"),
    "printing holes": ("`${Array(2 ** 32 - 1)}`", "too long"),
    "printing nested holes": ("`${[[Array(2 ** 32 - 1)]]}`", "too long"),
    "reversing holes": ("Array(2 ** 32 - 1).reverse()", "too long"),
    "sorting holes": ("let a = [1]; a.length = 2 ** 32 - 1; a.sort()", "too long"),
    "slicing holes": ("Array(2 ** 32 - 1).slice(1)", "too long"),
    "shifting holes": ("Array(2 ** 32 - 1).shift()", "too long"),
    "locale text of holes": ("Array(2 ** 32 - 1).toLocaleString()", "too long"),
    "a great length": ("[].join.call({ length: 2 ** 53 - 1 })", "too great"),
    "a length that grows": (
        "let n = 0; [].join.call({ get length() { return n++ ? 2 ** 53 - 1 : 1 } })",
        "not a plain number",
    ),
    "a length that is computed": (
        "let n = 0; [].join.call({ length: { valueOf: () => (n++ ? 2 ** 53 - 1 : 1) } })",
        "not a plain number",
    ),
    "an inherited length": (
        "let n = 0; [].reverse.call(Object.create({ get length() { return n++ ? 2 ** 53 - 1 : 1 } }))",
        "not a plain number",
    ),
    "a length put on bytes": (
        "[].reverse.call(Object.defineProperty(new Uint8Array(1), 'length', { get: () => 2 ** 53 - 1 }))",
        "not a plain number",
    ),
    "filling what cannot be filled": (
        "[].fill.call(Object.defineProperty(new Uint8Array(1), 'length', { value: 2 ** 53 - 1 }), 0)",
        "too great",
    ),
    "a very long name": ("getVariable('x'.repeat(5e6))", "too large"),
    "a length put on a function": (
        "[].join.call(Object.defineProperty(() => 1, 'length', { get: () => 2 ** 53 - 1 }))",
        "not a plain number",
    ),
    "joining more holes": ("[].concat(Array(2 ** 32 - 1))", "longer than|16 MB"),
    "flat holes": ("[Array(2 ** 32 - 1)].flat()", "longer than"),
    "JSON by holes": ("JSON.stringify({}, Array(2 ** 32 - 1))", "too long"),
    "raw holes": ("String.raw({ raw: { length: 2 ** 53 - 1 } })", "longer than|16 MB|too long"),
    "a long search": ("'a'.repeat(4e6).indexOf('a'.repeat(2e6) + 'b')", "too long to search"),
    "a long replacement": ("'a'.repeat(4e6).replaceAll('a'.repeat(2e6) + 'b', '')", "too long to search"),
    "a disguised search": (
        "'a'.repeat(4e6).split({ toString: () => 'a'.repeat(2e6) + 'b', [Symbol.split]: null })",
        "too long to search",
    ),
    "an integer too large to print": ("3n ** 20000n", "more than 1,024 bits"),
    "a thrown request": ("throw (() => { try { getVariable('a' + 1) } catch (e) { return e } })()", "Threw"),
    "code from text": ("(() => 1)['const' + 'ructor']('return 1')", "cannot be made from text"),
    "code from text, async": ("(async () => 1).constructor('return 1')", "cannot be made from text"),
    "code from text, generators": ("(function* () {}).constructor('return 1')", "cannot be made from text"),
    "modules": ("import('/etc/passwd')", "could not load|Error"),
    "what is not there": ("performance.now() + Atomics", "not defined"),
    "a proxy": ("new Proxy([], {})", "Proxy is not defined"),
    "weak references": ("new WeakRef({})", "WeakRef is not defined"),
}


@pytest.mark.parametrize(("source", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_could_hang_or_reach_out_is_refused(source: str, message: str) -> None:
    with pytest.raises(ExpressionFailed, match=message):
        run(source)


# Each statement is tried on its own.
LEAKS = {
    "a global": ["leaked = 1", "this.leaked = 1", "globalThis.leaked = 1", "var leaked = 2"],
    "a global by a sloppy this": ["(function () { this.leaked = 1 })()"],
    "a global by indirect eval": [
        "(0, eval)('leaked = 1')",
        "(0, eval)('var leaked = 1; function leaked2() {}')",
    ],
    "prototypes": [
        "Array.prototype.x = Object.prototype.x = Function.prototype.x = String.prototype.x = 1",
        "Error.prototype.x = RegExp.prototype.x = Map.prototype.x = Date.prototype.x = 1",
        "Promise.prototype.x = Iterator.prototype.x = 1",
        "Object.defineProperty(Array.prototype, 'x', { value: 1 })",
        "Object.prototype.__defineGetter__('x', () => 1)",
        "Object.setPrototypeOf(Object.prototype, { x: 1 })",
        "({}).__proto__.__proto__ = { x: 1 }",
    ],
    "prototypes of literals": [
        "[].__proto__.x = 1",
        "({}).__proto__.x = 1",
        "(() => 1).__proto__.x = 1",
        "'a'.__proto__.x = 1",
        "/a/.constructor.prototype.x = 1",
    ],
    "hidden prototypes": [
        "(function* () {})().__proto__.__proto__.x = 1",
        "(async () => 1).__proto__.x = 1",
        "[][Symbol.iterator]().__proto__.next = 1",
        "new Map().entries().__proto__.next = 1",
        "'a'.matchAll(/a/g).__proto__.next = 1",
        "Object.getPrototypeOf(Uint8Array).prototype.fill = 1",
    ],
    "built-ins replaced": [
        "JSON.parse = Math.max = Array.isArray = parseInt = Object.keys = Date.now = () => 1",
        "Array.prototype.map = Array.prototype.sort = String.prototype.split = Set = null",
        "delete Array.prototype.map",
        "delete globalThis.JSON",
        "Array.prototype.length = 5",
        "Error.prepareStackTrace = () => 'x'",
        "Error.stackTraceLimit = 0",
    ],
    "symbols": [
        "Object.prototype[Symbol.toPrimitive] = () => 'x'",
        "Array.prototype[Symbol.iterator] = null",
        "Symbol.iterator.x = 1",
    ],
    "our own functions": ["toJson.x = 1", "getVariable.x = 1", "newGuid = () => 1", "isNullOrEmpty.call = 1"],
    "our own types": [
        "DateTime.x = DateTime.prototype.x = TimeSpan.prototype.x = Guid.x = Guid.NewGuid = 1",
        "TimeSpan.FromSeconds = () => 1",
        "Object.getPrototypeOf(DateTime).x = 1",
        "Random.prototype.Next = null",
    ],
    "the container": ["Object.setPrototypeOf(variables, { x: 1 })", "variables.__proto__ = null"],
    "arguments of ours": [
        "$get.x = $set.x = $call.x = 1",
        "$get.__proto__.x = 1",
        "$set = null",
        "$call.constructor.prototype.x = 1",
    ],
    "accessors of ours": [
        "let own = Object.getOwnPropertyDescriptor(Object.prototype, 'toString');"
        " own.set.call(Object.prototype, () => 'mine'); own.get.x = 1",
    ],
    "what we throw": [
        "try { getVariable('a' + 1) } catch (e) { e.x = 1; Object.getPrototypeOf(e).x = 1 }",
        "try { host(() => 1) } catch (e) { e.constructor.prototype.x = 1; e.__proto__.__proto__.x = 1 }",
        "try { parseGuid('x') } catch (e) { e.__proto__.x = 1; e.constructor.prototype.message = 'y' }",
        "try { atob('%') } catch (e) { e.__proto__.x = 1; e.constructor.x = 1 }",
    ],
    "a template": ["(parts => { parts.raw.x = 1; parts.x = 1 })`a`"],
    "work for later": ["Promise.resolve().then(() => { leaked = 1; Array.prototype.x = 1 })"],
}


@pytest.mark.parametrize("statements", LEAKS.values(), ids=LEAKS.keys())
def test_nothing_one_script_does_is_seen_by_another(statements: list[str]) -> None:
    tried = "".join(f"try {{ {statement} }} catch {{}}\n" for statement in statements)
    run(f"{tried}1", FakeScope(functions={"host": lambda value: value}))


def test_a_function_stored_in_a_variable_does_not_survive() -> None:
    scope = FakeScope(variables={"box": {"a": 1}})
    run("getBox().f = () => { leaked = 1 }; getBox().a = 2", scope)
    assert scope.variables == {"box": {"a": 2}}


def test_the_same_script_starts_anew_each_time() -> None:
    script = LANGUAGE.compile(
        "const t = (p => p)`a`; n = typeof n === 'undefined' ? 1 : n + 1; var m = (m || 0) + 1; [n, m, t.x]"
    )
    assert [script(FakeScope()) for _ in range(3)] == [[1, 1, None]] * 3


def test_facts_of_one_evaluation_are_unknown_to_the_next() -> None:
    scope = FakeScope(variables={"secret": "hush"}, arguments={"secret": "hush"}, last_result="hush")
    assert run("getSecret() + getVariable('secret') + args.secret + getLastResult()", scope) == "hush" * 4
    assert (
        run("[getVariable('secret'), getVariable('sec' + 'ret'), args.secret, getLastResult()]") == [None] * 4
    )
    assert run("Object.keys(variables)") == []


@pytest.mark.parametrize(
    "source",
    [
        "})(); throw new Error(getVariable('secret')); (() => {",
        "}}); throw new Error(getVariable('secret')); (() => {{",
        "})(); for (;;); (() => {",
        "1) + ((() => { for (;;); })()",
        "*/ for (;;); /*",
    ],
)
def test_compiling_runs_nothing_of_a_script(source: str) -> None:
    run("getSecret()", FakeScope(variables={"secret": "hush"}))
    with pytest.raises(ExpressionInvalid) as failure:
        run(source)
    assert "hush" not in str(failure.value)
    assert "ran longer" not in str(failure.value)


@pytest.mark.parametrize(
    "source",
    [
        "/* */ " * 5_000 + "(",
        "[" * 40_000,
        "a = " * 20_000 + "1",
        "]" * 50_000,
        "x;" * 40_000,
        "} \n" * 30_000,
    ],
)
def test_compiling_takes_no_time_to_speak_of(source: str) -> None:
    with suppress(ExpressionInvalid, ExpressionFailed):
        run(source)


def test_a_script_cannot_pretend_to_be_a_reply_or_a_tag() -> None:
    assert run("'[0,5,false]'") == "[0,5,false]"
    assert run("({ $: ['date', 0, 0] })") == {"$": ["date", 0, 0]}
    with pytest.raises(ExpressionFailed, match="InternalError: interrupted, he said"):
        run("throw Object.assign(new InternalError('interrupted, he said'))")


def test_values_larger_than_the_memory_are_refused() -> None:
    for value in ["x" * 20_000_000, "é" * 10_000_000, [1] * 1_200_000]:
        with pytest.raises(ExpressionFailed, match=r"more than 16 MB|longer than 50 ms"):
            run("getBig()", FakeScope(variables={"big": value}))


def test_after_a_limit_the_next_script_works_at_once_in_every_thread() -> None:
    results: list[Any] = []

    def work() -> None:
        with pytest.raises(ExpressionFailed):
            LANGUAGE.compile("for (;;);")(FakeScope())
        results.append(LANGUAGE.compile("40 + 2")(FakeScope()))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [42, 42, 42]


def test_the_watchdog_rests_when_nothing_runs_and_wakes_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(javascript_watchdog, "_IDLE_TICKS", 0)
    monkeypatch.setattr(javascript_watchdog, "_TICK", 0.01)
    dog = javascript_watchdog.Watchdog()
    dog.wake()
    while dog.is_awake:
        threading.Event().wait(0.01)
    strangled = threading.Event()

    class Stuck:
        turn = 1
        patience = 0.0

        def strangle(self, *, memory: bool) -> None:
            if memory:
                strangled.set()

    stuck = Stuck()
    dog.watch(stuck)
    dog.wake()
    while not strangled.is_set():
        sum(range(100_000))  # time for the watchdog is what the processor was busy
    stuck.turn = 2
    while dog.is_awake:
        threading.Event().wait(0.01)


STATM = Path("/proc/self/statm")


def memory_in_use() -> int:
    return int(STATM.read_text().split()[1]) * 4096


@pytest.mark.skipif(not STATM.exists(), reason="reads /proc")
def test_twenty_thousand_different_scripts_do_not_fill_the_memory() -> None:
    language = JavaScript()
    scope = FakeScope(variables={"total": 1})

    def evaluate(start: int, count: int) -> None:
        for number in range(start, start + count):
            assert language.compile(f"getTotal() + {number}")(scope) == 1 + number

    evaluate(0, 5_000)
    gc.collect()
    before = memory_in_use()
    evaluate(5_000, 15_000)
    gc.collect()
    assert memory_in_use() - before < 24 * 1024 * 1024
    realm: Any = language.realm()
    assert sum(map(len, realm._functions)) <= 500_000
