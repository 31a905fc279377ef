"""The answers that an agent's model gets of a search and of a judged kernel: few figures with their words, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.right_kernels import why_none
from ridgeline.checkpoints.report.wording import (
    ending,
    label_in_words,
    others_tried,
    over_eager_words,
    why_uncertified,
)
from ridgeline.checkpoints.result import BestKernel
from ridgeline.checkpoints.runs.folders import RESUMABLE
from ridgeline.checkpoints.stored_certificate import StoredCertificate, failures_of
from ridgeline.graph.library.evaluation import Evaluation
from ridgeline.graph.session.outputs import SearchResult
from ridgeline.tools.records.vocabulary import RunState
from ridgeline.tools.wording import medians_words

PlainAnswer = dict[str, Any]
"""JSON's own types alone."""

SOURCE_CHARS = 8000
"""Of a source that a model asked to see; the whole one is in its file."""


def for_model(answer: PlainAnswer) -> str:
    """Return an answer as JSON."""
    return json.dumps(answer, ensure_ascii=False)


def _short(value: Any) -> Any:
    """Return a value with four digits of each figure: a program's record has them all."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    return [_short(each) for each in value] if isinstance(value, list | tuple) else value


def search_answer(result: SearchResult, *, go_on: str, shows_source: bool = False) -> PlainAnswer:
    """Return how a search ended, its best kernel with figures, doubts and idea, and where everything lies.

    `go_on` says how the caller's agent goes on with this run.
    """
    run_dir, best = result.run_dir.absolute(), result.best
    with Archive.open_read_only(run_dir) as archive:
        certificate, mechanism = archive.certificate(), _mechanism(archive, result.best_id)
        missing = "" if result.best_id else _why_none(archive)
    answer: PlainAnswer = {
        "problem": result.report["problem"],
        "state": result.state.value,
        "ended": ending(result.state, result.reason),
        "rounds": result.rounds,
        "best": _best(result, best, certificate, mechanism, shows_source=shows_source) if best else None,
        **({"why_none": missing} if missing else {}),
        "run_dir": str(run_dir),
        "report": str(run_dir / "report.html"),
        "certificate": _file(run_dir / "certificate.md"),
        "go_on": _going_on(result.state, go_on),
    }
    return {name: _short(value) for name, value in answer.items()}


def search_record(result: SearchResult) -> PlainAnswer:
    """Return all that a program may want of a search: result.json, the paths, whether it is certified."""
    source_path = result.best_source_path
    return {
        "run_dir": str(result.run_dir.absolute()),
        "state": result.state.value,
        "reason": result.reason,
        "certified": result.certified,
        "source_path": str(source_path.absolute()) if source_path else None,
        "result": result.report,
    }


def search_words(answer: Mapping[str, Any]) -> str:
    """Return an answer of `search_answer` in sentences, a line each."""
    best = answer["best"]
    lines = [f"{answer['problem']}: no kernel: {answer['why_none']}"] if best is None else _best_lines(answer, best)
    lines += [f"Report: {answer['report']}", f"State: {answer['ended']}. {answer['go_on']}"]
    return "\n".join(lines)


def evaluation_answer(evaluation: Evaluation) -> PlainAnswer:
    """Return the verdict on one kernel; what does not apply is left out."""
    figures = ("speedup", "speedup_ci95", "median_ms", "reference_ms", "speedup_vs_best", "floor_ms")
    names = {"median_ms": "ms", "reference_ms": "pytorch_ms", "speedup_vs_best": "speedup_vs_fastest_pytorch"}
    checked = ("rel_error", "margin")
    told: PlainAnswer = {
        "status": evaluation.status.value,
        "reason_code": evaluation.reason_code.value,
        "reason": evaluation.reason,
        **{names.get(name, name): getattr(evaluation, name) for name in (*figures, *checked)},
        "precision_class": evaluation.precision_class.value if evaluation.precision_class else None,
        "cautions": [label_in_words(label.value) for label in evaluation.labels],
    }
    return {name: _short(value) for name, value in told.items() if value is not None}


def _best(
    result: SearchResult, best: BestKernel, certificate: StoredCertificate | None, mechanism: str, *, shows_source: bool
) -> PlainAnswer:
    source = result.best_source or ""
    why = "" if result.certified else _why_uncertified(result, best, certificate)
    shown = {"source": source[:SOURCE_CHARS], "source_is_cut": len(source) > SOURCE_CHARS} if shows_source else {}
    return {
        "id": best.id,
        "speedup": best.speedup,
        "speedup_ci95": best.speedup_ci95,
        "ms": best.median_ms,
        "pytorch_ms": best.reference_ms,
        "speedup_vs_fastest_pytorch": best.speedup_vs_best,
        "certified": result.certified,
        **({"why_not_certified": why} if why else {}),
        "idea": best.idea or f"a kernel that the search began with ({best.origin})",
        "how": mechanism,
        "precision_class": best.precision_class,
        "cautions": [label_in_words(label) for label in best.labels],
        "source_path": str(result.best_source_path.absolute()) if result.best_source_path else None,
        **shown,
    }


def _best_lines(answer: Mapping[str, Any], best: Mapping[str, Any]) -> list[str]:
    proof = "certified" if best["certified"] else f"not certified: {best['why_not_certified']}"
    gain = over_eager_words(best["speedup"], best["speedup_ci95"])
    times = medians_words(best["ms"], best["pytorch_ms"], best["speedup"])
    lines = [
        f"{answer['problem']}: {gain}, {times}; {proof}.",
        f"Idea: {best['idea']}. {best['how']}".rstrip(),
        *(f"Caution: {caution}" for caution in best["cautions"]),
        f"Source: {best['source_path']}",
    ]
    return [*lines, f"Certificate: {answer['certificate']}"] if answer["certificate"] else lines


def _mechanism(archive: Archive, best_id: str | None) -> str:
    """Return how the best kernel's idea works, in the words of who had it; "" without an idea."""
    idea_id = archive.candidate(best_id).idea_id if best_id else None
    return archive.idea(idea_id).mechanism if idea_id else ""


def _why_uncertified(result: SearchResult, best: BestKernel, certificate: StoredCertificate | None) -> str:
    """Return why the best kernel has no certificate, and in short why others have none."""
    failures = failures_of(certificate)
    why = why_uncertified(best, result.state, failures, replay=result.report.get("replay"))
    others = others_tried(best.id, failures)
    return f"{why}; others that were tried: {others}" if others else why


def _why_none(archive: Archive) -> str:
    """Return why a search has no best kernel."""
    failures = failures_of(archive.certificate())
    return "; ".join(f"{name} is not certified: {reason}" for name, reason in failures.items()) or why_none(archive)


def _going_on(state: RunState, go_on: str) -> str:
    if state is RunState.BUDGET:
        return f"Its host raises the budget first, then: {go_on}"
    if state in RESUMABLE:
        return f"To go on: {go_on}"
    return f"For more rounds: {go_on}, with a larger number of rounds"


def _file(path: Path) -> str | None:
    return str(path) if path.is_file() else None
