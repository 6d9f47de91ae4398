"""JavaScript expressions, as Elsa's definitions have them, run by QuickJS.

A script is one expression, or statements of which the last has the value, or a body with `return`.
It sees its scope through functions (`getTotal()`, `getVariable("total")`, `variables.total`, ...) and
what it changes is written back when it has ended well; a script that fails changes nothing.

How a script is read is in `javascript_source`, what it may ask in `javascript_facts`, how values
travel in `javascript_values`; the realm it runs in is `javascript_realm` with the .js files beside it.
"""

import threading
import time
from typing import Any

import msgspec

from holdfast.expression import Expression, ExpressionFailed, ExpressionInvalid, Scope
from holdfast.expressions.javascript_facts import Requests, answer, apply, facts_wanted
from holdfast.expressions.javascript_names import accessors_in, everything, host_function, resolve
from holdfast.expressions.javascript_realm import Realm
from holdfast.expressions.javascript_source import Reading, read, shape, wrap
from holdfast.expressions.javascript_values import Raw, number, receive, send

SOURCE_CHARACTERS = 100_000

# Scopes that give a script different names need different functions; hardly ever more than a few.
_TEXTS_KEPT = 16

# What a reply from the realm begins with.
_ENDED, _FAILED = 0, 2  # 1 is a request

_decode = msgspec.json.Decoder().decode


class JavaScript:
    """The language. Limits are for one evaluation: seconds of processor time, bytes of memory."""

    name = "JavaScript"
    display_name = "JavaScript"
    editor = "javascript"

    def __init__(self, *, time_limit: float = 0.25, memory_limit: int = 32 * 1024 * 1024) -> None:
        self.time_limit = time_limit
        self._memory_limit = memory_limit
        self._local = threading.local()

    def compile(self, source: str) -> Expression:
        """Check the text and find out what it needs."""
        if len(source) > SOURCE_CHARACTERS:
            raise ExpressionInvalid(f"The script has more than {SOURCE_CHARACTERS:,} characters.")
        try:
            source.encode()
        except UnicodeEncodeError as error:
            raise ExpressionInvalid(f"Character {error.start} of the script is not Unicode text.") from None
        try:
            realm = self.realm()
            objection = realm.objection(source)
            if not objection:
                body = shape(source, realm.objection, realm.is_script)
                return _Script(self, read(source, realm.built_in), body)
        except ExpressionFailed as error:
            raise ExpressionInvalid(f"The script cannot be compiled. {error}") from error
        reason, line = _decode(objection)
        if line and line > source.count("\n") + 1:  # the engine got as far as what we put behind the script
            reason, line = "the script ends before it is complete", source.count("\n") + 1
        raise ExpressionInvalid(f"SyntaxError: {reason}" + (f" (line {line})" if line else ""))

    def realm(self) -> Realm:
        """This thread's realm. QuickJS cannot be entered from two threads, not even in turns."""
        realm: Realm | None = getattr(self._local, "realm", None)
        if realm is None or realm.is_spoiled:
            realm = Realm(time_limit=self.time_limit, memory_limit=self._memory_limit)
            self._local.realm = realm
        return realm


class _Script:
    """A compiled script. It holds nothing of a realm, so that any thread may evaluate it."""

    def __init__(self, language: JavaScript, reading: Reading, body: str) -> None:
        self._language = language
        self._reading = reading
        self._body = body
        self._texts: dict[tuple[str, ...], str] = {}
        self._accessors = accessors_in(reading.names)
        self._keys = (*facts_wanted(reading.words), *reading.keys)

    def __call__(self, scope: Scope) -> Any:
        names, sent = resolve(scope, self._accessors) if self._accessors else ((), [])
        functions = scope.functions
        if functions:
            names += tuple(host_function(word) for word in sorted(functions.keys() & self._reading.names))
        if self._reading.may_search:
            names = (*everything(scope), *names)
        for key in self._keys:
            sent.append(key)
            sent.append(send(answer(scope, key)))
        text = self._texts.get(names) or self._wrap(names)
        realm = self._language.realm()
        reply = realm.run(text, sent, may_await=self._reading.may_await)
        if reply.__class__ is int or reply.__class__ is bool:
            return reply
        return self._conclude(scope, realm, text, sent, reply)

    def _wrap(self, names: tuple[str, ...]) -> str:
        if len(self._texts) >= _TEXTS_KEPT:
            self._texts.clear()
        text = wrap(self._body, names, self._reading)
        self._texts[names] = text
        return text

    def _conclude(self, scope: Scope, realm: Realm, text: str, sent: list[Raw], reply: Any) -> Any:
        """What the reply comes to, after as many requests as it takes."""
        requests = Requests(scope, sent)
        spent = 0.0
        while True:
            if isinstance(reply, int):  # booleans too
                return reply
            if isinstance(reply, float):
                return number(reply)
            if reply is None:
                raise realm.out_of_memory()
            kind, *rest = _decode(reply)
            if kind == _ENDED:
                return _received(scope, *rest)
            if kind == _FAILED:
                raise self._failure(realm, *rest)
            requests.answer(*rest)
            # Every run has the whole time limit for itself; together they have it once more.
            began = time.process_time()
            reply = realm.run(text, sent, may_await=self._reading.may_await)
            spent += time.process_time() - began
            if spent > self._language.time_limit:
                raise realm.out_of_time()

    def _failure(self, realm: Realm, name: str, message: str, line: int | None) -> ExpressionFailed:
        if name == "InternalError" and message == "interrupted":
            return realm.out_of_time()
        # When there is no memory left even for an error, the engine throws null.
        if message.startswith("out of memory") or (message == "Threw null" and not self._reading.may_throw):
            return realm.out_of_memory()
        if message == "Maximum call stack size exceeded":
            name, message = "", "The script calls itself too deeply: maximum call stack size exceeded"
        said = ": ".join(part for part in (name, message) if part)
        return ExpressionFailed(f"{said} (line {line})" if line else said)


def _received(scope: Scope, value: Any, tagged: bool, changes: list[Any] | None = None) -> Any:
    if tagged:
        changes = receive(changes)
        value = receive(value)
    if changes:
        apply(scope, changes)
    return value
