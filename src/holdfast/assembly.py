"""The composition root: alone knows which adapters exist, and puts them together."""

import gc
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from holdfast.activities import BUILT_IN
from holdfast.errors import Invalid
from holdfast.expression import Expression, Language
from holdfast.plugin import Plugins

GROUP = "holdfast.plugins"

REMEMBERED, SHORT = 2_000, 5_000
"""How many compiled expressions of a language are kept for the next version, and how long these may be."""


class PluginInvalid(Invalid):
    """An installed plugin could not be loaded."""

    code = "plugin.invalid"


def calm_collector() -> None:
    """For a process that is ours alone: what it was started with lives as long as it does, and turns leave
    little behind that refers to itself. Looking for that as often as Python does costs a tenth of them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


class StandardConsole:
    """The port `Console` on this process's standard streams."""

    def write_line(self, text: str) -> None:
        print(text, flush=True)

    def read_line(self) -> str:
        return sys.stdin.readline().rstrip("\r\n")


class LateLanguage:
    """An expression language that is imported with its first expression: most workflows use one."""

    def __init__(self, name: str, editor: str) -> None:
        self.name = name
        self.display_name = name
        self.editor = editor
        self._compile: Callable[[str], Expression] | None = None
        self._remembering: Callable[[str], Expression] | None = None

    def compile(self, source: str) -> Expression:
        """An expression holds nothing of an evaluation, so versions that share a text share it."""
        if self._compile is None or self._remembering is None:
            module = import_module(f"holdfast.expressions.{self.editor}")
            language: Language = getattr(module, self.name)()
            self._compile = language.compile
            self._remembering = lru_cache(maxsize=REMEMBERED)(language.compile)
        return self._remembering(source) if len(source) < SHORT else self._compile(source)


def load_plugins(activities: Iterable[Any] = (), *, installed: bool = True) -> Plugins:
    """What comes with Holdfast, what installed packages add, and these activities."""
    plugins = Plugins()
    plugins.add_activities(*BUILT_IN)
    for name in ("JavaScript", "Liquid", "Python"):
        plugins.add_language(LateLanguage(name, name.lower()))
    if installed:
        for entry in entry_points(group=GROUP):
            try:
                entry.load()(plugins)
            except Exception as problem:
                raise PluginInvalid(
                    f"Plugin {entry.name!r} ({entry.value}) cannot be loaded: {problem}"
                ) from problem
    plugins.add_activities(*activities)
    return plugins
