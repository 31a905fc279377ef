"""Inputs that may be mostly one of their numbers, in the widest way that the reference takes: all at once, then each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ridgeline.tools.judge.worker.domain.halving import settle_by_halves
from ridgeline.tools.judge.worker.domain.objections import Objection
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.variation import Way


class CrowdedInputs:
    """Finds the inputs that one of the trials CROWDS changes, and notes how in the secret source."""

    def __init__(
        self, trial: str, source: SecretSource, book: CaseBook, names: tuple[str, ...], objection: Objection
    ) -> None:
        """Try nothing yet; `names` are the inputs'."""
        self._trial = trial
        self._source = source
        self._book = book
        self._names = names
        self._objection = objection

    def settle(self) -> dict[str, str]:
        """Return the inputs that stay as they are in that trial, by `crowded NAME` with the reason."""
        ways = self._source.ways_to_crowd(self._trial)
        if not ways or not self._refuses({i: each[0] for i, each in ways.items()}, self._trial):
            return {}
        taken: dict[int, Way] = {}
        refused: dict[str, str] = {}
        for index, each in ways.items():
            self._settle_input(index, each, taken, refused)
        return refused | self._settle_together(taken)

    def _settle_together(self, accepted: Mapping[int, Way]) -> dict[str, str]:
        """Note as many of the ways accepted alone as are accepted together, the first ones; return why the others are not."""

        def note(chosen: frozenset[int]) -> None:
            self._note({i: way for i, way in accepted.items() if i in chosen})

        def objection_to(asked: Sequence[int], taken: frozenset[int]) -> str:
            if len(asked) == len(accepted):
                return self._objection(self._trial, f"{self._trial}, each accepted alone")
            named = ", ".join(self._names[i] for i in asked)
            return self._objection(self._trial, f"{self._trial} {named}, beside {len(taken)}")

        refused = settle_by_halves(tuple(accepted), note=note, objection_to=objection_to)
        return {f"{self._trial} {self._names[i]}": why for i, why in refused.items()}

    def _settle_input(self, index: int, ways: tuple[Way, ...], taken: dict[int, Way], refused: dict[str, str]) -> None:
        why = ""
        for number, way in enumerate(ways):
            why = self._refuses({index: way}, f"{self._trial} {self._names[index]}, way {number}")
            if not why:
                taken[index] = way
                return
        refused[f"{self._trial} {self._names[index]}"] = why

    def _refuses(self, crowds: Mapping[int, Way], what: str) -> str:
        self._note(crowds)
        return self._objection(self._trial, what) if crowds else ""

    def _note(self, crowds: Mapping[int, Way]) -> None:
        self._book.forget(self._trial)
        self._source.crowds[self._trial] = crowds
