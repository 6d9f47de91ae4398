"""Ends scripts that QuickJS would not end itself.

QuickJS asks its clock only every ten thousandth step of a script. When each step is expensive (a
search through ten megabytes, say), that is minutes. So one thread looks at the realms while scripts
run, and takes from one that is far over its time first the stack, then the memory: each further
step fails at once, and the ten thousandth is near. Both are single words that QuickJS only reads,
so it is safe to set them from here; the GIL is free while a script runs, so there is a chance to.

The thread starts with the first evaluation and ends when there was none for a while.
"""

import os
import threading
import time
from typing import Protocol
from weakref import WeakSet

_TICK = 0.1
_IDLE_TICKS = 50
_BEFORE_MEMORY = 0.2


class Watched(Protocol):
    """A realm. `turn` is odd while a script runs in it, and never the same twice."""

    turn: int
    patience: float  # how much processor time one turn may take

    def strangle(self, *, memory: bool) -> None:
        """Make everything the script still tries fail. Called from another thread."""
        ...


class Watchdog:
    """Looks after all realms of the process."""

    def __init__(self) -> None:
        self.is_awake = False
        self._realms: WeakSet[Watched] = WeakSet()
        self._lock = threading.Lock()

    def watch(self, realm: Watched) -> None:
        with self._lock:
            self._realms.add(realm)

    def wake(self) -> None:
        """Called by whoever begins a turn and finds the watchdog asleep."""
        with self._lock:
            if not self.is_awake:
                self.is_awake = True
                threading.Thread(target=self._look, name="holdfast-javascript-watchdog", daemon=True).start()

    def sleep(self) -> None:
        """After a fork: the thread stayed with the parent."""
        self.is_awake = False
        self._lock = threading.Lock()

    def _look(self) -> None:
        seen: dict[int, tuple[int, float]] = {}  # by realm: its turn, and when that was first seen
        idle = 0
        while idle <= _IDLE_TICKS or not self._may_rest():
            time.sleep(_TICK)
            # Not the clock on the wall: on a busy machine a script may wait long for the processor.
            now = time.process_time()
            before, seen = seen, {}
            for realm in self._known():
                turn, (last, since) = realm.turn, before.get(id(realm), (-1, now))
                if turn != last:
                    since = now
                seen[id(realm)] = turn, since
                over = now - since - realm.patience
                if turn % 2 and over >= 0:
                    # The stack first: a script that catches errors ends sooner while there is still
                    # memory to make them.
                    realm.strangle(memory=over >= _BEFORE_MEMORY)
            idle = 0 if any(turn % 2 or since == now for turn, since in seen.values()) else idle + 1

    def _may_rest(self) -> bool:
        with self._lock:
            # In this order: a turn that begins from now on finds us asleep, and one that found us awake
            # is seen here.
            self.is_awake = False
            self.is_awake = any(realm.turn % 2 for realm in list(self._realms))
            return not self.is_awake

    def _known(self) -> list[Watched]:
        with self._lock:
            return list(self._realms)


watchdog = Watchdog()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=watchdog.sleep)
