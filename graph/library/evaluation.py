"""Kernels judged outside of any search, and the verdict on one as a value: what a line of `evaluate --json` says, typed."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ridgeline.graph.library.blocking import run_blocking
from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.machine import check_machine, open_engine, target_of, users_reference
from ridgeline.graph.session.problem import ProblemName, find_problem
from ridgeline.tools.machine.waits import Listener, Wait, describe_wait
from ridgeline.tools.records.vocabulary import Label, PrecisionClass, ReasonCode, Status

if TYPE_CHECKING:
    from ridgeline.tools.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One kernel as it was judged and timed; a kernel that fails is one too.

    Fields of time and speedup are None where the kernel is not `ok`. `speedup` is eager PyTorch's time / the kernel's.
    """

    file: str  # as it was named; a source without a file is `kernel.cpp`; of a search's kernel its id
    status: Status
    reason_code: ReasonCode
    reason: str  # "" when it is ok
    labels: tuple[Label, ...]  # cautions on a result that counts
    precision_class: PrecisionClass | None  # measured
    rel_error: float | None
    margin: float | None  # the largest figure / limit of all trials: 1 at a limit
    speedup: float | None
    speedup_ci95: tuple[float, float] | None
    speedup_vs_best: float | None  # over the fastest of PyTorch's configurations of the same class
    median_ms: float | None
    reference_ms: float | None  # eager PyTorch in the same run
    floor_ms: float | None  # the roofline's
    sandbox_tier: str | None
    build_s: float | None
    total_s: float
    _line: Mapping[str, Any] = field(repr=False, compare=False)  # see to_dict

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Evaluation:
        """Return the value of a line that `evaluate --json` would print."""
        interval = line["speedup_ci95"]
        precision = line["precision_class"]
        same = (
            *("file", "reason", "rel_error", "margin", "speedup", "speedup_vs_best", "median_ms", "reference_ms"),
            *("floor_ms", "sandbox_tier", "build_s", "total_s"),
        )
        return cls(
            **{name: line[name] for name in same},
            status=Status(line["status"]),
            reason_code=ReasonCode(line["reason_code"]),
            labels=tuple(Label(label) for label in line["labels"]),
            precision_class=PrecisionClass(precision) if precision else None,
            speedup_ci95=(interval[0], interval[1]) if interval else None,
            _line=copy.deepcopy(dict(line)),
        )

    @property
    def is_ok(self) -> bool:
        """Say whether the kernel was right, and timed."""
        return self.status is Status.OK

    def to_dict(self) -> dict[str, Any]:
        """Return the object of `ridgeline evaluate --json`, ready for `json.dumps`; it has PyTorch's times too."""
        return copy.deepcopy(dict(self._line))


OnEvaluation = Callable[[Evaluation], None]
OnWait = Callable[[str], None]
OnStep = Callable[[str], None]


@overload
def evaluate(  # type: ignore[overload-overlap]  # a text is a sequence of texts too; it stands for one kernel
    problem: ProblemName,
    kernels: str | Path,
    *,
    device: str = "cpu",
    allow_unsafe: bool = False,
    on_evaluation: OnEvaluation | None = None,
    on_wait: OnWait | None = None,
    on_step: OnStep | None = None,
) -> Evaluation: ...


@overload
def evaluate(
    problem: ProblemName,
    kernels: Sequence[str | Path],
    *,
    device: str = "cpu",
    allow_unsafe: bool = False,
    on_evaluation: OnEvaluation | None = None,
    on_wait: OnWait | None = None,
    on_step: OnStep | None = None,
) -> list[Evaluation]: ...


def evaluate(
    problem: ProblemName,
    kernels: str | Path | Sequence[str | Path],
    *,
    device: str = "cpu",
    allow_unsafe: bool = False,
    on_evaluation: OnEvaluation | None = None,
    on_wait: OnWait | None = None,
    on_step: OnStep | None = None,
) -> Evaluation | list[Evaluation]:
    """Judge one kernel and return its Evaluation, or several and return a list; blocks, `aevaluate` does not.

    A kernel is a file's path or a source: a text with a line break is a source, but for one after a path. A kernel that
    fails is data, not an error, and so is one that the machine failed on (`engine_failed`). `on_evaluation` gets each as
    soon as it is judged; `on_wait` one line of text when another process has the device and this one waits for it, and
    one when it goes on; `on_step` one as each step begins, "verifying kernel.cpp". An interrupt ends the processes that judge,
    then raises KeyboardInterrupt.

    Raises:
        InputError: invalid input; one line says how to fix it.
        EngineError: the machine failed, whatever the kernel.
    """
    given = _Given(
        device=device, allow_unsafe=allow_unsafe, on_evaluation=on_evaluation, on_wait=on_wait, on_step=on_step
    )
    return run_blocking(_judged(problem, kernels, given))


@overload
async def aevaluate(  # type: ignore[overload-overlap]  # a text is a sequence of texts too; it stands for one kernel
    problem: ProblemName,
    kernels: str | Path,
    *,
    device: str = "cpu",
    allow_unsafe: bool = False,
    engine: Engine | None = None,
    on_evaluation: OnEvaluation | None = None,
    on_wait: OnWait | None = None,
    on_step: OnStep | None = None,
) -> Evaluation: ...


@overload
async def aevaluate(
    problem: ProblemName,
    kernels: Sequence[str | Path],
    *,
    device: str = "cpu",
    allow_unsafe: bool = False,
    engine: Engine | None = None,
    on_evaluation: OnEvaluation | None = None,
    on_wait: OnWait | None = None,
    on_step: OnStep | None = None,
) -> list[Evaluation]: ...


async def aevaluate(
    problem: ProblemName,
    kernels: str | Path | Sequence[str | Path],
    *,
    device: str = "cpu",
    allow_unsafe: bool = False,
    engine: Engine | None = None,
    on_evaluation: OnEvaluation | None = None,
    on_wait: OnWait | None = None,
    on_step: OnStep | None = None,
) -> Evaluation | list[Evaluation]:
    """Judge as `evaluate` does, while the event loop goes on; `engine` replaces the local one and is not closed."""
    given = _Given(
        device=device, allow_unsafe=allow_unsafe, on_evaluation=on_evaluation, on_wait=on_wait, on_step=on_step
    )
    return await _judged(problem, kernels, given, engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """The options of `evaluate`, checked."""

    device: str
    allow_unsafe: bool
    on_evaluation: OnEvaluation | None
    on_wait: OnWait | None
    on_step: OnStep | None

    def __post_init__(self) -> None:
        for each in fields(self):
            checked(each.name, getattr(self, each.name))


async def _judged(
    problem: ProblemName, kernels: str | Path | Sequence[str | Path], given: _Given, engine: Engine | None = None
) -> Evaluation | list[Evaluation]:
    from ridgeline.graph.library.judged_files import evaluate_files

    named = checked("kernels", kernels)
    spec = await asyncio.to_thread(find_problem, problem)
    target = await asyncio.to_thread(target_of, spec, given.device)
    is_one = isinstance(named, str | Path)
    sources = await asyncio.to_thread(_sources, [named] if is_one else named, target.language)
    judged: list[Evaluation] = []
    async with contextlib.AsyncExitStack() as stack:
        if engine is None:
            await asyncio.to_thread(check_machine, given.device, allow_unsafe=given.allow_unsafe)
            opened = open_engine(given.device, allow_unsafe=given.allow_unsafe, on_wait=wait_listener(given.on_wait))
            engine = await stack.enter_async_context(opened)
        stack.enter_context(users_reference(spec, target.device.kind.value))
        async for each in evaluate_files(engine, target, sources, on_step=given.on_step):
            judged.append(Evaluation.of_line(each.to_json()))
            if given.on_evaluation is not None:
                given.on_evaluation(judged[-1])
    return judged[0] if is_one else judged


def _sources(kernels: Sequence[str | Path], language: str) -> list[tuple[Path, str]]:
    """Return the name and the text of each kernel; ProblemError for a file that cannot be judged."""
    from ridgeline.graph.library.judged_files import read_sources

    texts = sum(isinstance(kernel, str) for kernel in kernels)  # a path is a Path since it was checked
    numbers = itertools.count(1)
    sources: list[tuple[Path, str]] = []
    for kernel in kernels:
        if isinstance(kernel, Path):
            sources += read_sources([kernel], language)
        else:
            number = f"-{next(numbers)}" if texts > 1 else ""
            sources.append((Path(f"kernel{number}.{language}"), kernel))
    return sources


def wait_listener(on_wait: OnWait | None) -> Listener:
    """Return a listener that tells `on_wait` in one line who has the device, and that it is free then."""
    told = ""  # what is waited for still, as far as was told

    def tell(wait: Wait | None) -> None:
        nonlocal told
        if wait is None or (wait.is_over and not told):
            told = ""
        elif on_wait is not None and wait.is_news:
            line = describe_wait(wait.device, wait.holder, wait.holders)
            if line != told:  # a wait that lasts is news again after a minute: for a log, not for who reads a few lines
                on_wait(line)
            told = "" if wait.is_over else line

    return tell
