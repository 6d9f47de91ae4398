"""That measuring works. How fast anything is belongs to `make bench`, never to a test."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "bench", *arguments)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=115)


def test_a_quick_run_keeps_every_figure_with_where_and_when_it_was_measured(tmp_path: Path) -> None:
    done = bench("engine", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "engine.json").read_text("utf-8"))
    named = {**kept["figures"], **kept["ratios"]}
    assert {name for name, figure in named.items() if not figure["value"] > 0} == set()
    assert {
        "sequence_1000_per_second",
        "flowchart_1000_per_second",
        "backward_loop_per_second",
        "for_loop_per_second",
        "burst_of_3_per_second",
        "javascript_per_second",
        "compile_sequence_500",
        "waiting_turn",
        "activity_bytes",
    } <= kept["figures"].keys()
    assert {
        "faster_than_spiff_10",
        "faster_than_spiff_100",
        "faster_than_spiff_1000",
        "slower_than_bare_1000",
        "flat_sequence",
        "flat_flowchart",
    } <= kept["ratios"].keys()
    assert kept["ratios"]["flat_sequence"]["at_most"] == 1.3
    assert kept["machine"]["cores"] > 0
    assert kept["versions"]["SpiffWorkflow"]
    assert kept["python"] and kept["date"]


def test_a_quick_run_of_the_runtime_measures_every_store_that_is_here(tmp_path: Path) -> None:
    done = bench("runtime", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "runtime.json").read_text("utf-8"))
    places = ["sqlite", *(["postgres"] if "postgres_p50" in kept["figures"] else [])]
    for place in places:
        for figure in (
            "a_per_second",
            "b_per_second",
            "a_many_per_second",
            "a_floor_per_second",
            "a_processor",
            "b_processor",
            "p50",
            "p99",
            "suspend_per_second",
            "resume_per_second",
            "bytes_waiting",
        ):
            assert kept["figures"][f"{place}_{figure}"]["value"] > 0, figure
        assert kept["figures"][f"{place}_late_worst"]["value"] >= 0
        assert kept["ratios"][f"share_of_floor_{place}_a"]["value"] > 0
    if "postgres" in places:
        assert kept["versions"]["dbos"]
        assert kept["figures"]["dbos_per_second"]["value"] > 0
        assert kept["figures"]["rows_a"]["value"] >= 5
        assert {
            "faster_than_dbos_a",
            "faster_than_dbos_b",
            "full_to_empty_a",
            "full_to_empty_b",
            "workers_2_to_1",
        } <= kept["ratios"].keys()


def test_a_subject_that_is_not_there_is_answered_with_those_that_are() -> None:
    done = bench("engines")
    assert done.returncode == 2
    assert "There is no subject 'engines'" in done.stderr
    assert "engine" in done.stderr.rpartition("There are:")[2]
