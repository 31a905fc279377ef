"""The problem that a caller means, and its settings with the caller's in their place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ridgeline.graph.session.arguments import checked
from ridgeline.problems.mistakes import explain_mistake
from ridgeline.problems.model_calls import CallSettings, Section
from ridgeline.problems.spec import ProblemSpec, SearchSettings, load_problem, shipped_problems
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.wording import did_you_mean

S = TypeVar("S", SearchSettings, CallSettings)

ProblemName = str | Path | ProblemSpec
"""A problem.yaml, its folder, the name of a shipped problem, or a problem that is loaded already."""


def find_problem(problem: ProblemName) -> ProblemSpec:
    """Return the problem that a caller means.

    Raises:
        InputError: there is none, or the value names none.
    """
    checked("problem", problem)
    if isinstance(problem, ProblemSpec):
        return problem
    shipped = shipped_problems()
    if str(problem) in shipped and not Path(problem).exists():
        return load_problem(shipped[str(problem)])
    path = Path(problem)
    if not path.exists() and path.name == str(problem) and not path.suffix:
        meant = did_you_mean(str(problem), shipped, after=" ")
        listed = ", ".join(sorted(shipped))
        raise ProblemError(f"problem {problem}: no such file, and none that ships; {meant}shipped: {listed}")
    return load_problem(path)


def changed_settings(problem: ProblemSpec, given: SearchSettings | Mapping[str, Any] | None) -> SearchSettings:
    """Return the problem's search settings with the given ones in their place.

    Raises:
        ProblemError: a setting is out of range.
    """
    return _changed(problem.search, given)


def changed_calls(problem: ProblemSpec, given: CallSettings | Mapping[str, Any] | None) -> CallSettings:
    """Return how the problem says that models are called, with the given settings in their place.

    Raises:
        ProblemError: a setting is out of range.
    """
    return _changed(problem.model_calls, given)


def _changed(stated: S, given: S | Mapping[str, Any] | None) -> S:
    if isinstance(given, Section):
        return given
    try:
        return stated.model_validate({**stated.model_dump(), **(given or {})})
    except ValidationError as error:
        raise ProblemError(explain_mistake(error.errors(), type(stated), {})) from None
