"""A command line to call, and small workflows to call it with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from holdfast.cli import cli

EXAMPLES = Path(__file__).parents[2] / "examples"

Holdfast = Callable[..., Result]
Save = Callable[..., Path]


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def holdfast() -> Holdfast:
    """Call the command line in this process."""

    def call(*arguments: str | Path, **more: Any) -> Result:
        return CliRunner().invoke(cli, [str(a) for a in arguments], **more)

    return call


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Save a workflow around these activities, and say where."""

    def save(*activities: dict[str, Any], name: str = "made", **members: Any) -> Path:
        root = {"id": "steps", "type": "Elsa.Sequence", "activities": list(activities)}
        path = tmp_path / f"{name}.json"
        path.write_bytes(msgspec.json.encode({"definitionId": name, "name": name, "root": root, **members}))
        return path

    return save


def script(text: str, type_name: str = "Object") -> dict[str, Any]:
    return {"typeName": type_name, "expression": {"type": "JavaScript", "value": text}}


def write_line(text: Any, id_: str = "write") -> dict[str, Any]:
    return {"id": id_, "type": "Elsa.WriteLine", "text": text}


def fault(message: str, code: str | None = None) -> dict[str, Any]:
    return {"id": "boom", "name": "Boom", "type": "Elsa.Fault", "message": message, "code": code}
