"""A kernel's speedup over each of PyTorch's configurations.

Kernel and eager take turns in one run; PyTorch's configurations were measured together, at another time. So

    speedup over a configuration = speedup over eager * configuration_ms / eager_ms

and never a ratio of two times from different runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ridgeline.tools.records.baselines import Baseline, Baselines, is_within
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.vocabulary import PrecisionClass


def speedup_vs_best(evaluation: Evaluation, baselines: Baselines | None) -> float | None:
    """Return best_baseline_ms / candidate_ms; the best baseline of the candidate's class, torch.compile included.

    A ratio that the judge measured is returned as it is; else the formula above gives one. None while a baseline is still
    to be measured: the fastest is not known yet.
    """
    if evaluation.speedup_vs_best is not None or baselines is None or evaluation.speedup is None:
        return evaluation.speedup_vs_best
    if baselines.pending:
        return None
    best = baselines.best(evaluation.precision_class)
    eager_ms = baselines.eager_ms(evaluation.precision_class)
    if best is None or best.median_ms is None or not eager_ms:
        return None
    return evaluation.speedup * best.median_ms / eager_ms


def eager_beside(precision: str | None, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return eager's entry among PyTorch's own times, of the eager that a kernel of this class is timed against.

    `precision` and `entries` are those of result.json. None where it has no time.
    """
    timed = {entry["name"]: entry for entry in entries if entry["median_ms"]}
    with_tf32 = timed.get(ReferenceMode.EAGER_TF32) if precision and PrecisionClass(precision).is_reduced else None
    return with_tf32 or timed.get(ReferenceMode.EAGER)


def over_each(speedup: float | None, precision: str | None, entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the speedup over each baseline that ran, by name; `speedup` is over eager of the kernel's class.

    `precision` and `entries` are those of result.json.
    """
    eager = eager_beside(precision, entries)
    if not speedup or not eager:
        return {}
    return {e["name"]: speedup * e["median_ms"] / eager["median_ms"] for e in entries if e["median_ms"]}


def without_figure(baselines: Iterable[Baseline], precision: PrecisionClass | None) -> list[str]:
    """Return the names of the failed configurations among those that a kernel of this class is compared with."""
    failed = [b for b in baselines if b.median_ms is None and is_within(b.precision_class, precision)]
    is_reduced = precision is not None and precision.is_reduced
    return [b.name for b in failed if is_reduced or not b.name.uses_tf32]
