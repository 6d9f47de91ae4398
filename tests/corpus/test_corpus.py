"""The conformance scenarios, each case a test on each host: ours, and the shared ones where they are."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.corpus import HOSTS, find_scenarios, missing_features, play
from holdfast.testing.corpus_scenario import Scenario, read_scenario

OURS = Path(__file__).parent / "elsa"
SHARED = Path(__file__).resolve().parents[3] / "shared/corpus/elsa"


def cases() -> list[Any]:
    shared = [folder for folder in find_scenarios(SHARED) if not folder.name.startswith("t-")]
    return [
        pytest.param(scenario, index, id=f"{scenario.name}/{scenario.case_name(index)}")
        for scenario in map(read_scenario, [*find_scenarios(OURS), *shared])
        for index in range(len(scenario.cases))
    ]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(("scenario", "index"), cases())
async def test_a_case_keeps_what_it_says(scenario: Scenario, index: int, host: str) -> None:
    missing = missing_features(scenario)
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    failures = await play(scenario, index, HOSTS[host])
    assert not failures, "\n".join(failure.tell() for failure in failures)
