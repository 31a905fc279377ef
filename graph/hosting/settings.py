"""A search as a host states it: plain JSON, which a form fills in and a checkpointer stores."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError
from typing_extensions import TypedDict

from ridgeline.checkpoints.runs.folders import read_run
from ridgeline.graph.session.argument_words import ARGUMENTS, as_sentence
from ridgeline.graph.session.arguments import checked, model_names
from ridgeline.graph.session.options import RUNS, SearchRequest, default_run_dir
from ridgeline.graph.session.problem import find_problem
from ridgeline.problems.files import as_name, as_words
from ridgeline.problems.mistakes import explain_mistake
from ridgeline.problems.spec import Budget, ProblemSpec
from ridgeline.tools.errors import InputError, ProblemError
from ridgeline.tools.wording import did_you_mean

LONGEST_THREAD = 64
"""Characters of a thread's id in the name of a folder; LangGraph's own ids have 36."""
_SHORTCUTS = ("rounds", "ideas", "implementations", "strategy")
"""Settings of `search` that stand beside it."""


_SAID = {name: as_sentence(words) for name, words in ARGUMENTS.items()}


class HostedSearch(TypedDict, total=False):
    """The search of each thread of a host's graph; what is left out is the problem's, or the default of `search`."""

    problem: Annotated[
        str | dict[str, Any],
        Field(description="A problem.yaml, its folder, a shipped problem's name, or the keys of a problem.yaml."),
    ]
    device: Annotated[str, Field(description=_SAID["device"])]
    models: Annotated[list[str], Field(description=_SAID["models"])]
    rounds: Annotated[int, Field(description=_SAID["rounds"])]
    ideas: Annotated[int, Field(description=_SAID["ideas"])]
    implementations: Annotated[int, Field(description=_SAID["implementations"])]
    strategy: Annotated[str, Field(description=_SAID["strategy"])]
    search: Annotated[dict[str, Any], Field(description="Further keys of a problem.yaml's search section.")]
    budget: Annotated[dict[str, float], Field(description=f"usd, tokens, wall_s, gpu_s: {ARGUMENTS['budget']}.")]
    rng_seed: Annotated[int, Field(description=_SAID["rng_seed"])]
    bank: Annotated[str, Field(description=_SAID["bank"])]
    runs_dir: Annotated[str, Field(description="Holds a folder for each thread and problem; left out: runs.")]


def request_of(asked: object, thread_id: str | None) -> SearchRequest:
    """Return the search that a host asks for, in the folder of its thread; it goes on with the one that lies there.

    Without a thread, in a graph without a checkpointer, each search has a new folder.

    Raises:
        InputError: `asked` is no HostedSearch, or a value of it is of no use.
    """
    given = _known(asked)
    problem = _problem(given.get("problem"))
    runs_dir: Path = checked("runs_dir", given.get("runs_dir", RUNS)).absolute()
    run_dir = _thread_dir(runs_dir, problem, thread_id) if thread_id else default_run_dir(problem, runs_dir)
    begun = read_run(run_dir)
    return SearchRequest(
        problem=problem,
        run_dir=run_dir,
        device=given.get("device", "cpu"),
        models=model_names(given.get("models", ())),
        settings=_settings(given),
        budget=_budget(given.get("budget")),
        rng_seed=given.get("rng_seed", 0),
        bank=given.get("bank"),
        resume=begun is not None and begun.has_begun,
    )


def _known(asked: object) -> Mapping[str, Any]:
    """Return a host's mapping without what it left empty, as a form leaves a text; None is an empty mapping."""
    if asked is not None and not isinstance(asked, Mapping):
        raise InputError(f"search: must be a HostedSearch, a mapping such as {{'problem': …}}, got {as_words(asked)}")
    keys = HostedSearch.__annotations__
    for key in asked or {}:
        if key not in keys:
            meant = did_you_mean(str(key), keys, after=" ")
            raise InputError(f"search: {as_name(str(key))} is no key of it; {meant}it takes {', '.join(keys)}")
    return {key: value for key, value in (asked or {}).items() if value is not None and value != ""}


def _problem(given: object) -> ProblemSpec:
    if not given:
        raise ProblemError("problem: none was named; name a problem.yaml or a shipped problem")
    return ProblemSpec.from_dict(given) if isinstance(given, Mapping) else find_problem(given)  # type: ignore[arg-type]


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    section = given.get("search", {})
    if not isinstance(section, Mapping):
        raise InputError(f"search: search must be a mapping of single settings, got {as_words(section)}")
    return {**section, **{key: given[key] for key in _SHORTCUTS if key in given}}


def _budget(given: object) -> Budget | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InputError(f"search: budget must be a mapping such as {{'usd': 5}}, got {as_words(given)}")
    try:
        return Budget.model_validate(dict(given))
    except ValidationError as error:
        raise ProblemError(f"budget: {explain_mistake(error.errors(), Budget, {})}") from None


def _thread_dir(runs_dir: Path, problem: ProblemSpec, thread_id: str) -> Path:
    """Return the folder of a thread's search of a problem, PROBLEM.THREAD; no two of them share one.

    No problem's name holds a dot, and no id that is taken as it is a tilde.
    """
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", thread_id)[:LONGEST_THREAD]
    if name != thread_id:
        own = hashlib.sha256(thread_id.encode(errors="surrogatepass")).hexdigest()
        name = f"{name}~{own[:16]}"
    return runs_dir / f"{problem.name}.{name}"
