"""One warm QuickJS realm: where scripts run, and the limits they run under.

A new realm costs milliseconds, a call into a warm one microseconds; so a realm is kept, and the
JavaScript fragments beside this module see to it that nothing of one script is left for the next.
A realm whose state is in doubt (time or memory ran out) is `spoiled`: the owner makes another.
A realm belongs to the thread that made it.
"""

import json
import time
from functools import cache
from importlib import resources
from typing import Any, cast

from quickjs import Context, JSException, Object

from holdfast.expression import ExpressionFailed
from holdfast.expressions.javascript_values import TAG, Raw
from holdfast.expressions.javascript_watchdog import watchdog

TEXT_LIMIT = 4 * 1024 * 1024  # characters that one evaluation may send out
STACK_LIMIT = 512 * 1024  # well below what threads have, also with musl

# How much text of compiled scripts is kept (they take about four bytes of memory for each character),
# and how many a realm compiles before it is replaced: whatever may be left of those that were dropped
# goes with it.
CHARACTERS_KEPT = 500_000
FUNCTIONS_MADE = 5_000

# Lines of our own fragments begin here, so that a stack shows which lines are the script's.
_FIRST_LINE = 10_000
_FRAGMENTS = ("values", "prelude", "time", "types", "guard")
_ENTRANCES = ("run", "start", "settle", "make", "objection", "isScript", "builtIn")
_PARAMETERS = "TAG,TEXT_LIMIT,LENGTH_LIMIT,FIRST_LINE"


class Realm:
    """Frozen globals, a cache of compiled scripts, a time limit and a memory limit."""

    def __init__(self, *, time_limit: float, memory_limit: int) -> None:
        self.turn = 0
        self.patience = 2 * time_limit
        self.is_spoiled = False
        self._is_strangled = False
        self._time_limit = time_limit
        self._memory_limit = memory_limit
        self._functions: dict[str, Object] = {}
        self._characters = 0
        self._made = 0
        self._context = Context()
        self._context.set_memory_limit(memory_limit)
        self._context.set_max_stack_size(STACK_LIMIT)
        prelude = cast("Object", self._context.eval(_prelude()))
        # Twice what there is room for: all arrays beyond are mostly holes.
        entrances = cast("Object", prelude(TAG, TEXT_LIMIT, memory_limit // 8, _FIRST_LINE))
        self._run, self._start, self._settle, self._make, self._objection, self._is_script, built_in = (
            cast("Object", entrances(name)) for name in _ENTRANCES
        )
        self.built_in: frozenset[str] = frozenset(json.loads(cast("str", built_in())))
        self._context.set_time_limit(time_limit)
        watchdog.watch(self)

    def run(self, text: str, sent: list[Raw], *, may_await: bool) -> Any:
        """Run a compiled script with these facts: a number, a boolean, or a reply as JSON."""
        function = self._functions.get(text) or self._compile(text)
        if may_await:
            return self._awaited(function, sent)
        self.turn += 1
        if not watchdog.is_awake:
            watchdog.wake()
        try:
            reply = self._run(function, *sent)
        except JSException as error:
            raise self._ended(error) from None
        finally:
            self.turn += 1
        if self._is_strangled:
            raise self.out_of_time()
        return reply

    def objection(self, body: str) -> str:
        """Why the text is not the body of a function, as JSON; empty when it is one."""
        return cast("str", self._enter(self._objection, body))

    def is_script(self, text: str) -> bool:
        """Whether the text is a whole script, one without `return` outside of functions."""
        return cast("bool", self._enter(self._is_script, text))

    def strangle(self, *, memory: bool) -> None:
        self._is_strangled = True
        self._context.set_max_stack_size(1)
        if memory:
            self._context.set_memory_limit(1)

    def out_of_memory(self) -> ExpressionFailed:
        """What to raise when there was none left. The realm is not to be used any more."""
        self.is_spoiled = True
        return ExpressionFailed(f"The script needed more than {self._memory_limit / 2**20:g} MB of memory.")

    def out_of_time(self) -> ExpressionFailed:
        self.is_spoiled = True
        return ExpressionFailed(f"The script ran longer than {self._time_limit * 1000:g} ms.")

    def _compile(self, text: str) -> Object:
        function = cast("Object", self._enter(self._make, text))
        self._functions[text] = function
        self._characters += len(text)
        while self._characters > CHARACTERS_KEPT:
            oldest = next(iter(self._functions))
            del self._functions[oldest]
            self._characters -= len(oldest)
        self._made += 1
        if self._made >= FUNCTIONS_MADE:
            self.is_spoiled = True
        return function

    def _awaited(self, function: Object, sent: list[Raw]) -> Any:
        deadline = time.process_time() + self._time_limit
        self._enter(self._start, function, *sent)
        while self._enter(self._context.execute_pending_job):
            # Each job has the whole time limit for itself, and there may be any number of them.
            if time.process_time() > deadline:
                raise self.out_of_time()
        # No job is left: one that ran later would run among another script's facts.
        return self._enter(self._settle)

    def _enter(self, entrance: Any, *given: Raw | Object) -> Any:
        self.turn += 1
        if not watchdog.is_awake:
            watchdog.wake()
        try:
            reply = entrance(*given)
        except JSException as error:
            raise self._ended(error) from None
        finally:
            self.turn += 1
        if self._is_strangled:
            raise self.out_of_time()
        return reply

    def _ended(self, error: JSException) -> ExpressionFailed:
        """Only the engine's own exceptions get here: interrupted, or no memory even to say so."""
        said = str(error).partition("\n")[0]
        if self._is_strangled or "interrupted" in said:
            return self.out_of_time()
        if said == "null" or "out of memory" in said:
            return self.out_of_memory()
        self.is_spoiled = True
        return ExpressionFailed(f"The script could not be run. {said}")


@cache
def _prelude() -> str:
    folder = resources.files("holdfast.expressions")
    code = "".join(folder.joinpath(f"javascript_{name}.js").read_text("utf-8") for name in _FRAGMENTS)
    return "\n" * _FIRST_LINE + f"(function({_PARAMETERS}){{'use strict';\n{code}}})"
