"""Searches and judgements of an agent's tools with the engine in memory and scripted models of the search."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.memory_machine import in_memory
from tests.graph.scripted_model import ScriptedModel

SMALL = {"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 0, "stall_rounds": None}


class Bench:
    """A problem in a folder, the engine that measures it and the model that writes its kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.runs = folder, folder / "runs"
        self.engine, self.model = MemoryEngine(), ScriptedModel()
        self.problem = write_problem(folder / "problem", search=SMALL)
        self.path = str(self.problem.path)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench(tmp_path)
    in_memory(monkeypatch, lambda: bench.engine, lambda: bench.model)
    monkeypatch.chdir(tmp_path)
    return bench
