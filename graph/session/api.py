"""Ridgeline as a library: `search()`, `evaluate()`, a LangChain tool, and the same for those in an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from ridgeline.checkpoints.runs import check_vacant
from ridgeline.graph.session.driver import OnEvent, SearchOptions, SearchResult, run_search
from ridgeline.graph.session.run_log import log_to
from ridgeline.problems.spec import Budget, ProblemSpec, SearchSettings, load_problem, shipped_problems
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.machine.waits import Listener, Wait, describe_wait

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from ridgeline.tools.engine import Engine

T = TypeVar("T")

OnLine = Callable[[dict[str, Any]], None]
OnWait = Callable[[str], None]

RUNS = Path("runs")


def search(
    problem: str | Path | ProblemSpec,
    *,
    device: str = "cpu",
    models: str | Sequence[str] = (),
    run_dir: Path | str | None = None,
    rounds: int | None = None,
    ideas: int | None = None,
    implementations: int | None = None,
    strategy: str | None = None,
    budget: Budget | None = None,
    rng_seed: int = 0,
    resume: bool = False,
    bank: Path | str | None = None,
    on_event: OnEvent | None = None,
) -> SearchResult:
    """Search for a faster kernel and return the verified best one; blocks, also inside a running event loop.

    `problem` is a problem.yaml, its folder, the name of a shipped problem, or a loaded ProblemSpec. Without `models` the
    problem's are used, else the keyless one. The run folder defaults to `runs/<problem>-<time>-<process>`. Inside an event loop
    await `run_search(SearchOptions(...))` instead.

    Raises:
        InputError: something of yours to mend, in one line.
        EngineError: the machine failed; the search can be resumed with `resume=True` and its `run_dir`.
    """
    spec = find_problem(problem)
    changes = {"rounds": rounds, "ideas": ideas, "implementations": implementations, "strategy": strategy}
    given = {name: value for name, value in changes.items() if value is not None}
    options = SearchOptions(
        problem=spec,
        run_dir=Path(run_dir) if run_dir else default_run_dir(spec),
        device=device,
        models=_names(models),
        settings=changed_settings(spec, given),
        budget=budget,
        rng_seed=rng_seed,
        resume=resume,
        max_rounds=rounds if resume else None,
        bank=Path(bank) if bank else None,
    )
    if not resume:
        check_vacant(options.run_dir)  # before the log begins in it
    with log_to(options.run_dir / "run.log"):
        return _blocking(run_search(options, on_event=on_event))


def evaluate(
    problem: str | Path | ProblemSpec,
    files: str | Path | Sequence[str | Path],
    *,
    device: str = "cpu",
    allow_unsafe: bool = False,
    on_line: OnLine | None = None,
    on_wait: OnWait | None = None,
) -> list[dict[str, Any]]:
    """Judge kernel files and return one `evaluate --json` object for each; a kernel that fails is data, not an error.

    `on_line` gets each object as soon as its file is judged; `on_wait` one line of text when another process has the
    device and this one waits for it.

    Raises InputError and EngineError as `search` does.
    """
    paths = [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]
    spec = find_problem(problem)
    return _blocking(
        evaluate_async(spec, paths, device=device, allow_unsafe=allow_unsafe, on_line=on_line, on_wait=on_wait)
    )


async def evaluate_async(
    problem: ProblemSpec,
    files: Sequence[Path],
    *,
    device: str = "cpu",
    allow_unsafe: bool = False,
    engine: Engine | None = None,
    on_line: OnLine | None = None,
    on_wait: OnWait | None = None,
) -> list[dict[str, Any]]:
    """Judge kernel files; `engine` replaces the local one and is not closed."""
    from ridgeline.graph.search.judged_files import evaluate_files, read_sources
    from ridgeline.graph.session.machine import check_machine, open_engine, target_of

    target = target_of(problem, device)
    sources = await asyncio.to_thread(read_sources, files, target.language)
    lines: list[dict[str, Any]] = []
    async with contextlib.AsyncExitStack() as stack:
        if engine is None:
            await asyncio.to_thread(check_machine, device, allow_unsafe=allow_unsafe)
            opened = open_engine(device, allow_unsafe=allow_unsafe, on_wait=_in_words(on_wait))
            engine = await stack.enter_async_context(opened)
        async for judged in evaluate_files(engine, target, sources):
            lines.append(judged.to_json())
            if on_line is not None:
                on_line(lines[-1])
    return lines


def _in_words(on_wait: OnWait | None) -> Listener:
    def tell(wait: Wait | None) -> None:
        if on_wait is not None and wait is not None and wait.is_news:
            on_wait(describe_wait(wait.device, wait.holder, wait.holders))

    return tell


def search_tool(*, device: str = "cpu", models: str | Sequence[str] = (), runs_dir: Path | str = RUNS) -> BaseTool:
    """Return a LangChain tool with which an agent runs a whole search; its answer is result.json's content.

    Device, models and where runs lie are the host's to choose, so the agent cannot.
    """
    from langchain_core.tools import StructuredTool

    async def search_kernel(problem: str, rounds: int = 3) -> str:
        """Search for a kernel faster than PyTorch for `problem` (a problem.yaml or a shipped problem's name)."""
        spec = find_problem(problem)
        options = SearchOptions(
            problem=spec,
            run_dir=default_run_dir(spec, Path(runs_dir)),
            device=device,
            models=_names(models),
            settings=changed_settings(spec, {"rounds": rounds}),
        )
        result = await run_search(options)
        return json.dumps(result.report)

    return StructuredTool.from_function(coroutine=search_kernel)


def _names(models: str | Sequence[str]) -> tuple[str, ...]:
    return (models,) if isinstance(models, str) else tuple(models)


def find_problem(problem: str | Path | ProblemSpec) -> ProblemSpec:
    """Return the problem that a caller means; ProblemError when there is none."""
    if isinstance(problem, ProblemSpec):
        return problem
    shipped = shipped_problems()
    if str(problem) in shipped and not Path(problem).exists():
        return load_problem(shipped[str(problem)])
    path = Path(problem)
    if not path.exists() and path.name == str(problem) and not path.suffix:
        close = get_close_matches(str(problem), shipped, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        listed = ", ".join(sorted(shipped))
        raise ProblemError(f"problem {problem}: no such file, and none that ships; {meant}shipped: {listed}")
    return load_problem(path)


def changed_settings(problem: ProblemSpec, changes: dict[str, Any]) -> SearchSettings:
    """Return the problem's search settings with these changes; ProblemError for one that is out of range."""
    try:
        return problem.search.model_validate(problem.search.model_dump() | changes)
    except ValidationError as error:
        first = error.errors()[0]
        raise ProblemError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}, got {first['input']!r}") from None


def default_run_dir(problem: ProblemSpec, runs_dir: Path = RUNS) -> Path:
    """Return a new folder's path: `runs/<problem>-<time>-<process>`, with a number when that exists.

    The folder is made by the search; the process's number keeps two that start in one second apart until then.
    """
    base = runs_dir / f"{problem.name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    numbered = (base.with_name(f"{base.name}-{n}") for n in range(2, 1000))
    return base if not base.exists() else next(path for path in numbered if not path.exists())


def _blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end: in this thread, or in a new one when this thread has a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="ridgeline-search") as executor:
        return executor.submit(asyncio.run, work).result()
