"""A search as a host lets its agents run it: the host decides on what, with which models and how much; an agent says for what.

What is told on the way goes to the host's stream. A task of the host's graph that is done again, as after a kill or a
cancellation, goes on with the search that it had begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.archive import FILE_NAME
from ridgeline.checkpoints.runs.folders import find_run, is_locked, read_run, run_named
from ridgeline.graph.library.agents.answers import PlainAnswer, search_answer, search_record
from ridgeline.graph.library.agents.host import AnyStop, Host, host_of_call
from ridgeline.graph.library.agents.offers import Offers
from ridgeline.graph.search.events import OnEvent, viewer_of
from ridgeline.graph.session.arguments import checked, model_names
from ridgeline.graph.session.options import SearchRequest, default_run_dir
from ridgeline.graph.session.problem import ProblemName
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import EngineError, RunError, one_line
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from ridgeline.graph.search.events import SearchEvent
    from ridgeline.problems.spec import Budget, ProblemSpec, SearchSettings

logger = logger_of(__name__)

_CLAIMED: set[Path] = set()  # folders in which calls of this process search, or are about to
_CLAIMING = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A search as an agent asks for it."""

    problem: str | None = None
    rounds: int | None = None  # None: the host's, else the problem's
    resume: str | None = None  # a run in the host's folder of runs: its path, its name or the search's id
    shows_source: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSearch:
    """A host's decisions; `run` is one search."""

    offers: Offers
    device: str
    models: tuple[str, ...]
    runs_dir: Path  # absolute: a host may change its working folder
    budget: Budget | None
    settings: Mapping[str, Any]
    on_event: OnEvent
    resume_words: str  # how an agent goes on with a run: "… {run}"

    @classmethod
    def of(
        cls,
        *,
        device: str,
        models: str | Sequence[str],
        runs_dir: Path | str,
        problems: Sequence[ProblemName] | None,
        budget: Budget | None,
        settings: Mapping[str, Any] | None,
        on_event: OnEvent | None,
        resume_words: str,
    ) -> AgentSearch:
        """Return the search with what a host decides, checked.

        Raises:
            InputError: a value is of another kind than it must be, or a problem cannot be used.
        """
        return cls(
            offers=Offers.of(problems),
            device=checked("device", device),
            models=model_names(models),
            runs_dir=checked("runs_dir", runs_dir).absolute(),
            budget=checked("budget", budget),
            settings=_single(checked("settings", settings)),
            on_event=viewer_of(checked("on_event", on_event)),
            resume_words=resume_words,
        )

    async def run(self, wish: Wish, stop: RunControl | None = None) -> tuple[PlainAnswer, PlainAnswer]:
        """Search, and return what a model is told and what a program may want.

        The search ends after its steps in flight once `stop` or the host's graph is asked to drain, and without them when
        the task is cancelled. It can be resumed either way.

        Raises:
            InputError: as `run_search` does, or the problem or the run is not the agent's to name.
            EngineError: the machine failed; the message says how to go on.
        """
        host = host_of_call()
        with contextlib.ExitStack() as claimed:
            request = await run_whole(self._request, wish, host, claimed)
            return await self._run(request, host, stop, shows_source=wish.shows_source)

    async def _run(
        self, request: SearchRequest, host: Host, stop: RunControl | None, *, shows_source: bool
    ) -> tuple[PlainAnswer, PlainAnswer]:
        run_dir = request.run_dir or self.runs_dir
        tell = self._telling(host, run_dir)
        try:
            result = await run_search(request, on_event=tell, stop=AnyStop(stop, host.control))
        except asyncio.CancelledError as error:
            words = f"the search in {run_dir} was cancelled; to go on: {self._go_on(run_dir)}"
            logger.info("%s", words)
            tell({"event": "warning", "message": words})
            error.add_note(words)
            raise
        except EngineError as error:
            if not await asyncio.to_thread((run_dir / FILE_NAME).is_file):
                raise
            raise EngineError(f"{one_line(error)}; to go on: {self._go_on(run_dir)}") from error
        go_on = self._go_on(run_dir)
        answer = await asyncio.to_thread(search_answer, result, go_on=go_on, shows_source=shows_source)
        return answer, search_record(result)

    def _go_on(self, run_dir: Path) -> str:
        return self.resume_words.format(run=run_dir)

    def _telling(self, host: Host, run_dir: Path) -> OnEvent:
        """Return what hands an event to the host: on its stream with the run's folder, as searches may run side by side."""

        def tell(event: SearchEvent) -> None:
            host.write({**event, "run_dir": str(run_dir)})
            self.on_event(event)

        return tell

    def _request(self, wish: Wish, host: Host, claimed: contextlib.ExitStack) -> SearchRequest:
        if wish.resume:
            return self._resumed(wish, wish.resume)
        problem = self.offers.find(wish.problem)
        run_dir = self._folder_of_task(problem, wish, host.task_id, claimed)
        has_begun = run_dir is not None and (run_dir / FILE_NAME).is_file()
        return SearchRequest(
            problem=problem,
            run_dir=run_dir or default_run_dir(problem, self.runs_dir),
            device=self.device,
            models=self.models,
            settings={**self.settings, **({} if wish.rounds is None else {"rounds": wish.rounds})},
            budget=self.budget,
            resume=has_begun,
        )

    def _resumed(self, wish: Wish, named: str) -> SearchRequest:
        run_dir = self._own_run(named)
        problem = self.offers.find(wish.problem) if wish.problem else None
        if problem is None and self.offers.specs is not None:
            known = read_run(run_dir)
            problem = self.offers.find(known.problem_name if known else None)
        return SearchRequest(
            problem=problem,
            run_dir=run_dir,
            device=self.device,
            models=self.models,
            budget=self.budget,
            resume=True,
            max_rounds=wish.rounds,
        )

    def _own_run(self, named: str) -> Path:
        """Return the run's folder.

        Raises:
            InputError: there is none of this name, or it is outside of the host's folder of runs: not an agent's to name.
        """
        checked("run", named)
        runs_dir = self.runs_dir.resolve()
        is_name = len(Path(named).parts) == 1
        found = (run_named(runs_dir, named) if is_name else find_run(runs_dir, named)).resolve()
        if not found.is_relative_to(runs_dir):
            raise RunError(f"resume: {named} is not in {runs_dir}; name a run that lies there")
        return found

    def _folder_of_task(
        self, problem: ProblemSpec, wish: Wish, task_id: str, claimed: contextlib.ExitStack
    ) -> Path | None:
        """Return the folder that this task of the host's graph has, also when it is done again; None for one of its own.

        Two calls of one task that ask for the same get one of them each: the first has it until `claimed` is closed.
        """
        if not task_id:
            return None
        named = hashlib.sha256(f"{task_id} {problem.path} {problem.name} {wish.rounds}".encode()).hexdigest()[:12]
        run_dir = self.runs_dir / f"{problem.name}-{named}"
        with _CLAIMING:
            if run_dir in _CLAIMED or is_locked(run_dir):
                return None
            _CLAIMED.add(run_dir)
        claimed.callback(_CLAIMED.discard, run_dir)
        return run_dir


def _single(settings: SearchSettings | Mapping[str, Any] | None) -> Mapping[str, Any]:
    if settings is None or isinstance(settings, Mapping):
        return dict(settings or {})
    return settings.model_dump()
