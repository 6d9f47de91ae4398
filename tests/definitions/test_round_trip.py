"""Loading a definition and saving it again changes nothing, whoever wrote the file."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.codec import decode
from holdfast.definitions.document import load_definition

ROOT = Path(__file__).resolve().parents[2]
CORPORA = (ROOT / "tests/corpus/elsa", ROOT.parent / "shared/corpus/elsa")


def definition_files() -> list[Path]:
    return [
        folder / entry["file"]
        for corpus in CORPORA
        for folder in sorted(path.parent for path in corpus.glob("*/expected.json"))
        if corpus is CORPORA[0] or not folder.name.startswith("t-")
        for entry in decode((folder / "expected.json").read_bytes())["definitions"]
        if entry["load"] != "data"
    ]


def in_order(value: Any) -> Any:
    """Objects as lists of members, so that comparing them compares their order too."""
    if isinstance(value, dict):
        return ["object", *([name, in_order(member)] for name, member in value.items())]
    return [in_order(item) for item in value] if isinstance(value, list) else (type(value).__name__, value)


@pytest.mark.parametrize("file", definition_files(), ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_definition_is_saved_as_it_was_loaded(file: Path) -> None:
    text = file.read_bytes()
    assert in_order(decode(load_definition(text).save())) == in_order(decode(text))
