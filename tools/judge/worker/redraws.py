"""Further secrets for the trials, and which trials candidates have met since the last one."""

from __future__ import annotations

import os
from collections.abc import Callable

from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource

_REDRAWS = 4
"""Secrets that are drawn for a trial until the reference takes it; the last one is the first, under which it took the trial."""


class Redraws:
    """Lets trials and timed sets be drawn from other secrets."""

    def __init__(
        self,
        first_secret: bytes,
        source: SecretSource,
        book: CaseBook,
        *,
        objection: Callable[[str], str],
        before: Callable[[], None],
        has_room: bool = True,
    ) -> None:
        """Draw nothing yet.

        Args:
            first_secret: that of the source now.
            source: what inputs and parameters are drawn from.
            book: makes the trials.
            objection: returns why the reference refuses a trial as it is drawn now, "" where it takes it.
            before: is called before each draw.
            has_room: another draw of a trial fits beside runners; where it does not, a trial comes again as it was met.
        """
        self._first_secret = self._secret = first_secret
        self._source = source
        self._book = book
        self._objection = objection
        self._before = before
        self._has_room = has_room
        self._is_redrawn = False
        self._met: set[str] = set()
        self._take_back: Callable[[], None] | None = None

    def draw_from(self, secret: bytes) -> None:
        """Draw from this secret from now on."""
        self._before()
        self.resume()
        self._draw_from(secret)
        self._met.clear()
        self._is_redrawn = True

    def _draw_from(self, secret: bytes) -> None:
        self._secret = secret
        self._source.draw_from(secret)
        self._book.forget_all()

    def meet(self, trial: str, *, settles: bool) -> None:
        """Keep in mind that a candidate meets a trial as it is drawn now, or once the reference takes it."""
        self.resume()
        if settles and self._is_redrawn:
            self._settle(trial)
        self._met.add(trial)

    def _settle(self, trial: str) -> None:
        """Draw again while the reference refuses a trial under this secret; at last from the first, under which it took it."""
        for secret in [os.urandom(16) for _ in range(_REDRAWS - 1)] + [self._first_secret]:
            if not self._objection(trial):
                return
            self._before()
            self._draw_from(secret)

    def draw_unmet(self, trial: str) -> None:
        """Draw a trial that no candidate has met as it is drawn then, until `resume`: its outputs may be kept by its inputs.

        Whether the reference takes it is asked beside two runners that hold outputs of their own.
        """
        self.resume()
        if trial not in self._met:
            self.meet(trial, settles=True)
            return
        if not self._has_room:
            return
        secret, take_back = self._secret, self._book.set_aside()

        def resume() -> None:
            self._secret = secret
            self._source.draw_from(secret)
            take_back()

        self._take_back = resume
        self._draw_from(os.urandom(16))
        self._settle(trial)

    def resume(self) -> None:
        """Draw as before `draw_unmet` again, with the cases that were known then."""
        if self._take_back is not None:
            self._take_back()
            self._take_back = None
