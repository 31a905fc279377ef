"""Ridgeline's own time per candidate: graph, checkpoints, archive, journal, engine, build cache and processes between.

    PYTHONPATH=src python benchmarks/overhead.py [--small 2] [--large 10] [--ideas 4] [--implementations 2]

The model answers at once, every build is a trivial one that is in the cache already (a first search puts it there), and
the evaluator is a real child process that judges and times nothing. Two searches of different length run on that: the
difference of their wall times over the difference of their candidates is the figure; start-up and the end (baseline,
certificate, report) cancel.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from result import write_result

from ridgeline import SearchOptions, run_search
from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.models.requests import IdeationRequest, KernelRequest, Reply
from ridgeline.problems.spec import SearchSettings, load_problem
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.records.problem import Device

EVALUATOR = Path(__file__).with_name("instant_evaluator.py")
REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
PROBLEM = "name: overhead\nreference: reference.py\n"
KERNEL = """// {name}
extern "C" void run(const float* x, float* out, void* workspace) {{
  for (int i = 0; i < 4096; ++i) out[i] = 2 * x[i];
}}
"""


class InstantModel:
    """A model that answers at once, always the same for the same request, so that a second search finds every build."""

    @property
    def name(self) -> str:
        """Return what results call it."""
        return "instant"

    async def propose(self, request: IdeationRequest) -> Reply:
        """Return ideas that share no words, or they would be refused as duplicates."""
        ideas = [self._idea(f"r{request.round}i{number}") for number in range(request.count)]
        return Reply(text=json.dumps({"ideas": ideas}))

    async def write(self, request: KernelRequest) -> Reply:
        """Return a kernel that only its first line tells from others."""
        source = KERNEL.format(name=f"{request.idea.title} {request.variation}")
        return Reply(text=json.dumps({"source": source}))

    @staticmethod
    def _idea(word: str) -> dict[str, object]:
        return {
            "title": f"{word}a {word}b {word}c",
            "mechanism": f"{word}d {word}e {word}f {word}g",
            "category": "memory_access",
            "predicted_gain": 1.1,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One search: how long it took and how many candidates a model wrote for it."""

    wall_s: float
    candidates: int
    database_bytes: int


def instant_evaluator(_device: Device) -> list[str]:
    """Return the command of the evaluator that measures nothing."""
    return [sys.executable, str(EVALUATOR)]


async def search(folder: Path, settings: SearchSettings) -> Run:
    """Run one whole search in `folder`."""
    problem = load_problem(folder.parent / "problem.yaml")
    engine = LocalEngine(
        cache_dir=folder.parent / "cache", log=folder.parent / "engine.log", evaluator=instant_evaluator
    )
    started = time.perf_counter()
    try:
        options = SearchOptions(problem=problem, run_dir=folder, settings=settings, rng_seed=1)
        await run_search(options, engine=engine, models=[InstantModel()])
    finally:
        await engine.aclose()
    return finished_run(folder, time.perf_counter() - started)


def finished_run(folder: Path, wall_s: float) -> Run:
    """Return what a finished search left."""
    archive = Archive.open(folder / "archive.sqlite")
    try:
        written = sum(candidate.origin == "model" for candidate in archive.candidates())
    finally:
        archive.close()
    stored = sum(file.stat().st_size for file in folder.glob("*.sqlite*"))
    return Run(wall_s=wall_s, candidates=written, database_bytes=stored)


async def measure(arguments: argparse.Namespace, root: Path) -> dict[str, float]:
    """Fill the build cache with a long search, then time a short and a long one."""
    (root / "problem.yaml").write_text(PROBLEM)
    (root / "reference.py").write_text(REFERENCE)

    def settings(rounds: int) -> SearchSettings:
        width = {"ideas": arguments.ideas, "implementations": arguments.implementations}
        return SearchSettings(rounds=rounds, repairs=0, tune_trials=0, floor_margin=None, stall_rounds=None, **width)

    first = await search(root / "filling", settings(arguments.large))
    small = await search(root / "small", settings(arguments.small))
    large = await search(root / "large", settings(arguments.large))
    more = large.candidates - small.candidates
    if more <= 0:
        raise SystemExit(f"the longer search wrote {large.candidates} candidates, the shorter {small.candidates}")
    return {
        "ms_per_candidate": 1e3 * (large.wall_s - small.wall_s) / more,
        "candidates_small": small.candidates,
        "candidates_large": large.candidates,
        "wall_s_small": small.wall_s,
        "wall_s_large": large.wall_s,
        "wall_s_with_builds": first.wall_s,
        "database_bytes_per_candidate": (large.database_bytes - small.database_bytes) / more,
        "fan_out": arguments.ideas * arguments.implementations,
    }


def main() -> None:
    """Read the arguments, measure, write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", type=int, default=2, help="rounds of the shorter search")
    parser.add_argument("--large", type=int, default=10, help="rounds of the longer search")
    parser.add_argument("--ideas", type=int, default=4)
    parser.add_argument("--implementations", type=int, default=2)
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="ridgeline-overhead-", dir="/var/tmp") as root:
        Path(root).chmod(0o755)  # builds run as another user
        figures = asyncio.run(measure(parser.parse_args(), Path(root)))
    print(json.dumps(figures, indent=2))
    print(write_result("overhead", figures))


if __name__ == "__main__":
    main()
