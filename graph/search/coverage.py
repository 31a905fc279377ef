"""Refuse a problem that the offline model does not cover, before anything is timed.

The refusal is an UncoveredError. It concerns one problem: a suite writes it into that problem's row and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ridgeline.graph.search.context import subject_of
from ridgeline.graph.search.events import warn
from ridgeline.tools.errors import UncoveredError
from ridgeline.tools.records.vocabulary import Interface

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.problems.spec import ProblemSpec
    from ridgeline.tools.records.problem import DescribedTarget


def ensure_covered(context: SearchContext, target: DescribedTarget) -> None:
    """Raise UncoveredError, which names the other ways on, when `offline` alone cannot work on a reference.

    A problem with seed kernels gets a warning instead: its seeds are judged, and the best one is certified.
    """
    if not context.models.composes_alone:
        return
    refusal = why_uncovered(target)
    if refusal is None:
        return
    if not context.problem.seed_sources(target.device.kind.value):
        raise refusal
    warn(f"{refusal}; the seed kernels are judged, and nothing is composed")


def ensure_interface(problem: ProblemSpec, kind: str, *, composes_alone: bool) -> None:
    """Raise UncoveredError where the problem's file alone decides it, before anything waits for the device."""
    if not composes_alone:
        return
    from ridgeline.graph.offline.model import refuse_interface

    refusal = refuse_interface(problem.name, Interface(problem.interface))
    if refusal is not None and not problem.seed_sources(kind):
        raise refusal


def refuses_uncovered(
    problem: ProblemSpec, kind: str, *, composes_alone: bool
) -> Callable[[DescribedTarget], bool] | None:
    """Return what says whether `ensure_covered` will refuse a description; None where it refuses none."""
    if not composes_alone or problem.seed_sources(kind):
        return None
    return lambda target: why_uncovered(target) is not None


def why_uncovered(target: DescribedTarget) -> UncoveredError | None:
    """Return the offline model's refusal of a problem with this description, or None when it composes kernels."""
    from ridgeline.graph.offline.model import composer_for

    try:
        composer_for(subject_of(target))
    except UncoveredError as refusal:
        return refusal
    return None
