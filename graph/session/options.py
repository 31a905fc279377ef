"""A search as a caller asks for it (`SearchRequest`), and the same with everything decided (`ResolvedSearch`).

The command line, a suite, the library and a host that embeds the graph all make a request and resolve it once.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ridgeline.checkpoints.archive import FILE_NAME as ARCHIVE_NAME
from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.bank import Bank, own_bank
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import ended_unbegun, find_run, newest_held, newest_unfinished, refuse_held
from ridgeline.checkpoints.runs.vacant import check_vacant
from ridgeline.checkpoints.storage.errors import damaged
from ridgeline.checkpoints.storage.own_files import refuse_links
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.models.retry import RetryPolicy
from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.beginning import Beginning, FromProblem, FromRecording, NamedModels
from ridgeline.graph.session.machine import check_machine
from ridgeline.graph.session.problem import ProblemName, changed_calls, find_problem
from ridgeline.graph.session.replaying import AskedReplay, Replay, read_replay, resumed_replay
from ridgeline.graph.session.resume import check_same, naming_own_models
from ridgeline.problems.mistakes import explain_mistake
from ridgeline.problems.model_calls import CallSettings
from ridgeline.problems.spec import Budget, ProblemSpec, SearchSettings, shipped_problems
from ridgeline.tools.errors import ProblemError, RunError, StorageError
from ridgeline.tools.wording import option, resuming

if TYPE_CHECKING:
    from ridgeline.graph.models.search_model import AnyModel
    from ridgeline.tools.records.problem import Target

RUNS = Path("runs")
_PLACES = ("run_dir", "runs_dir", "bank", "replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search as a caller asks for it.

    A search that has begun keeps its device, settings and random seed, whatever a request to resume it says. Its models
    and the limits of its budget stay too, except those that the request names.
    """

    problem: ProblemName | None = None  # None: the problem of the run that is resumed
    run_dir: Path | None = None  # None: a new folder; with `resume` the problem's newest unfinished run
    runs_dir: Path = RUNS  # holds the run folders that are not named
    device: str = "cpu"
    models: tuple[str, ...] = ()  # empty: the problem's, else offline
    settings: SearchSettings | Mapping[str, Any] | None = None  # None: the problem's; a mapping replaces single ones
    budget: Budget | None = None  # None: the problem's; limits that are given replace single ones
    model_calls: CallSettings | Mapping[str, Any] | None = None  # as `settings`; a resumed search takes them anew
    rng_seed: int = 0
    resume: bool = False
    max_rounds: int | None = None  # on a finished search: extend it to this many rounds
    bank: Path | None = None
    allow_unsafe: bool = False
    park: bool = False  # end in state `waiting` where every branch waits for a mailbox, a batch or, resumed, its device
    replay: Path | None = None  # a recorded run, or the file of one: its models' answers are given again
    replay_timings: bool = False  # … and its measurements: nothing is built or run
    replay_else: str = ""  # the model that answers calls of a replay that were not recorded
    replay_strict: bool = False  # such a call ends the replay; else the replay goes on without its answer

    def __post_init__(self) -> None:
        """Check every value, and take a text for a path.

        Raises:
            InputError: a value is of another kind than its field.
        """
        for each in fields(self):
            value = checked(each.name, getattr(self, each.name))
            if each.name in _PLACES:
                object.__setattr__(self, each.name, value)

    def resolve(
        self, *, models: Sequence[AnyModel] | None = None, is_local: bool = True, sends: bool = True
    ) -> ResolvedSearch:
        """Decide everything about the search, and write nothing.

        Args:
            models: replace the models that the request names.
            is_local: whether this machine builds and runs the kernels, and so needs a compiler and a sandbox.
            sends: whether models are to be asked, and so need their keys.

        Raises:
            InputError: the search cannot begin, or the run cannot go on, as asked; one line that says why.
        """
        asked_replay = self._asked_replay()
        replay = read_replay(asked_replay)
        problem = find_problem(self.problem) if self.problem is not None else replay.problem() if replay else None
        run_dir = self._run_folder(problem)
        if self.resume:
            refuse_held(run_dir)
        else:
            check_vacant(run_dir)
        begun = _read_run(run_dir, self.runs_dir) if self.resume else RunRecord()
        replay = replay or resumed_replay(run_dir, begun, asked_replay)
        beginning = _beginning(problem, replay, run_dir, begun)
        problem = beginning.problem
        asked = beginning.settings(self.settings)
        named = replace(self._named_models(problem, begun), sends=sends)
        with _stored_settings(run_dir):
            began_with = SearchSettings.model_validate(begun.settings) if begun.has_begun else None
            stated = beginning.limits()
            budget = _budget(self.budget, begun.budget or stated)
        if models is None:
            policy = RetryPolicy.of(changed_calls(problem, self.model_calls))
            with naming_own_models(run_dir, () if self.models or replay else begun.models or ()):
                models = beginning.models(named, budget, policy)
        device = begun.device_name or beginning.device(self.device)
        target, away = beginning.target(device, begun.device if self.park and is_local else None)
        search = ResolvedSearch(
            problem=problem,
            target=target,
            away=away,
            run_dir=run_dir,
            device=device,
            models=tuple(models),
            is_model_named=bool(named.names or replay),
            settings=began_with or asked,
            budget=budget,
            rng_seed=beginning.rng_seed(self.rng_seed) if begun.rng_seed is None else begun.rng_seed,
            resume=self.resume,
            max_rounds=self.max_rounds,
            bank=beginning.bank(self.bank),
            allow_unsafe=self.allow_unsafe,
            park=self.park,
            replay=replay,
            begun=begun,
        )
        _check(search, is_local=is_local and not search.replays_times)
        return search

    def _asked_replay(self) -> AskedReplay:
        return AskedReplay(
            path=self.replay,
            replays_times=self.replay_timings,
            otherwise=self.replay_else,
            is_strict=self.replay_strict,
            names_models=bool(self.models),
            resumes=self.resume,
        )

    def _named_models(self, problem: ProblemSpec, begun: RunRecord) -> NamedModels:
        """Return the models that the request names, else the run, else the problem, whose mistakes are told as such."""
        if names := self.models or begun.models:
            return NamedModels(names=names, whose="")
        return NamedModels(names=tuple(problem.models), whose=f"{problem.given}: models: ")

    def _run_folder(self, problem: ProblemSpec | None) -> Path:
        """Return the folder of the search; ProblemError or RunError when the request does not say which."""
        if self.run_dir is not None:
            return self.run_dir
        if problem is None and self.resume:
            raise RunError(
                f"no run was named; name its folder ({option('run_dir')}), or its problem, whose newest unfinished run goes on"
            )
        if problem is None:
            raise ProblemError("no problem was named; name a problem.yaml or a shipped problem")
        if not self.resume:
            return default_run_dir(problem, self.runs_dir)
        if (found := newest_unfinished(self.runs_dir, problem.name)) is None:
            if held := newest_held(self.runs_dir, problem.name):
                refuse_held(held)
            to_begin = f"leave {option('resume')} out to begin one"
            raise RunError(f"{self.runs_dir}: no unfinished run of {problem.name}; {to_begin}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSearch:
    """A search of which everything is decided; nothing of it is opened or written yet."""

    problem: ProblemSpec
    target: Target
    run_dir: Path
    device: str  # as named: "cuda" means every GPU like the first one
    away: str = ""  # why its device is not on this machine, where what needs it waits
    models: tuple[AnyModel, ...]
    is_model_named: bool  # by the request, the run or the problem; else the offline one stands in
    settings: SearchSettings
    budget: Budget
    rng_seed: int
    resume: bool
    max_rounds: int | None
    bank: Path | None
    allow_unsafe: bool
    park: bool
    replay: Replay | None
    begun: RunRecord  # the record of the run that is resumed; empty for a new search

    @property
    def replays_times(self) -> bool:
        """Say whether measurements are replayed, so that nothing is built or run."""
        return self.replay is not None and self.replay.replays_times

    @property
    def has_begun(self) -> bool:
        """Say whether the run stored its request, whose settings the search then keeps."""
        return self.begun.has_begun

    @property
    def model_names(self) -> tuple[str, ...]:
        """Return the names of the models, in the order given."""
        return tuple(model.name for model in self.models)

    @property
    def composes_alone(self) -> bool:
        """Say whether the offline model, which covers some problems, is the only one."""
        return ModelPool(self.models).composes_alone


def _read_run(run_dir: Path, runs_dir: Path) -> RunRecord:
    """Return the record of the run that goes on; RunError where the folder is no run's."""
    refuse_links(run_dir)
    if not os.path.lexists(run_dir / ARCHIVE_NAME):
        meant = find_run(runs_dir, run_dir)
        raise RunError(f"{run_dir}: no such run; did you mean {meant}?")
    with Archive.open_read_only(run_dir) as archive:
        return archive.run()


@contextlib.contextmanager
def _stored_settings(run_dir: Path) -> Iterator[None]:
    """Tell settings or a budget of a run's record that no search stores in one line."""
    try:
        yield
    except ValidationError as error:
        mistake = explain_mistake(error.errors(), SearchSettings, {})
        raise StorageError(f"{run_dir / ARCHIVE_NAME}: {damaged(f'what its search began with: {mistake}')}") from None


def _beginning(problem: ProblemSpec | None, replay: Replay | None, run_dir: Path, begun: RunRecord) -> Beginning:
    """Return what the search begins with; RunError where neither the request nor the run says which problem it is for."""
    if replay is not None:
        return FromRecording(problem or replay.problem(), replay)
    return FromProblem(problem or _searched_problem(run_dir, begun))


def _searched_problem(run_dir: Path, begun: RunRecord) -> ProblemSpec:
    """Return the problem that a run searched; RunError when the run does not say."""
    if begun.is_blank:
        raise ended_unbegun(run_dir)
    if (place := begun.problem_file) is None:
        raise RunError(f"{run_dir}: does not say which problem it searched; name its problem.yaml too")
    if place.exists():
        return find_problem(place)
    if begun.problem_name in shipped_problems():  # the run began where Ridgeline is installed elsewhere
        return find_problem(begun.problem_name)
    raise RunError(
        f"{run_dir}: began with {place}, which is not here; name the problem's file: "
        f"{resuming('problem.yaml', run_dir)}"
    )


def _budget(given: Budget | None, limits: Mapping[str, Any]) -> Budget:
    """Return the limits with the given ones in the place of single ones."""
    return Budget.model_validate({**limits, **(given.model_dump(exclude_none=True) if given else {})})


def _check(search: ResolvedSearch, *, is_local: bool) -> None:
    """Refuse a search before anything is written; a search that is over needs neither compiler nor sandbox."""
    from ridgeline.graph.search.coverage import ensure_interface

    if search.has_begun:
        check_same(search.run_dir, search.begun, search.target)
    if search.bank is not None and search.bank != own_bank():  # without the user's own a search goes on
        Bank.check_openable(search.bank)
    if search.resume:
        return
    ensure_interface(search.problem, search.target.device.kind, composes_alone=search.composes_alone)
    if is_local:
        check_machine(search.device, allow_unsafe=search.allow_unsafe)


_named: set[Path] = set()  # the folders that this process has named, before they are made
_naming = threading.Lock()


def default_run_dir(problem: ProblemSpec, runs_dir: Path = RUNS) -> Path:
    """Return a new folder's path: `runs/<problem>-<time>-<process>`, with a number when that exists or was returned before.

    The session makes the folder. Until then the process's number tells apart two searches that start in one second, and
    the number at the end those of one process.
    """
    base = runs_dir.absolute() / f"{problem.name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    numbered = itertools.chain([base], (base.with_name(f"{base.name}-{n}") for n in itertools.count(2)))
    with _naming:
        free = next(path for path in numbered if path not in _named and not path.exists())
        _named.add(free)
    return runs_dir / free.name
