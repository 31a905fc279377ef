"""What other tools read: result.json, the line of `evaluate --json`, and `show --json`; see docs/contracts.md."""

from __future__ import annotations

import json
import math
import os
import platform
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import Archive, compared_ids
from ridgeline.checkpoints.certificate_text import render_certificate
from ridgeline.checkpoints.database import storage_errors
from ridgeline.checkpoints.journal import Journal
from ridgeline.checkpoints.lineage import certificate_of, finding, history, lineage
from ridgeline.checkpoints.over_pytorch import speedup_vs_best, without_figure
from ridgeline.checkpoints.report import render_report
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.results import SCHEMA_VERSION, Baseline, Baselines, Comparison, Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Label, Origin, Purpose

STATE_WORDS: dict[str, str] = {
    "finished": "finished: every round is done",
    "stopped": "stopped, and can be resumed",
    "budget": "finished: the budget is spent",
    "at_floor": "finished: at the roofline floor, nothing is left to gain",
    "stalled": "finished: rounds gained no more, or no model had a further idea",
    "no_gain": "finished without a gain: no kernel was certified as faster than eager PyTorch",
}
"""How a search ended, in the words of the command line and of the report."""
STATES = tuple(STATE_WORDS)
LANGUAGES = ("cpp", "cu", "py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The kernel a run stands for, with the figures that count: the certificate's when there are some."""

    candidate: Candidate
    evaluation: Evaluation

    @property
    def file_name(self) -> str:
        """Return what its source is called in the run folder: best.cpp, best.cu or best.py.

        Raises:
            StorageError: the archive names a language that is none; it may come from somebody else.
        """
        if self.candidate.language not in LANGUAGES:
            raise StorageError(
                f"{self.candidate.id}: its language {self.candidate.language!r} is none of {', '.join(LANGUAGES)}: "
                "the archive is damaged; restore it or start anew"
            )
        return f"best.{self.candidate.language}"


def choose_best(archive: Archive) -> Best | None:
    """Return the winner: the one the graph named as `best_id`, else the fastest that is `ok`; None without any.

    A `best_id` of None is the graph's own statement that nothing stood up.
    """
    run = archive.run()
    ranked = archive.ranking((Purpose.SEARCH, Purpose.TUNE), limit=1)
    winner = run["best_id"] if "best_id" in run else (ranked[0].candidate_id if ranked else None)
    if not winner:
        return None
    certified = archive.evaluation(winner, Purpose.CERTIFY)
    evaluation = certified if certified and certified.speedup is not None else finding(archive, winner)
    return Best(candidate=archive.candidate(winner), evaluation=evaluation) if evaluation else None


def build_result(archive: Archive) -> dict[str, Any]:
    """Return the content of result.json."""
    run = archive.run()
    baselines = archive.baselines()
    best = choose_best(archive)
    costs = archive.ledger_totals()
    calls = Journal(archive).totals()
    rounds = history(archive)
    result: dict[str, Any] = finite(
        {
            "schema_version": SCHEMA_VERSION,
            "problem": (run.get("problem") or {}).get("name", ""),
            "device": _device(run, baselines),
            "versions": _versions(archive, run),
            "state": run.get("state") if run.get("state") in STATES else "stopped",
            "rounds": len(rounds),
            "candidates": len(archive.candidates(origin=Origin.MODEL)),
            "tuned": len(archive.evaluations(purpose=Purpose.TUNE)),
            "best": _best_entry(archive, best, baselines) if best else None,
            "baselines": baseline_entries(baselines),
            "floor_ms": baselines.floor.floor_ms if baselines else None,
            "tokens": calls["input_tokens"] + calls["output_tokens"],
            "usd": calls["usd"],
            "cpu_seconds": costs["cpu_s"],
            "gpu_seconds": costs["gpu_s"],
            "wall_s": run.get("wall_s"),
            "history": rounds,
        }
    )
    return result


def _device(run: dict[str, Any], baselines: Baselines | None) -> dict[str, Any] | None:
    named = run.get("device")
    if isinstance(named, dict):
        return named
    return baselines.device.to_json() if baselines else None


def _versions(archive: Archive, run: dict[str, Any]) -> dict[str, str]:
    from ridgeline import __version__

    description = archive.description()
    own = {"ridgeline": __version__, "python": platform.python_version()}
    torch = {"torch": description.torch_version} if description else {}
    known: dict[str, str] = own | torch | (run.get("versions") or {})
    return known


def _best_entry(archive: Archive, best: Best, baselines: Baselines | None) -> dict[str, Any]:
    evaluation = best.evaluation
    vs_seed = speedup_vs_seed(archive, best.candidate.id)
    return {
        "id": best.candidate.id,
        "idea": archive.idea(best.candidate.idea_id).title if best.candidate.idea_id else None,
        "origin": best.candidate.origin.value,
        "round": best.candidate.round,
        "source_path": best.file_name,
        "speedup": evaluation.speedup,
        "speedup_ci95": _interval(evaluation),
        "speedup_vs_best": speedup_vs_best(evaluation, baselines),
        "baselines_failed": _baselines_failed(archive, evaluation, baselines),
        "speedup_vs_seed": vs_seed.ratio if vs_seed else None,
        "speedup_vs_seed_ci95": list(vs_seed.ratio_ci95) if vs_seed else None,
        "median_ms": evaluation.timing.median_ms if evaluation.timing else None,
        "precision_class": _precision(evaluation),
        "labels": _labels(evaluation),
    }


def _baselines_failed(archive: Archive, evaluation: Evaluation, baselines: Baselines | None) -> list[str]:
    """Return which of PyTorch's configurations `speedup_vs_best` lacks, of the measurement that it rests on."""
    again = (certificate_of(archive, evaluation.candidate_id) or {}).get("baselines")
    entries = [Baseline.from_json(entry) for entry in again] if again else baselines.entries if baselines else ()
    return without_figure(entries, evaluation.verdict.precision_class if evaluation.verdict else None)


def speedup_vs_seed(archive: Archive, candidate_id: str) -> Comparison | None:
    """Return the alternating comparison of the best seed (first) with this candidate (second), or None.

    Its `ratio` is the seed's time / the candidate's. Of several seeds the one hardest to beat counts.
    """
    seeds = {c.id for c in archive.candidates(origin=Origin.SEED)}
    found = {}  # by the seed; what was measured later, with another judge say, takes its place
    for key, record in archive.records("comparisons"):
        first, second = compared_ids(key)
        if second == candidate_id and first in seeds:
            found[first] = Comparison.from_json(record)
        elif first == candidate_id and second in seeds:
            found[second] = _inverse(Comparison.from_json(record))
    return min(found.values(), key=lambda c: c.ratio, default=None)


def _inverse(comparison: Comparison) -> Comparison:
    low, high = comparison.ratio_ci95
    return Comparison(
        ratio=1 / comparison.ratio,
        ratio_ci95=(1 / high, 1 / low),
        first_ms=comparison.second_ms,
        second_ms=comparison.first_ms,
        blocks=comparison.blocks,
    )


def baseline_entries(baselines: Baselines | None) -> list[dict[str, Any]]:
    """Return the baselines as every contract gives them, in the order measured."""
    return [b.to_json() for b in baselines.entries] if baselines else []


def evaluation_line(file: str, evaluation: Evaluation, baselines: Baselines | None) -> dict[str, Any]:
    """Return one line of `evaluate --json`: every field always present, null when it does not apply."""
    timing, verdict, build = evaluation.timing, evaluation.verdict, evaluation.build
    line: dict[str, Any] = finite(
        {
            "schema_version": SCHEMA_VERSION,
            "file": file,
            "status": evaluation.status.value,
            "reason_code": evaluation.reason_code.value,
            "reason": evaluation.reason,
            "labels": _labels(evaluation),
            "rel_error": verdict.rel_error if verdict else None,
            "precision_class": _precision(evaluation),
            "median_ms": timing.median_ms if timing else None,
            "speedup": evaluation.speedup,
            "speedup_ci95": _interval(evaluation),
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


def _labels(evaluation: Evaluation) -> list[str]:
    labels: list[Label] = [*(evaluation.verdict.labels if evaluation.verdict else ())]
    labels += evaluation.timing.labels if evaluation.timing else ()
    return [label.value for label in dict.fromkeys(labels)]


def _precision(evaluation: Evaluation) -> str | None:
    precision = evaluation.verdict.precision_class if evaluation.verdict else None
    return precision.value if precision else None


def _interval(evaluation: Evaluation) -> list[float] | None:
    interval = evaluation.timing.speedup_ci95 if evaluation.timing and evaluation.speedup is not None else None
    return list(interval) if interval else None


def show_run(archive: Archive) -> dict[str, Any]:
    """Return what `ridgeline show --json` prints: rounds, ideas with outcome, lineage of the best, cost."""
    result = build_result(archive)
    costs = {k: result[k] for k in ("tokens", "usd", "cpu_seconds", "gpu_seconds", "wall_s")}
    best = result["best"]
    shown: dict[str, Any] = finite(
        {
            "schema_version": SCHEMA_VERSION,
            "run": archive.path.parent.name,
            "search_id": archive.run().get("search_id"),
            **{k: result[k] for k in ("problem", "device", "baselines", "floor_ms", "best")},
            "state": archive.run().get("state") or result["state"],  # also "running"
            "rounds": result["history"],
            "ideas": archive.tried_ideas(),
            "lineage": lineage(archive, best["id"]) if best else [],
            "cost": costs | {"model_calls": Journal(archive).totals()},
            "certificate": archive.certificate(),
        }
    )
    return shown


def write_run_outputs(run_dir: Path, archive: Archive) -> dict[str, Any]:
    """Write best.cpp or best.cu, certificate.json and .md, report.html and last result.json; return the last's content.

    Each file is replaced as a whole: a reader, a kill or a full disk never leaves half of one.

    Raises:
        StorageError: the folder cannot be written or the disk is full; the earlier files are as they were.
    """
    result = build_result(archive)
    best = choose_best(archive)
    if best:
        replace_file(run_dir / best.file_name, best.candidate.source)
    if certificate := archive.certificate():
        replace_file(run_dir / "certificate.json", _pretty(finite(certificate)))
        replace_file(run_dir / "certificate.md", render_certificate(finite(certificate), best=result["best"]))
    replace_file(run_dir / "report.html", render_report(archive, result, state_words=STATE_WORDS[result["state"]]))
    replace_file(run_dir / "result.json", _pretty(result))
    return result


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def output_place(path: Path, *, is_users: bool) -> Path:
    """Return where a file at `path` is to be put: where it really lies when the user named it, links followed.

    A link in any other place, a run folder's say, may be a stranger's: it is replaced itself.

    Raises:
        StorageError: something other than a file is there. A device, a pipe or a folder must never be replaced:
            /dev/stdout itself would be gone for every process of the machine.
    """
    with storage_errors(path):
        place = path.resolve() if is_users else path
        if os.path.lexists(place) and not (place.is_symlink() or place.is_file()):
            raise StorageError(f"{path}: is not a regular file; name a file that may be replaced, or a new one")
        return place


def replace_file(path: Path, text: str, *, is_users: bool = False) -> None:
    """Put `text` at `path` in one step, in the place of a symbolic link too; `is_users`: in that of its target.

    Raises:
        StorageError: it cannot be written, or is no regular file; what was at `path` before is still there.
    """
    path = output_place(path, is_users=is_users)
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


def finite(value: Any) -> Any:
    """Return `value` with infinities and NaN as null: the contracts are strict JSON."""
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_schema(name: str) -> dict[str, Any]:
    """Return a published JSON schema: "result", "certificate", "evaluation", "candidate" or "suite"."""
    text = (resources.files("ridgeline.checkpoints") / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
