"""The context of one search: what its nodes share at run time. LangGraph hands it to the nodes and never checkpoints it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ridgeline.graph.models.allowance import Allowance
from ridgeline.graph.models.batch.batches import Batches
from ridgeline.graph.models.journalled import JournalledModels
from ridgeline.graph.models.later_replies import ALIVE, LaterReplies, Waiting
from ridgeline.graph.models.mailbox.mailbox import Mailbox
from ridgeline.graph.models.requests import Subject
from ridgeline.graph.models.sending import CallSender
from ridgeline.graph.search.decisions import LiveDecisions
from ridgeline.graph.search.families import family_of
from ridgeline.graph.search.repairs.sibling_repairs import SiblingRepairs
from ridgeline.graph.search.running.measuring import Measuring
from ridgeline.graph.search.running.session_notes import SessionNotes
from ridgeline.graph.search.running.working_time import WorkingTime
from ridgeline.graph.search.shape.ablation import Ablation
from ridgeline.graph.search.shape.plan import Plan, derived_seed, make_plan
from ridgeline.tools.build.interfaces import entry_declaration, problem_header
from ridgeline.tools.errors import EngineError, NotBegun
from ridgeline.tools.machine.threads import run_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from ridgeline.checkpoints.archive import Archive
    from ridgeline.checkpoints.bank import Bank
    from ridgeline.checkpoints.calls.journal import Journal
    from ridgeline.graph.models.pool import ModelPool
    from ridgeline.graph.search.decisions import Decisions
    from ridgeline.problems.spec import Budget, ProblemSpec, SearchSettings
    from ridgeline.tools.engine import Task
    from ridgeline.tools.records.baselines import Baselines
    from ridgeline.tools.records.problem import DescribedTarget, DeviceFact, Target
    from ridgeline.tools.records.vocabulary import RunState

R = TypeVar("R")

Finish: TypeAlias = "Callable[[SearchContext, RunState], object]"
"""Called by `certify` to write a run's files; until they exist, the search can be resumed."""


class EndedBy(Enum):
    """Who writes a run's files and stores how its search ended."""

    SESSION = "session"
    """The session that runs the graph, when that has ended."""
    HOST = "host"
    """`certify` by the context's `finish`, since a host runs the graph."""
    NOBODY = "nobody"
    """Nobody writes files; `certify` stores how the search ended."""


@dataclass(slots=True, kw_only=True)
class SearchContext:
    """Everything a search needs besides its state.

    The baseline node sets `described_target` and `facts`, which a resumed search brings along. No other field is set during
    a search; what `measuring`, `later`, `working` and `notes` hold changes inside them.
    """

    problem: ProblemSpec
    target: Target
    described_target: DescribedTarget | None = None  # see `stored_target`
    facts: tuple[DeviceFact, ...] = ()  # the device's table, as models are shown it; the same on every resume
    archive: Archive
    journal: Journal
    measuring: Measuring
    models: ModelPool
    settings: SearchSettings
    budget: Budget
    bank: Bank | None = None
    rng_seed: int = 0
    waiting: Waiting = ALIVE
    # a stop was asked for: no provider and no reply is waited for longer
    is_stopping: Callable[[], bool] = lambda: False
    allowance: Allowance = field(init=False)
    later: LaterReplies = field(init=False)
    _sender: CallSender = field(init=False)
    journalled_models: JournalledModels = field(init=False)
    sibling_repairs: SiblingRepairs = field(init=False)
    working: WorkingTime = field(default_factory=WorkingTime)
    notes: SessionNotes = field(default_factory=SessionNotes)
    replays_times: bool = False  # nothing is measured, and so nothing certified
    decisions: Decisions = field(default_factory=LiveDecisions)
    ended_by: EndedBy = EndedBy.NOBODY
    go_on: Callable[[], object] | None = None  # called as each node begins, where a host decides whether one does
    renew_report: Callable[[], object] | None = None  # called as each round ends, where a session has the run's files
    finish: Finish | None = None  # of a search that is ended by its host, and of no other

    def __post_init__(self) -> None:
        if (self.finish is not None) != (self.ended_by is EndedBy.HOST):
            raise ValueError(f"a search that is ended by {self.ended_by.value} has finish={self.finish!r}")
        self.sibling_repairs = SiblingRepairs(is_stopping=self.is_stopping)
        self.allowance = Allowance(
            self.journal,
            self.budget,
            wall_used_s=lambda: self.finding_s,
            awaits_batches=lambda: self.later.awaits_batches,
        )
        self.later = LaterReplies(
            mailbox=Mailbox(self.journal),
            batches=Batches(self.journal, self.allowance, self.models.batch_model),
            journal=self.journal,
            allowance=self.allowance,
            waiting=self.waiting,
            is_stopping=self.is_stopping,
            is_busy=self._is_busy,
        )
        self._sender = CallSender(self.journal, self.allowance, self.later, is_stopping=self.is_stopping)
        self.journalled_models = JournalledModels(self.models, self.journal, self._sender)

    def _is_busy(self) -> bool:
        """Say whether the search works beside the replies that it waits for."""
        return self.measuring.is_busy or bool(self._sender.in_flight)

    @property
    def wall_s(self) -> float:
        """Return the seconds that the search took so far, without those in which it only waited for a mailbox."""
        return self.working.all_s - self.later.waited_s

    @property
    def finding_s(self) -> float:
        """Return the part of `wall_s` that a budget counts: from the first ideas to the end of the rounds."""
        return self.working.finding_s - self.later.waited_s

    @property
    def described(self) -> DescribedTarget:
        """Return the target with its description.

        Raises:
            EngineError: the baseline node did not run yet.
        """
        if self.described_target is None:
            raise EngineError(f"{self.problem.name}: the reference was not described yet")
        return self.described_target

    @property
    def family(self) -> str:
        """Return the operation family under which the bank keeps this problem's kernels."""
        return family_of(self.described.description)

    def plan(self, max_rounds: int | None = None) -> Plan:
        """Return the shape of the search."""
        return make_plan(self.settings, max_rounds, is_token_limited=self.budget.tokens is not None)

    @property
    def ablation(self) -> Ablation:
        """Return what the search leaves out."""
        return Ablation.of(self.settings)

    async def measure(self, task: Task[R]) -> R:
        """Return the engine's result of a task.

        A step of the graph may take minutes: a stop ends it here, between two measurements. Those that were made are
        stored.

        Raises:
            NotBegun: a stop was asked for.
        """
        self.check_stop()
        return await self.measuring.engine.submit(task)

    def check_stop(self) -> None:
        """Raise NotBegun once a stop was asked for: what would follow is left to the resumed search."""
        if self.is_stopping():
            raise NotBegun("a stop was asked for before the next measurement began")

    def derived_seed(self, *parts: object) -> int:
        """Return the seed of one decision, the same on every resume."""
        return derived_seed(self.rng_seed, *parts)

    async def baselines(self) -> Baselines:
        """Return PyTorch's times as far as they are measured.

        Raises:
            EngineError: the baseline node did not run yet.
        """
        found = await run_whole(self.archive.baselines)
        if found is None:
            raise EngineError(f"{self.problem.name}: the baselines were not measured yet")
        return found

    @property
    def subject(self) -> Subject:
        """Return the problem as every model request states it."""
        return subject_of(self.described, self.facts)

    async def told_baselines(self, round_: int) -> Baselines:
        """Return PyTorch's times as the model requests of a round state them.

        The first round is told of eager PyTorch alone, whatever is timed by then: a resumed search asks the same.
        """
        baselines = await self.baselines()
        return baselines if round_ > 1 else baselines.eager_only()


def stored_target(archive: Archive, target: Target) -> DescribedTarget | None:
    """Return the target with the description that an earlier session stored; None in a new search."""
    description = archive.description()
    return None if description is None else target.described(description)


def subject_of(target: DescribedTarget, facts: tuple[DeviceFact, ...] = ()) -> Subject:
    """Return the problem as model requests state it.

    Raises:
        ProblemError: the generated header would not declare it.
    """
    signature, kind = target.description.signature, target.device.kind
    # whole, so that a constant it cannot state is told before a model is asked
    problem_header(signature, kind, target.interface)
    return Subject(
        problem_name=target.name,
        reference_source=target.reference_source,
        header=entry_declaration(signature, kind, target.interface),
        interface=target.interface,
        language=target.language,
        tolerance=target.told_tolerance,
        device=target.device,
        description=target.description,
        facts=facts,
    )
