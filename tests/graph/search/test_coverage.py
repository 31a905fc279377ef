"""Which problems the offline model alone is refused for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import DESCRIPTION, target

from ridgeline.graph.search.coverage import refuses_uncovered

SCAN = {
    "schema_version": 2,
    "nodes": [],
    "inputs": [],
    "parameters": [],
    "outputs": [],
}


def test_what_is_refused_once_described_is_known_before_a_search_waits_for_it(tmp_path: Path) -> None:
    problem = write_problem(tmp_path, seeds=[])
    refuses = refuses_uncovered(problem, "cpu", composes_alone=True)
    assert refuses is not None
    assert refuses(target().described(replace(DESCRIPTION, reference_graph=SCAN)))


@pytest.mark.parametrize(("composes_alone", "seeds"), [(False, []), (True, ["seeds/*.cpp"])])
def test_nothing_is_refused_with_another_model_or_with_seed_kernels(
    composes_alone: bool, seeds: list[str], tmp_path: Path
) -> None:
    problem = write_problem(tmp_path, seeds=seeds)
    assert refuses_uncovered(problem, "cpu", composes_alone=composes_alone) is None
