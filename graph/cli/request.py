"""The words of `ridgeline run` and `ridgeline suite` as a request for a search, and the words that a resumed one ignores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.bank import Bank, own_bank
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.runs.folders import UNFINISHED, find_run
from ridgeline.graph.session.options import RUNS, SearchRequest
from ridgeline.graph.session.replaying import find_recording, runs_foreign_reference
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.machine.places import home_dir, why_unwritable
from ridgeline.tools.wording import remedy_for

if TYPE_CHECKING:
    from ridgeline.graph.session.options import ResolvedSearch
    from ridgeline.graph.session.problem import ProblemName
    from ridgeline.problems.spec import ProblemSpec

Words = Mapping[str, Any]
"""The user's values by the options' names; an option that was not given is missing or None."""

PROBLEM_SUFFIXES = (".yaml", ".yml")
"""Endings of a problem's file; no kernel ends so."""

SHAPE = ("rounds", "ideas", "implementations", "repairs", "tune_trials", "strategy", "without")
"""The options that change the problem's search settings."""

CALLS = {"model_timeout_s": "timeout_s", "model_attempts": "attempts"}
"""The options that change how models are called, by the names in the problem's `model_calls`."""


def request_of_words(words: Words, *, problem: ProblemName | None, run_dir: Path | None, resume: bool) -> SearchRequest:
    """Return the request that these words make."""
    return SearchRequest(
        problem=problem,
        run_dir=run_dir,
        device="cpu" if words.get("device") is None else words["device"],
        models=tuple(words.get("model") or ()),
        settings={name: words[name] for name in SHAPE if words.get(name) is not None},
        budget=Budget(
            usd=words.get("max_usd"),
            tokens=_tokens(words.get("max_tokens")),
            wall_s=words.get("max_wall_s"),
            gpu_s=words.get("max_gpu_s"),
        ),
        model_calls={name: words[option] for option, name in CALLS.items() if words.get(option) is not None},
        rng_seed=words.get("rng_seed") or 0,
        resume=resume,
        max_rounds=words.get("rounds"),
        bank=_bank(words.get("bank")),
        allow_unsafe=bool(words.get("unsafe_no_sandbox")),
        park=bool(words.get("park")),
        **_replay_of(words),
    )


def _tokens(limit: int | str | None) -> int | None:
    """Return a limit of tokens; of a run's name, as many as that run used.

    Raises:
        RunError: there is no such run, or it used none.
    """
    if limit is None or isinstance(limit, int):
        return limit
    run = find_run(RUNS, limit)
    with Archive.open_read_only(run) as archive:
        used = Journal(archive).totals().tokens
    if not used:
        raise RunError(f"--max-tokens: {run} used no token of a model; give a number, or another run")
    return used


def _replay_of(words: Words) -> dict[str, Any]:
    """Return what the words say of a replay.

    Raises:
        InputError: there is no such run, or the words ask for another seed than the recorded one.
    """
    replay = words.get("replay")
    if replay is not None and words.get("rng_seed") is not None:
        raise RunError("--rng-seed: a replay decides by the recorded one; leave it out")
    path = None if replay is None else find_recording(replay, RUNS)
    timings = bool(words.get("replay_timings"))
    return {
        "replay": path,
        "replay_timings": timings,
        "replay_else": words.get("replay_else") or "",
        "replay_strict": bool(words.get("replay_strict")),
    }


def _bank(text: str | None) -> Path | None:
    if text == "none":
        return None
    return Path(text) if text is not None else own_bank()


def ignored_lines(words: Words, search: ResolvedSearch) -> list[str]:
    """Return a warning for the options that a resumed search ignores, and one for --rounds before the search is over."""
    if not search.resume:
        return []
    begun = search.begun
    kept = dict(begun.settings or {}) | {"rng_seed": begun.rng_seed, "device": begun.device_name}
    differing = [
        f"--{name.replace('_', '-')} {_said(words.get(name))} (it has {_said(kept.get(name))})"
        for name in (*SHAPE[1:], "rng_seed", "device")
        if words.get(name) not in (None, kept.get(name))
    ]
    lines = [f"warning: ignored, a search keeps what it began with: {', '.join(differing)}"] if differing else []
    lines += _changed_keys(begun.problem or {}, search.problem)
    if words.get("rounds") and begun.state in UNFINISHED:
        lines.append("warning: --rounds is ignored until the search is finished; then --resume --rounds N extends it")
    return lines


def reference_warning(search: ResolvedSearch) -> list[str]:
    """Return a warning before a replay runs a reference that nobody here wrote."""
    replay, replays_times = search.replay, search.replays_times
    if replay is None or not runs_foreign_reference(search.problem, search.target, replays_times=replays_times):
        return []
    return [f"warning: {replay.path}: its reference is none that ships: it is run as you, outside of any sandbox"]


def home_warning(search: ResolvedSearch) -> list[str]:
    """Return a warning before a search that goes on without the user's own seed bank, since that cannot be used."""
    home = home_dir()
    if search.bank != own_bank():
        return []
    if why := why_unwritable(home):
        remedy = remedy_for(why, "set RIDGELINE_HOME to a folder of yours")
        return [f"warning: {home} cannot be written ({why}): {_NO_BANK}; {remedy}"]
    try:
        Bank.check_openable(search.bank)
    except StorageError as error:
        return [f"warning: {error}; {_NO_BANK}"]
    return []


_NO_BANK = "this search keeps no kernels for later ones"


def _said(value: object) -> object:
    """Return an option's value as a user writes it."""
    return (",".join(value) or "nothing left out") if isinstance(value, list) else value


def _changed_keys(was: Mapping[str, Any], problem: ProblemSpec) -> list[str]:
    """Return a warning for the keys of problem.yaml that changed without an effect on the search."""
    now = problem.model_dump(mode="json")
    keys = [key for key in ("seeds", "search", "models", "budget") if key in was and was[key] != now[key]]
    if not keys:
        return []
    said = "changed in problem.yaml since this search began, which keeps its settings and what it took from there"
    return [f"warning: {', '.join(keys)} {said}; options change models, budget and, once it is over, rounds"]
