"""The beginning of a search, which a request changes in single points: a problem, or a recorded search that is replayed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ValidationError

from ridgeline.graph.models.registry import make_models, traits_of
from ridgeline.graph.models.replayed_model import ReplayedModel
from ridgeline.graph.session.machine import target_of, target_of_parking
from ridgeline.graph.session.on_device import on_device
from ridgeline.graph.session.problem import changed_settings
from ridgeline.problems.mistakes import explain_mistake
from ridgeline.problems.spec import Budget, SearchSettings
from ridgeline.tools.errors import ModelError, RunError

if TYPE_CHECKING:
    from pathlib import Path

    from ridgeline.graph.models.retry import RetryPolicy
    from ridgeline.graph.models.search_model import AnyModel
    from ridgeline.graph.session.replaying import Replay
    from ridgeline.problems.spec import ProblemSpec
    from ridgeline.tools.records.problem import Device, Target

CLOCKS = ("wall_s", "gpu_s")
"""Limits of a budget that a replay does not take over: its clock is another one."""

Settings = SearchSettings | Mapping[str, Any] | None
"""Settings as a request gives them: all, single ones, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModels:
    """The names of a search's models, and where they are written."""

    names: Sequence[str]  # empty: the offline model
    whose: str  # how an error of theirs begins; "": the caller's own
    sends: bool = True  # whether they are asked, and so need their keys


class Beginning(Protocol):
    """All that a search takes over when it begins; a run that has begun keeps what it stored instead."""

    @property
    def problem(self) -> ProblemSpec:
        """Return the problem that is searched."""
        ...

    def settings(self, given: Settings) -> SearchSettings:
        """Return the settings with the given ones in the place of single ones; an InputError where one is out of range."""
        ...

    def limits(self) -> dict[str, Any]:
        """Return the limits of the budget."""
        ...

    def models(self, named: NamedModels, budget: Budget, policy: RetryPolicy) -> Sequence[AnyModel]:
        """Return the models; ModelError where one cannot be made."""
        ...

    def device(self, asked: str) -> str:
        """Return the name of the device, by the one that the request names."""
        ...

    def target(self, device: str, begun_on: Device | None) -> tuple[Target, str]:
        """Return the problem on a device, and why a search that parks has to do without that device here, or "".

        `begun_on` is the device of a search that parks, if it has begun.
        """
        ...

    def rng_seed(self, asked: int) -> int:
        """Return the random seed, by the one that the request names."""
        ...

    def bank(self, asked: Path | None) -> Path | None:
        """Return the seed bank, by the one that the request names."""
        ...


@dataclass(frozen=True, slots=True)
class FromProblem:
    """The beginning of a search for a problem: the problem's file states it, the request the rest."""

    problem: ProblemSpec

    def settings(self, given: Settings) -> SearchSettings:
        return changed_settings(self.problem, given)

    def limits(self) -> dict[str, Any]:
        return self.problem.budget.model_dump()

    def models(self, named: NamedModels, budget: Budget, policy: RetryPolicy) -> Sequence[AnyModel]:
        try:
            needs_prices = budget.usd is not None
            return make_models(
                named.names, prices=self.problem.prices, needs_prices=needs_prices, policy=policy, sends=named.sends
            )
        except ModelError as error:
            raise type(error)(f"{named.whose}{error}") from error

    def device(self, asked: str) -> str:
        return asked

    def target(self, device: str, begun_on: Device | None) -> tuple[Target, str]:
        if begun_on is not None:
            return target_of_parking(self.problem, device, begun_on)
        return target_of(self.problem, device), ""

    def rng_seed(self, asked: int) -> int:
        return asked

    def bank(self, asked: Path | None) -> Path | None:
        return asked


@dataclass(frozen=True, slots=True)
class FromRecording:
    """The beginning of a replay: what the recorded search began with, save its clock and the bank."""

    problem: ProblemSpec  # the recorded one, or one that the request names and that states the same reference
    replay: Replay

    def settings(self, given: Settings) -> SearchSettings:
        if isinstance(given, SearchSettings):
            return given
        recorded = self.replay.recording.run.settings
        with self._recorded("settings", SearchSettings):
            SearchSettings.model_validate(recorded)
        try:
            return SearchSettings.model_validate({**recorded, **(given or {})})
        except ValidationError as error:
            raise RunError(explain_mistake(error.errors(), SearchSettings, {})) from None

    def limits(self) -> dict[str, Any]:
        """Return the recorded limits without the clocks; RunError where they are none."""
        recorded = self.replay.recording.run.budget
        with self._recorded("budget", Budget):
            Budget.model_validate(recorded)
        return {name: limit for name, limit in recorded.items() if name not in CLOCKS}

    @contextlib.contextmanager
    def _recorded(self, what: str, section: type[BaseModel]) -> Iterator[None]:
        """Name the recording where the block finds a mistake in a section of what its search began with."""
        try:
            yield
        except ValidationError as error:
            mistake = explain_mistake(error.errors(), section, {})
            raise RunError(f"{self.replay.path}: its {what} cannot be read: {mistake}") from None

    def models(self, named: NamedModels, budget: Budget, policy: RetryPolicy) -> Sequence[AnyModel]:
        """Return the recorded models; ModelError where the model for other calls cannot be made."""
        others = [self.replay.otherwise] if self.replay.otherwise else []
        needs_prices, prices = budget.usd is not None, self.problem.prices
        made = make_models(others, prices=prices, needs_prices=needs_prices, policy=policy) if others else [None]
        answers = self.replay.answers
        names = self.replay.recording.run.models
        return [ReplayedModel(name, answers, made[0], traits=traits_of(name)) for name in names]

    def device(self, asked: str) -> str:
        """Return the asked device where it is of the recorded kind and times are measured."""
        run = self.replay.recording.run
        is_of_kind = asked.partition(":")[0] == run.device.kind.value
        return asked if is_of_kind and not self.replay.replays_times else run.device_name

    def target(self, device: str, begun_on: Device | None) -> tuple[Target, str]:
        """Return the problem on a device, or on the recorded one, which need not be here, where times are replayed.

        Raises:
            RunError: the problem's reference is not the recorded one.
        """
        run = self.replay.recording.run
        if self.replay.replays_times:
            found, away = on_device(self.problem, run.device), ""
        else:
            found, away = FromProblem(self.problem).target(device, begun_on)
        if found.reference_source != run.reference_source:
            raise RunError(
                f"{self.replay.path}: recorded another reference, or other sizes, than {self.problem.given} has; leave the "
                "problem out"
            )
        return found, away

    def rng_seed(self, asked: int) -> int:
        return self.replay.recording.run.rng_seed

    def bank(self, asked: Path | None) -> None:
        """Return none: the recording holds the kernels that the bank gave."""
