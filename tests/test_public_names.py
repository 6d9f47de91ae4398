"""The public page: every name on it exists, loads lazily, and nothing else is promised."""

import ast
import subprocess
import sys
from pathlib import Path

import holdfast


def test_every_public_name_loads() -> None:
    for name in holdfast.__all__:
        assert getattr(holdfast, name) is not None


def test_what_a_type_checker_sees_is_what_is_public() -> None:
    tree = ast.parse(Path(holdfast.__file__).read_text())
    seen = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen - {"import_module", "TYPE_CHECKING", "Any"} == set(holdfast.__all__)


def test_public_names_are_sorted() -> None:
    assert holdfast.__all__ == sorted(holdfast.__all__)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, holdfast; print([m for m in sys.modules if m.startswith(('holdfast.', 'msgspec'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_ordinary_attribute_error() -> None:
    assert not hasattr(holdfast, "nonsense")
