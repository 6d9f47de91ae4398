"""Workflows and activities in files: JSON, and Python modules.

A workflow's file is JSON, or Python that makes one definition and perhaps the activities it uses.
Reading never runs a workflow, but importing a Python file does run that file, as `python FILE` would.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from inspect import isclass, ismodule, isroutine, signature
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from holdfast.authoring import ActivityType
from holdfast.codec import decode
from holdfast.definitions.document import Definition, load_definition
from holdfast.errors import Invalid
from holdfast.machines.machine import Machine

LARGEST = 64 * 1024 * 1024


class FileUnusable(Invalid):
    """A file that was named cannot be read, or is not what it should be."""

    code = "file.unusable"


class WorkflowFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that was read: the document in it, and the activities that came with it."""

    path: Path
    document: bytes
    activities: tuple[Any, ...] = ()

    def definition(self) -> Definition:
        """The definition in it, named after the file where it has no id. Raises Invalid."""
        definition = load_definition(self.document)
        if not definition.definition_id:
            definition = definition.with_members(definitionId=self.path.stem)
        return definition


def read_workflow(path: Path) -> WorkflowFile:
    """Read a JSON file, or import a Python file. Raises FileUnusable."""
    if path.suffix == ".py":
        module = _import_file(path)
        return WorkflowFile(
            path=path, document=_definition_in(module, path).save(), activities=tuple(activities_in(module))
        )
    return WorkflowFile(path=path, document=read_file(path))


def read_companions(paths: Iterable[Path], *, besides: Iterable[Path] = ()) -> list[WorkflowFile]:
    """What `--with` names: files, and of folders all definitions in them."""
    known = {path.resolve() for path in besides}
    found: list[WorkflowFile] = []
    for given in paths:
        for path in expand([given]):
            if path.resolve() in known:
                continue
            known.add(path.resolve())
            workflow = read_workflow(path)
            if path == given or looks_like_a_definition(workflow.document):
                found.append(workflow)
    return found


def expand(paths: Iterable[Path]) -> Iterator[Path]:
    """The files themselves, and for a folder the JSON files in it. Raises FileUnusable when it has none."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        files = [found for found in sorted(path.glob("*.json")) if not found.is_dir()]
        if not files:
            raise FileUnusable(f"The folder {path} has no *.json files in it.")
        yield from files


def import_activities(names: Iterable[str]) -> list[Any]:
    """What `--activities` names: a module by its dotted name, or a Python file."""
    found: list[Any] = []
    for name in names:
        module = import_module(name)
        made = list(activities_in(module))
        if not made:
            raise FileUnusable(f"{name} has no activities: decorate functions or classes with @activity.")
        found += made
    return found


def activities_in(module: ModuleType) -> Iterator[Any]:
    """Everything in a module that is decorated with `@activity`, each once."""
    seen: set[int] = set()
    for value in vars(module).values():
        kind = getattr(value, "__activity_type__", None)
        if isinstance(kind, ActivityType) and id(kind) not in seen:
            seen.add(id(kind))
            yield value


def import_machines(names: Iterable[str]) -> list[Machine[Any, Any]]:
    """The machines of modules, by dotted name or as Python files. Raises FileUnusable."""
    found: list[Machine[Any, Any]] = []
    for name in names:
        made = machines_in(import_module(name))
        if not made:
            raise FileUnusable(f"{name} has no machines: make one with Machine(...), at the top level.")
        found += [machine for machine in made if machine not in found]
    return found


def machines_in(module: ModuleType) -> list[Machine[Any, Any]]:
    """The machines of a module, each once."""
    found: dict[Machine[Any, Any], None] = {}
    for value in vars(module).values():
        if isinstance(value, Machine):
            found.setdefault(value)  # pyright: ignore[reportUnknownArgumentType]  of whatever types
    return list(found)


def read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise FileUnusable(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise FileUnusable(f"{path} is a folder. Name a file in it.") from None
    except PermissionError:
        raise FileUnusable(f"{path} may not be read: permission denied.") from None
    except OSError as problem:
        raise FileUnusable(f"{path} cannot be read: {problem.strerror}.") from None
    if len(content) > LARGEST:
        raise FileUnusable(f"{path} has more than {LARGEST // 1024 // 1024} MB: that is no definition.")
    return content


def looks_like_a_definition(document: bytes) -> bool:
    """Folders hold other JSON too. What cannot be read is kept, so that somebody hears of it."""
    try:
        value = decode(document)
    except Invalid:
        return True
    return isinstance(value, dict) and "root" in value


def _import_module(name: str) -> ModuleType:
    _make_importable(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name and (name == problem.name or name.startswith(f"{problem.name}.")):
            raise FileUnusable(f"There is no module {name!r} here: {problem}.") from None
        raise _import_failed(name, problem) from problem
    except (Exception, SystemExit) as problem:  # importing runs anybody's code
        raise _import_failed(name, problem) from problem


def _import_file(path: Path) -> ModuleType:
    """The module in a file, under a name that no other module has; its folder can be imported from."""
    read_file(path)
    name = f"{path.stem}_{sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FileUnusable(f"{path} cannot be imported as Python.")
    module = importlib.util.module_from_spec(spec)
    _make_importable(path.resolve().parent)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:  # importing runs anybody's code
        del sys.modules[name]
        raise _import_failed(str(path), problem) from problem
    return module


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _import_failed(name: str, problem: BaseException) -> FileUnusable:
    return FileUnusable(f"{name} cannot be imported: {type(problem).__name__}: {problem}")


def import_module(name: str) -> ModuleType:
    """A module by its dotted name, or the one in a Python file. Raises FileUnusable."""
    return _import_file(Path(name)) if name.endswith(".py") else _import_module(name)


def definitions_in(module: ModuleType) -> dict[str, Definition]:
    """What a module makes, by name: Definitions, and objects whose `build()` gives one."""
    found: dict[str, Definition] = {}
    seen: set[int] = set()
    for name, value in list(vars(module).items()):
        if (
            id(value) in seen
            or name.startswith("__")
            or isclass(value)
            or ismodule(value)
            or isroutine(value)
        ):
            continue
        seen.add(id(value))
        definition = value if isinstance(value, Definition) else _built(value)
        if definition is not None:
            found[name] = definition
    return found


def _definition_in(module: ModuleType, path: Path) -> Definition:
    found = definitions_in(module)
    if len(found) != 1:
        has = f"{len(found)}: {', '.join(found)}" if found else "none"
        raise FileUnusable(
            f"{path} must make exactly one workflow, and it has {has}. "
            f"A workflow is a Definition, or an object whose build() returns one."
        )
    return next(iter(found.values()))


def _built(value: Any) -> Definition | None:
    for name in ("build", "definition"):
        method = getattr(value, name, None)
        if callable(method) and _takes_nothing(method):
            made = method()
            if isinstance(made, Definition):
                return made
    return None


def _takes_nothing(method: Callable[..., Any]) -> bool:
    try:
        signature(method).bind()
    except (TypeError, ValueError):
        return False
    return True
