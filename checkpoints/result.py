"""The published JSON: result.json, the line of `evaluate --json`, and `show --json`; see docs/contracts.md."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib import resources
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import CallTotals, Journal
from ridgeline.checkpoints.history.gains import measured_side_by_side
from ridgeline.checkpoints.history.idea_results import idea_results
from ridgeline.checkpoints.history.lineage import certificate_of, finding, history, lineage
from ridgeline.checkpoints.history.named_stages import named_stages
from ridgeline.checkpoints.history.over_pytorch import speedup_vs_best, without_figure
from ridgeline.checkpoints.history.right_kernels import figures_of, right_kernels
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.checkpoints.storage.strict_json import finite
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.results import SCHEMA_VERSION, Comparison, Evaluation, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import LANGUAGES, Label, Origin, Purpose, RunState

STATE_WORDS: dict[RunState, str] = {
    RunState.FINISHED: "finished: every round is done",
    RunState.STOPPED: "stopped, and can be resumed",
    RunState.WAITING: "waiting for answers to its requests or for its device, and can be resumed",
    RunState.BUDGET: "finished: the budget is spent",
    RunState.AT_FLOOR: "finished: at the roofline floor, nothing is left to gain",
    RunState.STALLED: "finished: nothing more was gained or proposed",
    RunState.NO_GAIN: "finished without a gain: no kernel was certified as faster than eager PyTorch",
}
"""Words for the states in which a session ends, in the command line and in the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """A run's best kernel with its figures: the certificate's, passed or not, else the search's."""

    candidate: Candidate
    evaluation: Evaluation

    @property
    def file_name(self) -> str:
        """Return the name of the source in the run folder: best.cpp, best.cu or best.py.

        Raises:
            StorageError: the archive, which may be a stranger's, names an unknown language.
        """
        if self.candidate.language not in LANGUAGES:
            raise StorageError(
                f"{self.candidate.id}: its language {self.candidate.language!r} is none of {', '.join(LANGUAGES)}: "
                "the archive is damaged; restore it or start anew"
            )
        return f"best.{self.candidate.language}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BestKernel:
    """result.json's `best`."""

    id: str
    idea: str | None  # its title; None: a seed, or a kernel of the bank
    origin: str
    round: int
    source_path: str | None  # within the run folder; None in `show --json` while no file there holds the source
    speedup: float | None  # eager / kernel
    speedup_ci95: list[float] | None
    speedup_vs_best: float | None  # the fastest of PyTorch's configurations / kernel
    baselines_failed: list[str]  # configurations without a time for that
    speedup_vs_seed: float | None
    speedup_vs_seed_ci95: list[float] | None
    median_ms: float | None
    reference_ms: float | None  # eager's
    precision_class: str | None
    labels: list[str]

    def __post_init__(self) -> None:
        """Hold None for a figure that is no finite number, as JSON does, and for an interval with such an end."""
        for each in fields(self):
            value = finite(getattr(self, each.name))
            is_half = isinstance(value, list) and None in value
            object.__setattr__(self, each.name, None if is_half else value)

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it is written."""
        return asdict(self)

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> BestKernel | None:
        """Return the best kernel of what `build_result` or `show_run` made; None where it has none."""
        entry = result.get("best")
        return cls(**entry) if entry else None


def choose_best(archive: Archive) -> Best | None:
    """Return the run's best kernel: the graph's `best_id`, else the fastest right one, else None.

    It has a certificate or not. A kernel that its certificate found wrong is none.
    """
    right = right_kernels(archive)
    winner = archive.run().best_id or (right[0].candidate_id if right else None)
    if not winner:
        return None
    evaluation = figures_of(archive.evaluation(winner, Purpose.CERTIFY)) or finding(archive, winner)
    with record_errors(archive.path):  # the candidate may be gone from its table
        return Best(candidate=archive.candidate(winner), evaluation=evaluation) if evaluation else None


def build_result(archive: Archive) -> dict[str, Any]:
    """Return the content of result.json."""
    run = archive.run()
    baselines = archive.baselines()
    best = choose_best(archive)
    costs = archive.ledger_totals()
    calls = Journal(archive).totals()
    rounds = history(archive)
    stages = named_stages(archive)
    result: dict[str, Any] = finite(
        {
            "schema_version": SCHEMA_VERSION,
            "problem": run.problem_name,
            "device": _device(run, baselines),
            "versions": _versions(archive, run),
            "state": (run.state if run.state in STATE_WORDS else RunState.STOPPED).value,
            "rounds": len(rounds),
            "candidates": len(archive.candidates(origin=Origin.MODEL)),
            "tuned": len(archive.evaluations(purpose=Purpose.TUNE)),
            "best": best_kernel(archive, best, baselines).to_json() if best else None,
            "baselines": baseline_entries(baselines),
            "floor_ms": baselines.floor.floor_ms if baselines else None,
            "tokens": calls.tokens,
            "repair_share": repair_share(calls),
            "largest_stage": {"ideas": stages.ideas, "named": stages.named},
            "usd": calls.usd,
            "unpriced_calls": calls.unpriced,
            "cpu_seconds": costs["cpu_s"],
            "gpu_seconds": costs["gpu_s"],
            "wall_s": run.wall_s,
            "finding_s": run.wall_s if run.finding_s is None else run.finding_s,
            "without": list((run.settings or {}).get("without", ())),
            "replay": dict(run.replay) if run.replay else None,
            "history": rounds,
        }
    )
    return result


def repair_share(calls: CallTotals) -> float | None:
    """Return the share of all input tokens that repairs of kernels took; None before any input was paid."""
    return calls.repair_input_tokens / calls.input_tokens if calls.input_tokens else None


def _device(run: RunRecord, baselines: Baselines | None) -> dict[str, Any] | None:
    device = run.device or (baselines.device if baselines else None)
    return device.to_json() if device else None


def _versions(archive: Archive, run: RunRecord) -> dict[str, str]:
    from ridgeline import __version__

    description = archive.description()
    own = {"ridgeline": __version__, "python": platform.python_version()}
    torch = {"torch": description.torch_version} if description else {}
    return own | torch | dict(run.versions or {})


def best_kernel(archive: Archive, best: Best, baselines: Baselines | None) -> BestKernel:
    """Return a run's best kernel with all its figures."""
    evaluation = best.evaluation
    vs_seed = speedup_vs_seed(archive, best.candidate.id)
    with record_errors(archive.path):
        idea = archive.idea(best.candidate.idea_id).title if best.candidate.idea_id else None
    return BestKernel(
        id=best.candidate.id,
        idea=idea,
        origin=best.candidate.origin.value,
        round=best.candidate.round,
        source_path=best.file_name,
        speedup=evaluation.speedup,
        speedup_ci95=evaluation.speedup_interval,
        speedup_vs_best=speedup_vs_best(evaluation, baselines),
        baselines_failed=_baselines_failed(archive, evaluation, baselines),
        speedup_vs_seed=vs_seed.ratio if vs_seed else None,
        speedup_vs_seed_ci95=list(vs_seed.ratio_ci95) if vs_seed else None,
        median_ms=evaluation.timing.median_ms if evaluation.timing else None,
        reference_ms=evaluation.timing.reference_ms if evaluation.timing else None,
        precision_class=_precision(evaluation),
        labels=_labels(evaluation),
    )


def _baselines_failed(archive: Archive, evaluation: Evaluation, baselines: Baselines | None) -> list[str]:
    """Return the configurations of PyTorch that failed in the measurement behind `speedup_vs_best`."""
    certificate = certificate_of(archive, evaluation.candidate_id)
    again = certificate.baselines if certificate else ()
    entries = again or (baselines.entries if baselines else ())
    return without_figure(entries, evaluation.precision_class)


def speedup_vs_seed(archive: Archive, candidate_id: str) -> Comparison | None:
    """Return the alternating comparison of the best seed (first) with this candidate (second), or None.

    ratio = seed_ms / candidate_ms. Of several seeds the one with the smallest ratio counts.
    """
    pairs = measured_side_by_side(archive)
    over = [pairs[c.id, candidate_id] for c in archive.candidates(origin=Origin.SEED) if (c.id, candidate_id) in pairs]
    return min(over, key=lambda pair: pair.ratio, default=None)


def baseline_entries(baselines: Baselines | None) -> list[dict[str, Any]]:
    """Return the baselines as every contract gives them, in the order measured."""
    return [b.to_json() for b in baselines.entries] if baselines else []


def evaluation_line(file: str, evaluation: Evaluation, baselines: Baselines | None) -> dict[str, Any]:
    """Return one line of `evaluate --json`: every field is present, null where it does not apply."""
    timing, verdict, build = evaluation.timing, evaluation.verdict, evaluation.build
    line: dict[str, Any] = finite(
        {
            "schema_version": SCHEMA_VERSION,
            "file": file,
            "status": evaluation.status.value,
            "reason_code": evaluation.reason_code.value,
            "reason": evaluation.reason,
            "labels": _labels(evaluation),
            "other_code": list((timing.came_along if timing else None) or ()),
            "skipped": _skipped(evaluation),
            "whole_numbers": [each.to_json() for each in verdict.whole_numbers] if verdict else [],
            "rel_error": verdict.rel_error if verdict else None,
            "precision_class": _precision(evaluation),
            "margin": verdict.margin if verdict else None,
            "nearest_limit": _nearest_limit(verdict),
            "secrets": verdict.draws if verdict else None,
            "median_ms": timing.median_ms if timing else None,
            "speedup": evaluation.speedup,
            "speedup_ci95": evaluation.speedup_interval,
            "speedup_vs_best": speedup_vs_best(evaluation, baselines),
            "reference_ms": timing.reference_ms if timing else None,
            "baselines": baseline_entries(baselines),
            "floor_ms": baselines.floor.floor_ms if baselines else None,
            "sandbox_tier": (verdict.sandbox_tier or None) if verdict else None,
            "build_s": build.build_s if build else None,
            "total_s": evaluation.total_s,
        }
    )
    return line


def _nearest_limit(verdict: Verdict | None) -> dict[str, Any] | None:
    """Return the figure that is nearest to its limit, with its trial; None where no figure has one."""
    trial = verdict.nearest_trial if verdict else None
    if trial is None or trial.nearest is None:
        return None
    return {"trial": trial.name, "draw": trial.draw, **trial.nearest.to_json()}


def _labels(evaluation: Evaluation) -> list[str]:
    labels: list[Label] = [*(evaluation.verdict.labels if evaluation.verdict else ())]
    labels += evaluation.timing.labels if evaluation.timing else ()
    return [label.value for label in dict.fromkeys(labels)]


def _skipped(evaluation: Evaluation) -> list[dict[str, str]]:
    """Return what no kernel of the problem meets, and why: trials, other values of an argument, its effect, timed contents."""
    skipped = [each for of in (evaluation.verdict, evaluation.timing) if of for each in of.skipped]
    reasons = {each.name: each.reason for each in skipped}
    return [{"name": name, "reason": why} for name, why in reasons.items()]


def _precision(evaluation: Evaluation) -> str | None:
    return evaluation.precision_class.value if evaluation.precision_class else None


def show_run(archive: Archive) -> dict[str, Any]:
    """Return the content of `ridgeline show --json`: rounds, ideas with outcome, lineage of the best, cost."""
    result, run = build_result(archive), archive.run()
    costs = {
        k: result[k] for k in ("tokens", "repair_share", "usd", "cpu_seconds", "gpu_seconds", "wall_s", "finding_s")
    }
    best = result["best"]
    shown: dict[str, Any] = finite(
        {
            "schema_version": SCHEMA_VERSION,
            "run": archive.path.parent.name,
            "search_id": run.search_id,
            **{k: result[k] for k in ("problem", "device", "baselines", "floor_ms")},
            "best": best | {"source_path": _written_path(archive, best)} if best else None,
            "state": run.state.value if run.state else result["state"],  # also "running", of a killed one too
            **{k: result[k] for k in ("without", "replay", "largest_stage")},
            "rounds": result["history"],
            "ideas": [result.to_json() for result in idea_results(archive)],
            "lineage": lineage(archive, best["id"]) if best else [],
            "cost": costs | {"model_calls": Journal(archive).totals().to_json()},
            "certificate": archive.certificate_json(),
        }
    )
    return shown


def _written_path(archive: Archive, best: Mapping[str, Any]) -> str | None:
    """Return the name of the best kernel's file in the run folder; None while no file there holds its source."""
    name = str(best["source_path"])
    try:
        text = (archive.path.parent / name).read_text(encoding="utf-8", errors="surrogatepass")
    except (OSError, UnicodeError):
        return None
    return name if text == archive.candidate(best["id"]).source else None


def read_schema(name: str) -> dict[str, Any]:
    """Return a published JSON schema: "result", "certificate", "evaluation", "candidate", "suite", "replay" or "kernel"."""
    text = (resources.files("ridgeline.checkpoints") / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
