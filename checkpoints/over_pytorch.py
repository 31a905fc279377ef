"""How many times as fast as PyTorch a kernel is: as eager by measurement, as its other configurations by their times.

Kernel and eager take turns in one run; PyTorch's configurations were measured together, at another time. So a figure
over another configuration is the one over eager times the ratio of the two PyTorch times, never a ratio of times that
were taken apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ridgeline.tools.records.results import Baseline, Baselines, Evaluation, is_within
from ridgeline.tools.records.vocabulary import PrecisionClass

_FULL_PRECISION = {None, PrecisionClass.EXACT, PrecisionClass.FP32}
_REDUCED = "_tf32"


def speedup_vs_best(evaluation: Evaluation, baselines: Baselines | None) -> float | None:
    """Return the time of the fastest baseline of the candidate's class (torch.compile included) / the candidate's.

    Where the judge did not measure it, the paired speedup over eager is carried over to that baseline. None while a
    baseline is still to be measured: the fastest is not known yet.
    """
    if evaluation.speedup_vs_best is not None or baselines is None or evaluation.speedup is None:
        return evaluation.speedup_vs_best
    if baselines.pending:
        return None
    precision = evaluation.verdict.precision_class if evaluation.verdict else None
    best = baselines.best(precision)
    eager_ms = _eager_ms({b.name: b.median_ms for b in baselines.entries}, precision)
    if best is None or best.median_ms is None or not eager_ms:
        return None
    return evaluation.speedup * best.median_ms / eager_ms


def over_each(
    speedup: float | None, precision: PrecisionClass | None, entries: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Return the speedup over each baseline that ran, by its name; `speedup` is over eager of the kernel's class."""
    times = {entry["name"]: entry["median_ms"] for entry in entries}
    eager_ms = _eager_ms(times, precision)
    if not speedup or not eager_ms:
        return {}
    return {name: speedup * median_ms / eager_ms for name, median_ms in times.items() if median_ms}


def without_figure(baselines: Iterable[Baseline], precision: PrecisionClass | None) -> list[str]:
    """Return the configurations that a kernel of this class competes with and that failed, by name."""
    failed = [b for b in baselines if b.median_ms is None and is_within(b.precision_class, precision)]
    return [b.name for b in failed if precision not in _FULL_PRECISION or not b.name.endswith(_REDUCED)]


def _eager_ms(times: Mapping[str, float | None], precision: PrecisionClass | None) -> float | None:
    reduced = times.get(f"eager{_REDUCED}") if precision not in _FULL_PRECISION else None
    return reduced or times.get("eager")
