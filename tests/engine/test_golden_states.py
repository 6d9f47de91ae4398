"""States of every released format can be read, and go on as they would have.

`golden/format-N.json` holds a definition, a state that a version writing format N kept, and what
happens next. Files are only ever added here: a state in somebody's database does not change either.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine import StateUnreadable, decode_state, encode_state
from holdfast.engine.interpreter import Outcome
from holdfast.instance import FORMAT
from holdfast.testing import Host, HostedInstance

GOLDEN = sorted((Path(__file__).parent / "golden").glob("format-*.json"))


def test_there_is_a_golden_file_for_the_present_format() -> None:
    assert f"format-{FORMAT}.json" in [path.name for path in GOLDEN]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
async def test_a_kept_state_goes_on_where_it_was(path: Path) -> None:
    golden: dict[str, Any] = json.loads(path.read_text())
    host = Host()
    definition = await host.load(golden["definition"])
    instance = HostedInstance(golden["state"]["id"])
    state = decode_state(json.dumps(golden["state"]).encode())
    instance.keep(Outcome(state=state), host.definitions.graph(definition))
    for bookmark in golden["resume"]:
        await host.resume(instance, bookmark, golden["input"])
    assert host.console.written == golden["lines"]
    assert instance.sub_status == "Finished"


def test_the_present_format_is_written_as_it_always_was() -> None:
    golden = json.loads((Path(__file__).parent / "golden" / f"format-{FORMAT}.json").read_text())
    state = decode_state(json.dumps(golden["state"]).encode())
    assert json.loads(encode_state(state)) == golden["state"]


@pytest.mark.parametrize(
    "text",
    [b"", b"null", b"[]", b"{}", b'{"format": "x"}', b'{"format": -3}', b"\xff", b"[" * 100_000],
    ids=["empty", "null", "list", "nothing", "wrong", "negative", "bytes", "deep"],
)
def test_what_is_no_state_is_refused(text: bytes) -> None:
    with pytest.raises(StateUnreadable):
        decode_state(text)


def test_a_state_from_the_future_says_which_version_reads_it() -> None:
    with pytest.raises(StateUnreadable, match="format 99"):
        decode_state(b'{"format": 99}')
