"""A search over a real archive, journal and graph, with the deterministic engine and scripted models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.graph.build import make_graph
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.models.registry import traits_of
from ridgeline.graph.models.search_model import AskedAtOnce
from ridgeline.graph.search.context import SearchContext, stored_target
from ridgeline.graph.search.running.measuring import Measuring
from ridgeline.problems.spec import Budget, ProblemSpec, load_problem
from ridgeline.tools.engines.remembering import RememberingEngine
from tests.graph.memory_engine import MemoryEngine, seed_kernel, target
from tests.graph.scripted_model import ScriptedModel

REFERENCE = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.rand(4, 8)]


def get_init_inputs():
    return []
"""


def write_problem(folder: Path, **fields: Any) -> ProblemSpec:
    """Write a problem with one seed kernel into `folder` and load it."""
    import yaml

    (folder / "seeds").mkdir(parents=True, exist_ok=True)
    (folder / "reference.py").write_text(REFERENCE)
    stem, source = seed_kernel(1.2)
    (folder / "seeds" / f"{stem}.cpp").write_text(source)
    data = {"name": "toy", "reference": "reference.py", "seeds": ["seeds/*.cpp"], **fields}
    (folder / "problem.yaml").write_text(yaml.safe_dump(data))
    return load_problem(folder / "problem.yaml")


def _as_named(model: ScriptedModel | AskedAtOnce) -> AskedAtOnce:
    """Return a model with the traits that its name means."""
    return model if isinstance(model, AskedAtOnce) else AskedAtOnce(model, traits_of(model.name))


class Search:
    """One search that a test runs."""

    def __init__(self, folder: Path, archive: Archive) -> None:
        self.folder, self.archive = folder, archive
        self.engine = MemoryEngine()
        self.model = ScriptedModel()
        self.events: list[dict[str, Any]] = []

    def context(
        self, *models: ScriptedModel | AskedAtOnce, budget: Budget | None = None, **search: Any
    ) -> SearchContext:
        """Return a context for these settings; without models, the scripted one."""
        defaults = {"rounds": 2, "ideas": 2, "implementations": 2, "tune_trials": 0, "stall_rounds": None}
        problem = write_problem(self.folder / "problem", search=defaults | search)
        return SearchContext(
            problem=problem,
            target=target(),
            described_target=stored_target(self.archive, target()),
            facts=self.archive.run().facts or (),
            archive=self.archive,
            journal=Journal(self.archive),
            measuring=Measuring(engine=RememberingEngine(self.engine, self.archive, target=target())),
            models=ModelPool([_as_named(model) for model in models or (self.model,)]),
            settings=problem.search,
            budget=budget or Budget(),
        )

    async def run(self, context: SearchContext, given: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Run to the end, collecting events; returns the graph's output."""
        graph = make_graph()
        stream = graph.astream(
            {} if given is None else given,
            options.pop("config", None),
            context=context,
            stream_mode=["custom", "values"],
            subgraphs=True,
            version="v2",
            **options,
        )
        output: dict[str, Any] = {}
        async for part in stream:
            if part["type"] == "custom":
                self.events.append(part["data"])
            elif part["type"] == "values" and not part["ns"]:
                output = part["data"]
        return output

    def events_named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == name]


@pytest.fixture
def search(tmp_path: Path) -> Iterator[Search]:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        yield Search(tmp_path, archive)
