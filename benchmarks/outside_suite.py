"""Common part of the adapters of outside suites: a published kernel through `ridgeline evaluate`, and one table.

A published kernel is a KernelBench pair: a reference with `Model`, and a file with `ModelNew` that may build what it
needs by itself. The pair is laid out as a problem of interface `module` in a temporary folder and judged as any
candidate, sandbox included. The suite's files stay where the user has them; nothing of them is kept here but names.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eager_engine import EagerOnlyEngine
from kernel import described, kernel_of
from result import merge_result, provenance

from ridgeline.graph.library.evaluation import aevaluate
from ridgeline.graph.session.machine import target_of
from ridgeline.problems.spec import ProblemSpec, load_problem
from ridgeline.tools.engine import CompileTask, Engine
from ridgeline.tools.machine.devices import detect_device

CANDIDATE = "candidate.py"
REJECTED = frozenset({"wrong", "runtime_error", "timeout", "refused", "degenerate", "untrusted"})
"""Every way to be turned down but a build that fails: a cheat that does not build here has shown nothing."""
NOT_JUDGED = frozenset({"interface_unsupported", "engine_failed", "load_failed", "load_timeout"})
"""Reasons that say nothing of what a kernel computes."""
ACCEPTED = frozenset({"ok"})
KEPT = (
    "status",
    "reason_code",
    "reason",
    "labels",
    "rel_error",
    "precision_class",
    "median_ms",
    "reference_ms",
    "speedup",
    "speedup_ci95",
    "speedup_vs_best",
    "build_s",
    "total_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One kernel of a suite, and what should become of it."""

    name: str
    reference: str
    source: str
    expected: frozenset[str]
    tolerance: str = "crfm"  # the suites' own: 1e-2, so what is rejected is rejected by their rule too
    most_speedup: float | None = None  # an accepted one's, for a cheat whose trick is one of timing
    known: Mapping[str, Any] = field(default_factory=dict)  # what is known of it from elsewhere, for the table


def lay_out(published: Published, device: str, folder: Path) -> ProblemSpec:
    """Write a published pair as a problem and its candidate into `folder`, and return the problem."""
    folder.mkdir()
    (folder / "reference.py").write_text(published.reference)
    (folder / CANDIDATE).write_text(published.source)
    (folder / "problem.yaml").write_text(problem_text(published, device))
    return load_problem(folder / "problem.yaml")


async def build(engine: Engine, spec: ProblemSpec, published: Published, device: str) -> None:
    """Have a kernel built: nvcc takes a minute for one, and builds beside each other."""
    target = target_of(spec, device)
    problem = await described(engine, target)
    kernel = kernel_of(problem, published.source, name="published")
    await engine.submit(CompileTask(problem=problem, candidate=kernel))


async def judge_all(chosen: Sequence[Published], device: str, on_entry: Callable[[str, dict[str, Any]], None]) -> None:
    """Judge each kernel as `ridgeline evaluate` does, against eager PyTorch alone."""
    engine = EagerOnlyEngine()
    with tempfile.TemporaryDirectory(prefix="ridgeline-outside-") as name:
        try:
            specs = [lay_out(p, device, Path(name) / str(i)) for i, p in enumerate(chosen)]
            pairs = list(zip(specs, chosen, strict=True))
            await asyncio.gather(*(build(engine, spec, published, device) for spec, published in pairs))
            for i, (spec, published) in enumerate(pairs):
                files = [Path(name) / str(i) / CANDIDATE]
                (judged,) = await aevaluate(spec, files, device=device, engine=engine)
                on_entry(published.name, entry_of(published, judged.to_dict()))
        finally:
            await engine.aclose()


def entry_of(published: Published, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a kernel's entry: what became of it, and whether that was expected."""
    entry = {key: line[key] for key in KEPT}
    entry["baselines_ms"] = {b["name"]: b["median_ms"] for b in line["baselines"]}
    return {
        "measured": provenance(),
        "expected": sorted(published.expected),
        "as_expected": is_as_expected(published, line),
        "tolerance": published.tolerance,
        "known": dict(published.known),
        **entry,
    }


def is_as_expected(published: Published, line: Mapping[str, Any]) -> bool:
    """Say whether a kernel ended as it should, and without a gain that its trick would have bought."""
    gained = line["speedup"] or 0.0
    is_bounded = published.most_speedup is None or gained <= published.most_speedup
    return line["status"] in published.expected and line["reason_code"] not in NOT_JUDGED and is_bounded


def problem_text(published: Published, device: str) -> str:
    """Return the problem.yaml of one published kernel."""
    slug = "".join(c if c.isalnum() else "-" for c in published.name.lower()).strip("-")
    return (
        f"name: {slug[:60]}\nreference: reference.py\ninterface: module\ntolerance: {published.tolerance}\n"
        f"targets: {{{device.split(':', maxsplit=1)[0]}: {{}}}}\ncall_timeout_s: 60.0\n"
    )


def row(name: str, entry: Mapping[str, Any]) -> str:
    """Return one line of the table."""
    mark = "as expected" if entry["as_expected"] else "NOT AS EXPECTED"
    expected = " or ".join(["accepted"] * ("ok" in entry["expected"]) + ["rejected"] * (len(entry["expected"]) > 1))
    said = f"{entry['reason_code']}: {entry['reason']}" if entry["status"] != "ok" else figures(entry)
    return f"{name}: expected {expected}, {entry['status']} ({mark}); {said}"


def figures(entry: Mapping[str, Any]) -> str:
    """Return what is told of an accepted kernel, beside what is known of it."""
    low, high = entry["speedup_ci95"]
    ours = (
        f"{entry['precision_class']}, error {entry['rel_error']:.1e}, {entry['median_ms']:.3f} ms, "
        f"{entry['speedup']:.0%} of eager in class ({low:.2f} to {high:.2f})"
    )
    known = ", ".join(f"{name} {value}" for name, value in entry["known"].items())
    return f"{ours}; known: {known}" if known else ours


def run(result: str, about: str, read: Callable[[Path], Sequence[Published]]) -> None:
    """Judge a suite's kernels, one after the other; exit status 1 when one did not end as expected."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("suite", type=Path, help="the folder of your copy of the suite")
    parser.add_argument("names", nargs="*", help="kernels; without any, all of them")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    device = detect_device(arguments.device)
    chosen = [p for p in read(arguments.suite) if not arguments.names or p.name in arguments.names]
    entries: dict[str, dict[str, Any]] = {}

    def on_entry(name: str, entry: dict[str, Any]) -> None:
        entries[name] = entry
        merge_result(f"outside-{result}-{device.kind.value}", {name: entry}, device=device)
        print(row(name, entry), flush=True)

    asyncio.run(judge_all(chosen, arguments.device, on_entry))
    unexpected = [name for name, entry in entries.items() if not entry["as_expected"]]
    print(json.dumps({"kernels": len(entries), "not_as_expected": unexpected}))
    sys.exit(1 if unexpected else 0)


def text_of(path: Path) -> str:
    """Return a suite's file; one line that says what is missing when it is not there."""
    if not path.is_file():
        raise SystemExit(f"{path}: no such file; give the folder of a copy of the suite")
    return path.read_text(encoding="utf-8")
