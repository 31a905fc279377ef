"""What the nodes of one search share at run time; LangGraph hands it to them and never checkpoints it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ridgeline.graph.models.journalled import JournalledModels
from ridgeline.graph.models.requests import Subject
from ridgeline.graph.search.families import family_of
from ridgeline.graph.search.pauses import Pauses
from ridgeline.graph.search.plan import Plan, derived_seed, make_plan
from ridgeline.tools.build.header import problem_header
from ridgeline.tools.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.tools import BaseTool

    from ridgeline.checkpoints.archive import Archive
    from ridgeline.checkpoints.bank import Bank
    from ridgeline.checkpoints.journal import Journal
    from ridgeline.graph.models.pool import ModelPool
    from ridgeline.problems.spec import Budget, ProblemSpec, SearchSettings
    from ridgeline.tools.engine import Engine
    from ridgeline.tools.records.problem import DescribedTarget, Target
    from ridgeline.tools.records.results import Baselines
    from ridgeline.tools.records.vocabulary import Purpose


@dataclass(slots=True, kw_only=True)
class SearchContext:
    """Everything a search needs besides its state.

    `described_target` is set at the first `described()`, `toolboxes` and `engine_failed` fill, `compiled` is begun and
    joined; nothing else changes during a search.
    """

    problem: ProblemSpec
    target: Target
    archive: Archive
    journal: Journal
    engine: Engine
    models: ModelPool
    settings: SearchSettings
    budget: Budget
    bank: Bank | None = None
    rng_seed: int = 0
    journalled_models: JournalledModels = field(init=False)
    started_s: float = field(default_factory=time.monotonic)
    wall_before_s: float = 0.0  # of earlier sessions of the same search
    toolboxes: dict[Purpose, list[BaseTool]] = field(default_factory=dict)  # made at their first use
    engine_failed: set[tuple[str, Purpose]] = field(default_factory=set)  # candidates, in this session
    devices: int = 1  # measurements that the engine makes side by side
    described_target: DescribedTarget | None = None
    pauses: Pauses = field(default_factory=Pauses)
    compiled: asyncio.Task[None] | None = None  # times PyTorch's compiled configurations while models think
    cores_in_use: Callable[[], float] | None = None  # what others take of the measuring machine; None: nobody can tell

    def __post_init__(self) -> None:
        self.journalled_models = JournalledModels(self.models, self.journal)

    def plan(self, max_rounds: int | None = None) -> Plan:
        """Return the shape of the search."""
        return make_plan(self.settings, max_rounds)

    def derived_seed(self, *parts: object) -> int:
        """Return the seed of one decision, the same on every resume."""
        return derived_seed(self.rng_seed, *parts)

    async def described(self) -> DescribedTarget:
        """Return the target with its description; EngineError before the baseline node stored one."""
        if self.described_target is None:
            description = await asyncio.to_thread(self.archive.description)
            if description is None:
                raise EngineError(f"{self.problem.name}: the reference was not described yet")
            self.described_target = self.target.described(description)
        return self.described_target

    def family(self) -> str:
        """Return the operation family under which the bank keeps this problem's kernels."""
        return family_of(self.described_target.description) if self.described_target else "unknown"

    async def subject(self, round_: int) -> Subject:
        """Return what every model request of a round says of the problem.

        The first round is told of eager PyTorch alone, whatever is timed by then: a resumed search asks the same.
        """
        target = await self.described()
        baselines = await asyncio.to_thread(self.archive.baselines)
        if baselines is None:
            raise EngineError(f"{self.problem.name}: the baselines were not measured yet")
        return subject_of(target, baselines if round_ > 1 else baselines.eager_only())


def subject_of(target: DescribedTarget, baselines: Baselines) -> Subject:
    """Return what a model request says of a problem, measured like this."""
    return Subject(
        problem_name=target.name,
        reference_source=target.reference_source,
        header=problem_header(target.description.signature, target.device.kind, target.interface),
        interface=target.interface,
        language=target.language,
        tolerance=target.tolerance,
        device=target.device,
        description=target.description,
        baselines=baselines,
    )
