"""Errors of an output by their definitions, whole chunks at a time, one operation after the other.

The judge's own comparison makes fewer passes over memory. Its figures are these.
"""

from __future__ import annotations

import math

import torch

from ridgeline.tools.judge.worker.grading.outputs import chunks
from ridgeline.tools.judge.worker.grading.outputs.compare import Difference
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.records.precision import MIN_ROW_ELEMENTS, ROW_NORM_FLOOR, ROW_SCALE_FLOOR, Errors

HOPELESS = Errors(overall=math.inf, worst_row=math.inf, worst_element=math.inf)


def plain_expected(values: torch.Tensor) -> Expected:
    if not values.is_floating_point():
        return Expected(values, 0.0, 0.0, 0.0, 0.0)
    values = values.double()
    known = torch.isfinite(values)
    count, finite = int(known.sum()), torch.where(known, values, 0.0)
    mean, norm = float(finite.sum()) / max(count, 1), float(torch.linalg.vector_norm(finite))
    squares = norm * norm, count * mean * mean
    spread = math.sqrt(max(squares[0] - squares[1], 0.0)) if math.isfinite(sum(squares)) else 0.0
    if spread < 1e-4 * norm:
        spread = float(torch.linalg.vector_norm(torch.where(known, values - mean, 0.0)))
    rms = norm / math.sqrt(max(count, 1))
    return Expected(values, mean, spread, norm, rms, count == values.numel(), plain_scales(finite, rms))


def plain_scales(values: torch.Tensor, rms: float) -> torch.Tensor | None:
    if values.dim() == 0 or values.shape[-1] < MIN_ROW_ELEMENTS or values.numel() == 0:
        return None
    least = ROW_SCALE_FLOOR * rms * math.sqrt(values.shape[-1]) or 1.0
    width = values.shape[-1]
    scales = []
    for rows in torch.split(values.reshape(-1, width), max(chunks._CHUNK // width, 1)):
        spread = torch.linalg.vector_norm(rows - rows.mean(dim=-1, keepdim=True), dim=-1)
        size = torch.linalg.vector_norm(rows, dim=-1) * ROW_NORM_FLOOR
        scales.append(torch.maximum(spread, size).clamp(min=least))
    return torch.cat(scales)


def plain_difference(output: torch.Tensor, expected: Expected) -> Difference:
    """Return all figures, that of the 1e-2 rule among them; of integers and bools the count alone."""
    if expected.is_exact:
        values = output.view(torch.uint8) if output.dtype is torch.bool else output
        wrong = int((values != expected.values).sum())
        share = wrong / output.numel() if wrong else 0.0
        hopeless = math.inf if wrong else 0.0
        errors = Errors(overall=share, worst_row=hopeless, worst_element=hopeless)
        return Difference(errors=errors, crfm=hopeless, wrong_integers=wrong)
    width = max(output.shape[-1] if output.dim() else 1, 1)
    all_got, all_want = output.double().reshape(-1, width), expected.values.reshape(-1, width)
    step = max(chunks._CHUNK // width, 1)
    total, worst_row, worst_element, crfm = 0.0, 0.0, 0.0, 0.0
    both_finite = bool(all_got.isfinite().all() & all_want.isfinite().all())
    for start in range(0, len(all_got), step):
        got, want = all_got[start : start + step], all_want[start : start + step]
        if not _matches(got, want, output.dtype):
            return Difference(errors=HOPELESS, crfm=math.inf)
        difference, size = (got - want).abs(), want.abs()
        if not both_finite:
            difference, size = (torch.nan_to_num(t, nan=0.0, posinf=0.0, neginf=0.0) for t in (difference, size))
        rows = torch.linalg.vector_norm(difference, dim=-1)
        total += float((rows * rows).sum())
        if expected.row_norms is not None:
            worst_row = max(worst_row, float((rows / expected.row_norms[start : start + step]).max()))
        crfm = max(crfm, float((difference / (size + max(1.0, expected.rms))).max()))
        worst_element = max(worst_element, float((difference / (size + (expected.rms or 1.0))).max()))
    overall = math.sqrt(total) / (expected.spread or expected.norm or 1.0)
    return Difference(errors=Errors(overall=overall, worst_row=worst_row, worst_element=worst_element), crfm=crfm)


def _matches(got: torch.Tensor, want: torch.Tensor, dtype: torch.dtype) -> bool:
    """Return whether NaN and infinity are where they are expected, as the output's type holds it."""
    if bool(got.isfinite().all() & want.isfinite().all()):
        return True
    stored = want.to(dtype).double()
    same = (got.isnan() & stored.isnan()) | (got.isinf() & (got == stored))
    return bool((same | (got.isfinite() & stored.isfinite())).all())
