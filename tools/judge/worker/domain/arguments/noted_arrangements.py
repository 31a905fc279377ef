"""The arrangements of inputs in the trials of ARRANGED, as the secret source and the case book know them."""

from __future__ import annotations

import functools

from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.arrangements.pictures import Arrangement
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.records.trial_names import NOMINAL


class NotedArrangements:
    """Arrangements by trial, in which errors count beside what an output usually varies by, where that is more."""

    def __init__(self, source: SecretSource, book: CaseBook) -> None:
        """Note nothing yet."""
        self._source = source
        self._book = book

    def note(self, trial: str, arrangement: Arrangement | None) -> None:
        """Arrange the inputs of a trial so from now on; None for no such trial."""
        self._book.forget(trial)
        self._source.arrangements.pop(trial, None)
        if arrangement is not None:
            self._source.arrangements[trial] = arrangement
            self._book.least_spreads[trial] = self._usual_spreads

    @functools.cached_property
    def _usual_spreads(self) -> tuple[float, ...]:
        return self._book.case(NOMINAL[0]).spreads  # a large case is made each time it is asked for
