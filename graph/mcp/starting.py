"""The words of `ridgeline run` for a search that a client asks for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ridgeline.checkpoints.archive import FILE_NAME
from ridgeline.graph.library.agents.offers import problem_of_agent
from ridgeline.graph.mcp.runs import place_of
from ridgeline.graph.session.argument_words import LIMITS
from ridgeline.graph.session.options import default_run_dir
from ridgeline.graph.session.problem import find_problem
from ridgeline.problems.numbers import NoBool
from ridgeline.problems.spec import ProblemSpec, shipped_problems
from ridgeline.tools.errors import ProblemError, RunError
from ridgeline.tools.wording import did_you_mean


class Limits(BaseModel):
    """The limits of a search; no further kernel once one is spent."""

    model_config = ConfigDict(extra="forbid")

    usd: Annotated[float, Field(gt=0), NoBool] | None = Field(None, description=LIMITS["usd"])
    tokens: Annotated[int, Field(ge=1), NoBool] | None = Field(None, description=LIMITS["tokens"])
    wall_s: Annotated[float, Field(gt=0), NoBool] | None = Field(None, description=LIMITS["wall_s"])
    gpu_s: Annotated[float, Field(gt=0), NoBool] | None = Field(None, description=LIMITS["gpu_s"])


def named_problem(named: str) -> ProblemSpec:
    """Return the problem of a client's word: a shipped one's name, or an absolute path.

    Raises:
        ProblemError: it is neither; a relative path says nothing where client and server differ.
    """
    shipped = shipped_problems()
    if named in shipped:
        return find_problem(shipped[named])
    if os.path.isabs(named):
        return problem_of_agent(named)
    meant = did_you_mean(named, shipped, after=" ")
    raise ProblemError(
        f"problem {named}: none that ships, and no absolute path; {meant}give the absolute path of a problem.yaml, or a name "
        "of list_problems"
    )


def new_run_dir(runs_dir: Path, problem: ProblemSpec, named: str) -> Path:
    """Return the folder of a new search: as named, else PROBLEM-TIME-PROCESS in `runs_dir`.

    Raises:
        RunError: the name is none, or a search is there.
    """
    if not named:
        return default_run_dir(problem, runs_dir)
    run_dir = place_of(runs_dir, named)
    if (run_dir / FILE_NAME).is_file():
        raise RunError(f"{run_dir}: holds a search already; resume_search goes on with it, or name another run")
    return Path(os.path.abspath(run_dir))


def options_of(*models: str, park: bool, budget: Limits | None, **settings: str | int | None) -> list[str]:
    """Return the options of `ridgeline run`; of a value that is None, none."""
    limits = budget.model_dump() if budget else {}
    given = settings | {f"max_{name}": limit for name, limit in limits.items()}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not None]
    return ["--plain", *words, *(f"--model={model}" for model in models), *(["--park"] if park else [])]
