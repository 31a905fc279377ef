"""What the pages say of the benchmarks is what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ridgeline.tools.records.keys import JUDGE_VERSION

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
MEASUREMENTS = (ROOT / "docs" / "measurements.md").read_text()


def has_a_command(script: Path) -> bool:
    """Say whether a script's first lines tell how to run it."""
    return f"python benchmarks/{script.name}" in script.read_text().split('"""')[1]


def test_some_scripts_have_a_command_and_some_are_their_parts() -> None:
    assert 10 < sum(map(has_a_command, SCRIPTS)) < len(SCRIPTS)


@pytest.mark.parametrize("script", list(filter(has_a_command, SCRIPTS)), ids=lambda path: path.name)
def test_every_script_with_a_command_has_a_row(script: Path) -> None:
    assert re.search(
        rf"^\|.*`(PYTHONPATH=\S+ \S+python benchmarks/)?{re.escape(script.name)}( --table)?`.*\|",
        CONTRIBUTING,
        re.MULTILINE,
    )


def test_the_page_of_measurements_says_what_the_judges_version_changed() -> None:
    assert re.search(rf"^- Version {JUDGE_VERSION} ", MEASUREMENTS, re.MULTILINE)


@pytest.mark.parametrize("result", sorted((ROOT / "benchmarks" / "results").glob("*.json")), ids=lambda path: path.name)
def test_a_result_was_taken_by_a_judge_that_there_was(result: Path) -> None:
    for version in re.findall(r'"judge_version": (\d+)', json.dumps(json.loads(result.read_text()))):
        assert 1 <= int(version) <= JUDGE_VERSION
