"""Candidates per minute of one offline search on one GPU and on every GPU of the machine that is like it.

    PYTHONPATH=src python benchmarks/throughput.py [PROBLEM …] [--search-s 60] [--device cuda|cpu]

Both searches begin alike: the same random seed, no build in the cache, eager PyTorch timed (torch.compile is left out)
and the seed kernels judged before the clock starts, and on each GPU the judge up and the ceilings known. Then the
candidates are counted whose evaluation ended within `--search-s` seconds: sound or not, tuned ones included. Neither
search stops at the floor or when rounds gain nothing, and neither is certified. `measuring_share` is the part of the
window, over all devices, in which a counted candidate was verified or timed: where it is far below 1, builds or the
ends of rounds leave the devices waiting.

With `--device cuda:N` or cpu there is one search on that one device. Each problem's entry is written as it ends, beside
those that the file holds already.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eager_engine import EagerOnlyEngine
from langgraph.runtime import RunControl
from result import merge_result, provenance
from tally import Tally

from ridgeline import SearchOptions, run_search
from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.graph.search.rounds.seeds import seed_candidates
from ridgeline.graph.session.on_device import on_device
from ridgeline.graph.session.problem import changed_settings, find_problem
from ridgeline.problems.spec import ProblemSpec
from ridgeline.tools.engine import BenchmarkTask, CompileTask, DescribeTask, VerifyTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.machine.devices import detect_device, same_gpus
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import Status

ENDLESS = {"rounds": 10_000, "floor_margin": None, "stall_rounds": None}


async def warm_up(engine: LocalEngine, spec: ProblemSpec, devices: Sequence[Device]) -> None:
    """Start each device's judge and let each time one seed kernel, for which it needs its ceilings."""
    problems = [on_device(spec, device) for device in devices]
    described = [problem.described(await engine.submit(DescribeTask(problem=problem))) for problem in problems]
    problem = described[0]
    for seed_kernel in seed_candidates(spec, problem)[:1]:
        build = await engine.submit(CompileTask(problem=problem, candidate=seed_kernel))
        verify = VerifyTask(problem=problem, candidate=seed_kernel, build=build)
        # asked for together they go to different devices: each to the one that has least to do
        verdicts = await asyncio.gather(*(engine.submit(verify) for _ in devices))
        if any(verdict.status is not Status.OK for verdict in verdicts):
            raise SystemExit(f"{spec.name}: {seed_kernel.id} is not accepted: {verdicts[0].reason}")
        timing = BenchmarkTask(problem=problem, candidate=seed_kernel, build=build, verdict=verdicts[0])
        await asyncio.gather(*(engine.submit(timing) for _ in devices))


async def search(spec: ProblemSpec, devices: Sequence[Device], name: str, window_s: float, folder: Path) -> Any:
    """Return what one search on these devices evaluated within the window."""
    cache, run_dir = folder / "cache", folder / f"run-{len(devices)}"
    shutil.rmtree(cache / "builds", ignore_errors=True)  # the search before this one built the same sources
    tally, stop = Tally(window_s, time.monotonic), RunControl()

    def on_event(event: Any) -> None:
        if tally.take(event):
            stop.request_drain("the window is closed")

    engine = EagerOnlyEngine(cache_dir=cache, log=folder / "engine.log", alike=devices)
    try:
        await warm_up(engine, spec, devices)
        options = SearchOptions(
            problem=spec,
            run_dir=run_dir,
            device=name,
            models=("offline",),
            settings=changed_settings(spec, ENDLESS),
        )
        await run_search(options, engine=engine, on_event=on_event, stop=stop)
    finally:
        await engine.aclose()
    figures = tally.figures()
    measured_s = measuring_s(run_dir, tally)
    return figures | {"measuring_share": measured_s / (len(devices) * tally.open_s) if tally.open_s else None}


def measuring_s(run_dir: Path, tally: Tally) -> float:
    """Return the seconds for which the counted candidates had a device."""
    with Archive.open(run_dir / FILE_NAME, create=False) as archive:
        counted = [e for e in archive.evaluations() if e.candidate_id in tally.statuses]
    verified_s = sum(e.verdict.verify_s for e in counted if e.verdict)
    return verified_s + sum(e.timing.load_s + e.timing.benchmark_s for e in counted if e.timing)


def measure(spec: ProblemSpec, device_name: str, window_s: float) -> dict[str, Any]:
    """Return a problem's entry: its figures by the number of devices."""
    device = detect_device(device_name)
    cases: dict[str, tuple[Device, ...]] = {"cuda:0" if device_name == "cuda" else device_name: (device,)}
    if device_name == "cuda" and len(alike := same_gpus(device)) > 1:
        cases["cuda"] = alike
    entry: dict[str, Any] = {"measured": provenance(), "search_s": window_s, "devices": {}}
    with tempfile.TemporaryDirectory(prefix="ridgeline-throughput-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # builds run as another user
        for name, devices in cases.items():
            found = asyncio.run(search(spec, devices, name, window_s, Path(folder)))
            entry["devices"][str(len(devices))] = found
            print(f"{spec.name} on {len(devices)}: {json.dumps(found)}", flush=True)
    rates = [found["candidates_per_minute"] for found in entry["devices"].values()]
    if len(rates) > 1 and all(rates):
        entry["gain"] = rates[-1] / rates[0]
    return entry


def main() -> None:
    """Measure each problem and write its entry."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("problems", nargs="*", default=["softmax"], help="shipped problems that `offline` covers")
    parser.add_argument("--search-s", type=float, default=60.0, help="seconds in which candidates are counted")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    device = detect_device(arguments.device)
    for name in arguments.problems:
        entry = measure(find_problem(name), arguments.device, arguments.search_s)
        path = merge_result(f"throughput-{device.kind.value}", {name: entry}, device=device)
    print(path)


if __name__ == "__main__":
    main()
