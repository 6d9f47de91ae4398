"""The reference says everything: what is generated is up to date, and nothing public is left out.

So does the page about guarantees: each with its checks and its mutants.
"""

import re

from docs.build import error_classes, fault_codes, pages, problem_codes

import holdfast
from holdfast.activities import BUILT_IN
from holdfast.authoring import activity_type
from tests.docs.pages import ROOT
from tests.guarantees.checks import CHECKS
from tests.guarantees.mutants import MUTANTS

REFERENCE = ROOT / "docs" / "reference"


def test_generated_pages_are_what_the_code_says_now() -> None:
    for path, text in pages().items():
        written = path.read_text("utf-8") if path.exists() else ""
        assert written == text, f"{path.relative_to(ROOT)} is behind the code: run `make docs`"


def test_every_activity_type_has_an_entry() -> None:
    headings = re.findall(r"^### (\S+)$", (REFERENCE / "activities.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(activity_type(made).name for made in BUILT_IN)


def test_every_error_code_has_an_entry() -> None:
    text = (REFERENCE / "errors.md").read_text("utf-8")
    codes = {kind.code for kind in error_classes()} | {code for code, _ in fault_codes()}
    codes |= {problem.code for problem in problem_codes()}
    assert not [code for code in sorted(codes) if f"`{code}`" not in text]


def test_every_public_name_is_in_the_python_reference() -> None:
    text = (REFERENCE / "python.md").read_text("utf-8")
    missing = [name for name in holdfast.__all__ if not re.search(rf"`(@|async )?{name}\b", text)]
    assert not missing, f"docs/reference/python.md says nothing about {', '.join(missing)}"


def test_every_guarantee_is_explained_with_its_checks_and_mutants() -> None:
    text = (ROOT / "docs" / "explanation" / "guarantees.md").read_text("utf-8")
    rows = {int(found[1]): found[0] for found in re.finditer(r"^\| (\d+) \|.*$", text, re.MULTILINE)}
    for number, check in CHECKS:
        assert f"`{check.__name__}`" in rows[number], f"guarantee {number} has the check {check.__name__}"
    for mutant in MUTANTS:
        assert mutant.name in rows[mutant.guarantee], f"guarantee {mutant.guarantee}: {mutant.name}"
