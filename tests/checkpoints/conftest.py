"""Real archives for the tests: an empty one, one filled as a finished search fills it, and their records."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.round_record import RoundRecord
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.tools.records.baselines import Baseline, Baselines, Floor
from ridgeline.tools.records.keys import comparison_key
from ridgeline.tools.records.problem import ArgSpec, Description, Device, Signature
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Build, Comparison, Evaluation, Timing, Trial, Verdict
from ridgeline.tools.records.search import Candidate, Idea
from ridgeline.tools.records.vocabulary import (
    Category,
    DeviceKind,
    Origin,
    PrecisionClass,
    Purpose,
    ReasonCode,
    Role,
    Status,
)

EAGER_MS = 1.21
SOURCE = """#include <cmath>
// {title}
extern "C" void run(const float* x, const float* weight, float* out, void* workspace) {{
  #pragma omp parallel for schedule(static)
  for (long row = 0; row < ROWS; ++row) {{
    const float* a = x + row * COLS;
    float sum = 0.f;
    for (int i = 0; i < COLS && i >= 0; ++i) sum += a[i] * 0.5f * (1.f + erff(a[i] * 0.70710678f));
    out[row] = sum / COLS;
  }}
}}
"""
DEVICE = Device(
    kind=DeviceKind.CPU, name="Intel(R) Xeon(R) Platinum 8481C", arch="sapphirerapids-1f", uuid="cpu", cores=2,
    memory_bytes=8 << 30, cache_bytes=105 << 20,
)  # fmt: skip


def make_idea(round: int, number: int, title: str, parent_id: str | None, **fields: object) -> Idea:
    return Idea(
        id=f"r{round}i{number}", round=round, title=title, mechanism=f"{title}, because memory traffic is what costs.",
        category=fields.pop("category", Category.MEMORY_ACCESS), predicted_gain=1.3, parent_id=parent_id,
        model="offline", **fields,
    )  # fmt: skip


def make_candidate(candidate_id: str, **fields: object) -> Candidate:
    default = {
        "origin": Origin.MODEL, "round": 1, "idea_id": None, "parent_id": None, "language": "cpp",
        "source": SOURCE.format(title=candidate_id), "model": "offline",
    }  # fmt: skip
    return Candidate(id=candidate_id, **(default | fields))


def make_ok(candidate_id: str, speedup: float, purpose: Purpose = Purpose.SEARCH, drift: float = 1.0) -> Evaluation:
    reference_ms = EAGER_MS * drift
    timing = Timing(
        status=Status.OK, median_ms=reference_ms / speedup, p10_ms=reference_ms / speedup * 0.97,
        p90_ms=reference_ms / speedup * 1.08, samples=120, reference_ms=reference_ms, speedup=speedup,
        speedup_ci95=(speedup * 0.98, speedup * 1.02), witness_ms=reference_ms / speedup, benchmark_s=1.4,
    )  # fmt: skip
    verdict = Verdict(
        status=Status.OK, rel_error=2.1e-7, precision_class=PrecisionClass.FP32, sandbox_tier="A", verify_s=0.6
    )
    build = Build(key=f"build-{candidate_id}", status=Status.OK, library_path="/tmp/k.so", build_s=1.1)
    return Evaluation(
        key=f"key-{candidate_id}-{purpose}", candidate_id=candidate_id, purpose=purpose, status=Status.OK,
        build=build, verdict=verdict, timing=timing, total_s=3.2,
    )  # fmt: skip


def make_failed(candidate_id: str, status: Status, code: ReasonCode, reason: str) -> Evaluation:
    return Evaluation(
        key=f"key-{candidate_id}", candidate_id=candidate_id, purpose=Purpose.SEARCH, status=status, reason_code=code,
        reason=reason, build=Build(key=f"build-{candidate_id}", status=Status.OK, build_s=0.9), total_s=1.0,
    )  # fmt: skip


def make_baselines() -> Baselines:
    fp32 = PrecisionClass.FP32
    return Baselines(
        device=DEVICE,
        entries=(
            Baseline(name=ReferenceMode.EAGER, precision_class=fp32, median_ms=EAGER_MS, p10_ms=1.18, p90_ms=1.3, samples=90),
            Baseline(name=ReferenceMode.COMPILE, precision_class=fp32, median_ms=0.84, samples=90),
            Baseline(name=ReferenceMode.MAX_AUTOTUNE, precision_class=fp32, median_ms=0.80, samples=90),
            Baseline(name=ReferenceMode.EAGER_TF32, precision_class=PrecisionClass.TF32, median_ms=None, error="no TF32"),
        ),
        floor=Floor(floor_ms=0.42, compute_floor_ms=0.05, bound="memory", bandwidth_gbps=29.8, gflops=140.0),
    )  # fmt: skip


def make_description() -> Description:
    args = (
        ArgSpec(name="x", role=Role.INPUT, shape=(2048, 768), strides=(768, 1)),
        ArgSpec(name="out", role=Role.OUTPUT, shape=(2048, 768), strides=(768, 1)),
    )
    return Description(
        signature=Signature(args=args), reference_graph={"schema_version": 1, "nodes": []}, compulsory_bytes=12582912,
        flops=31457280, reference_sha256="ab" * 32, torch_version="2.13.0",
    )  # fmt: skip


def _fill_run(archive: Archive) -> None:
    problem = {"name": "quickstart", "reference": "reference.py", "interface": "c", "tolerance": "fp32"}
    archive.save_run(
        RunRecord(
            search_id="5e4c", problem=problem, device=DEVICE, graph_version=1, reference_source="class Model: ...",
            state="finished", wall_s=311.5, rng_seed=0, models=("offline",), strategy="branch", sandbox_tier="A",
            versions={"ridgeline": "0.1.0", "python": "3.11.7", "torch": "2.13.0", "compiler": "g++ 12.2.0"},
        )
    )  # fmt: skip
    archive.save_description(make_description())
    archive.save_baselines(make_baselines())
    for stem, speedup in (("naive", 0.62), ("fused", 1.31)):
        archive.add_candidate(make_candidate(f"seed-{stem}", origin=Origin.SEED, round=0, model=""))
        archive.add_evaluation(make_ok(f"seed-{stem}", speedup))


ROUNDS = (
    (
        ("Fuse the bias, GELU and residual into one pass", "seed-fused", (1.28, 1.36)),
        ("Replace libm's erf by an inline polynomial <script>alert(1)</script>", "seed-fused", (1.62, None)),
        ("Keep the row in registers between the two passes", "seed-fused", (1.18, 0.97)),
        ("Prefetch the next row", "seed-naive", (None, None)),
    ),
    (
        ("Online mean and variance in a single sweep", "r1i2v0a0", (1.71, 1.74)),
        ("Sixteen-wide vectors with a masked tail", "r1i2v0a0", (1.69, None)),
        ("Block two rows per thread", "r1i1v1a0", (1.33, 1.29)),
        ("Use fast reciprocal square root", "r1i2v0a0", (1.66, 1.64)),
    ),
    (
        ("Stream the output past the cache", "r2i1v1a0", (2.13, 2.18)),
        ("Static schedule with one chunk a thread", "r2i1v1a0", (1.76, 1.75)),
        ("Recompute GELU instead of storing it", "r2i2v0a0", (1.41, None)),
        ("Software pipelining of loads", "r2i1v1a0", (None, 1.7)),
    ),
    (
        ("Align the row buffer and unroll by four", "r3i1v1a0", (2.21, 2.16)),
        ("Huge pages for the workspace", "r3i1v1a0", (2.12, 2.1)),
        ("Polynomial of lower degree for erf", "r3i1v1a0", (None, None)),
        ("Merge both strategies", "r3i1v1a0", (2.05, 1.93)),
    ),
)
FAILURES = (
    (Status.WRONG, ReasonCode.WRONG_VALUES, "rows after 2040 are not written; relative error 0.031, gate 1e-05"),
    (Status.COMPILE_ERROR, ReasonCode.COMPILER_FAILED, "line 7: 'ROW' was not declared; did you mean 'ROWS'?"),
    (Status.RUNTIME_ERROR, ReasonCode.CRASHED, "killed by SIGSEGV reading past the end of x"),
    (Status.WRONG, ReasonCode.PRECISION_TOO_LOW, "relative error 8.1e-04 is tf32; the problem accepts fp32"),
)


def _fill_round(archive: Archive, number: int, failures: Iterator[tuple[Status, ReasonCode, str]]) -> None:
    categories = tuple(Category)
    for n, (title, parent_id, speedups) in enumerate(ROUNDS[number - 1], start=1):
        second = "r2i4v1a0" if title.startswith("Merge") else None
        category = categories[(n + number) % 6]
        archive.add_ideas([make_idea(number, n, title, parent_id, category=category, second_parent_id=second)])
        for v, speedup in enumerate(speedups):
            candidate_id = f"r{number}i{n}v{v}a0"
            archive.add_candidate(
                make_candidate(candidate_id, round=number, idea_id=f"r{number}i{n}", parent_id=parent_id, variation=v)
            )
            drift = 1 + 0.03 * ((n + v) % 3 - 1)
            failed = make_failed(candidate_id, *next(failures)) if speedup is None else None
            archive.add_evaluation(failed or make_ok(candidate_id, speedup, drift=drift))
            archive.charge(f"{candidate_id}:measure", cpu_s=5.5, wall_s=3.2, what="search")


def fill(archive: Archive, *, rounds: int = 4) -> None:
    """Fill an archive as a search of four rounds or fewer, its tuning and its certificate do."""
    _fill_run(archive)
    journal = Journal(archive)
    failures = iter(FAILURES * 4)
    for number in range(1, rounds + 1):
        call_id = f"r{number}:ideate:0"
        journal.begin(call_id, model="offline", prompt_sha256="cd" * 32, request={"round": number})
        journal.finish(call_id, {"text": "{}", "input_tokens": 5200, "output_tokens": 900, "usd": 0.031})
        _fill_round(archive, number, failures)
        archive.save_round(RoundRecord(round=number, wall_s=61.0 * number, elites=(f"r{number}i1v1a0",)))
    parent = f"r{rounds}i1v0a0"
    tuned = make_candidate(
        f"{parent}t3", origin=Origin.TUNE, round=rounds, idea_id=parent[:4], parent_id=parent, tunables={"UNROLL": "8"}
    )
    archive.add_candidate(tuned)
    archive.add_evaluation(make_ok(tuned.id, 2.31, Purpose.TUNE))
    archive.add_evaluation(make_ok(tuned.id, 2.27, Purpose.CERTIFY))
    ratio = Comparison(ratio=1.73, ratio_ci95=(1.69, 1.77), first_ms=0.92, second_ms=0.53, blocks=12)
    archive.save("comparisons", comparison_key("seed-fused", tuned.id, "builds"), tuned.id, ratio)
    archive.save_certificate(_certificate(tuned.id, parent))
    archive.save_run(RunRecord(best_id=tuned.id))


def _certificate(candidate_id: str, parent_id: str) -> dict[str, object]:
    trials = tuple(Trial(name=f"seed_{n}", rel_error=2e-7, gate=1e-5, passed=True) for n in range(20))
    verdict = Verdict(status=Status.OK, precision_class=PrecisionClass.FP32, trials=trials)
    timings = [make_ok(candidate_id, speedup).timing for speedup in (2.25, 2.27, 2.30)]
    ratio = Comparison(ratio=0.58, ratio_ci95=(0.565, 0.59), first_ms=0.53, second_ms=0.92, blocks=12)
    return {
        "schema_version": 1, "outcome": "finished", "passed": True, "reason": "", "reason_code": "none",
        "quarantined": False, "date": "2026-11-21T10:00:00+00:00", "problem": "quickstart", "tolerance": "fp32",
        "selection": [
            {"candidate_id": candidate_id, "speedup": 2.3, "speedup_ci95": [2.1, 2.4], "ratio": 1.04,
             "ratio_ci95": [1.01, 1.06], "blocks": 40},
            {"candidate_id": parent_id, "speedup": 2.32, "speedup_ci95": [2.2, 2.5], "ratio": 1.0,
             "ratio_ci95": None, "blocks": None},
        ],
        "baselines": [b.to_json() for b in make_baselines().entries], "fraction_of_floor": 0.8, "audit": None,
        "speedup_vs_best": 1.9, "seconds": {"verify": 4.2, "time": 31.0},
        "own_work": {"share": 1.0, "how": "it links libc.so.6", "kernels_ns": {}, "others": []},
        "other_shapes": {
            "skipped": "", "refused_by_reference": [], "shapes": [
                {"sizes": {"ROWS": 1024}, "status": "ok", "reason": "", "rel_error": 2e-7},
                {"sizes": {"COLS": 767}, "status": "compile_error", "reason": "needs | multiples", "rel_error": None},
            ],
        },
        "versions": {"ridgeline": "0.1"}, "hashes": {"source_sha256": "ab" * 32},
        "candidate": {"id": candidate_id, "origin": "tune", "tunables": {"UNROLL": "8"}},
        "build": {"key": "ab" * 32, "flags": ["-O3", "-march=native"], "toolchain": "g++ 12.2.0"},
        "verification": verdict.to_json(), "sanitizer": {"build": "address,undefined", "verdict": verdict.to_json()},
        "timings": [t.to_json() for t in timings if t], "seed_kernel": "seed-fused", "versus_seed": ratio.to_json(),
        "labels": [], "failed_before": [], "device": DEVICE.to_json(), "floor": make_baselines().floor.to_json(),
    }  # fmt: skip


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Give an empty archive in its run folder."""
    with Archive.open(tmp_path / "run" / "archive.sqlite") as opened:
        yield opened


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a run folder that holds a finished search, to be copied."""
    run = tmp_path_factory.mktemp("finished") / "run"
    with Archive.open(run / "archive.sqlite") as archive:
        fill(archive)
    return run


@pytest.fixture
def filled(finished_run: Path, tmp_path: Path) -> Iterator[Archive]:
    """Give an archive that holds a finished search, in its run folder."""
    shutil.copytree(finished_run, tmp_path / "run", dirs_exist_ok=True)
    with Archive.open(tmp_path / "run" / "archive.sqlite", create=False) as opened:
        yield opened


@pytest.fixture
def story() -> SimpleNamespace:
    """Give the makers of records."""
    return SimpleNamespace(
        idea=make_idea, candidate=make_candidate, ok=make_ok, failed=make_failed, baselines=make_baselines,
        description=make_description, fill=fill, device=DEVICE,
    )  # fmt: skip
