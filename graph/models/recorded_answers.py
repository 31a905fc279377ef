"""The answers of a recorded search, found by call, and what that search tried: a replay decides by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.recording.recording import RecordedCall, RecordedMending, Recording, idea_key, place_of
from ridgeline.tools.records.keys import CallId, again_id
from ridgeline.tools.records.recorded import source_hash
from ridgeline.tools.records.vocabulary import Purpose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ridgeline.graph.models.requests import IdeaDraft, Stated


class Answers:
    """The recorded answers of one search."""

    def __init__(self, recording: Recording, *, where: str, is_alone: bool = True, is_strict: bool = False) -> None:
        """`where` names the recording in messages; it `is_alone` where no model answers what was not recorded.

        Where it `is_strict`, a call that was not recorded ends the search.
        """
        self.where, self.is_alone, self.is_strict = where, is_alone, is_strict
        self._calls = {call.call_id: call for call in recording.calls}
        self._points = frozenset(m.source_sha256 for m in recording.measurements if m.purpose is Purpose.TUNE)
        self._by_place: dict[tuple[str, int, str], list[RecordedCall]] = {}
        for call in recording.calls:
            if (place := place_of(call.call_id, call.question)) is not None:
                self._by_place.setdefault(place, []).append(call)

    def find(self, call_id: str, question: Mapping[str, Any] | None) -> RecordedCall | None:
        """Return the recorded call that this one repeats, or None.

        One for a kernel is the one for the same idea, variation and attempt, whatever the idea's number is now: of an idea
        that was tried in several rounds, this round's before others. A recorded one whose idea is not known is found by
        its id.
        """
        found = self._calls.get(call_id)
        place = place_of(call_id, question)
        if place is None or (found is not None and place_of(call_id, found.question) == place):
            return found
        if placed := self._by_place.get(place):
            return next((call for call in placed if _round(call.call_id) == _round(call_id)), placed[0])
        return found if found is not None and found.question is None else None

    def is_asked_again(self, call_id: str) -> bool:
        """Say whether the recorded search asked this call once more, after a reply without a text."""
        return again_id(call_id) in self._calls

    # ---------------------------------------------------------------------------------------- what the search tried

    def may_write(self, call_id: str, idea: Stated) -> bool:
        """Say whether a call for a kernel of this idea gets an answer."""
        return not self.is_alone or self.holds(call_id, idea)

    def holds(self, call_id: str, idea: Stated) -> bool:
        """Say whether the recorded search made this call for a kernel."""
        return self.find(call_id, _question(idea)) is not None

    def mended(self, call_id: str, idea: Stated) -> RecordedMending | None:
        """Return what another branch's edit made of the kernel of this call; None for nothing."""
        found = self.find(call_id, _question(idea))
        return found.mended if found else None

    def holds_kernel_of(self, idea: Stated, round_: int) -> bool:
        """Say whether the recorded search asked for a kernel of this idea in this round."""
        return any(True for _ in self._kernels_of(idea, round_))

    def holds_point(self, source: str) -> bool:
        """Say whether the recorded search measured this source as a point of a sweep."""
        return source_hash(source) in self._points

    def renamed_parents(self, idea: IdeaDraft, round_: int) -> Iterator[tuple[str, str]]:
        """Yield each parent that this round's idea names though the recorded search did not show it, and what stood for it.

        So it is where that search was a replay itself: its answers name kernels of the search before. Which of its own an
        idea started from, its calls for kernels say. Of a name that it left out nothing is yielded, nor where the recording
        does not say what was shown.
        """
        call, shown = next(self._kernels_of(idea, round_), None), self.shown(round_)
        if call is None or call.question is None or not shown:
            return
        for place, name in (("parent", idea.parent_id), ("second_parent", idea.second_parent_id)):
            if name and name not in shown and (stood := call.question.get(place)):
                yield name, str(stood)

    def _kernels_of(self, idea: Stated, round_: int) -> Iterator[RecordedCall]:
        key = idea_key(idea.title, idea.mechanism)
        placed = (call for place, calls in self._by_place.items() if place[0] == key for call in calls)
        return (call for call in placed if _round(call.call_id) == round_)

    def asked_for_more(self, round_: int) -> bool:
        """Say whether the recorded search refused ideas of this round, and asked for others."""
        return any(call_id.further.startswith(":more") for call_id, _ in self._for_ideas(round_))

    def shares(self, round_: int, further: str) -> dict[int, int]:
        """Return of how many ideas each model was asked, by its place; nothing where that was not recorded."""
        asked = ((call_id, call) for call_id, call in self._for_ideas(round_) if call_id.further == further)
        return {call_id.place or 0: int((call.question or {}).get("count") or 0) for call_id, call in asked}

    def writer(self, call_id: str, idea: Stated) -> str | None:
        """Return the model that wrote this kernel; None where it was not recorded."""
        found = self.find(call_id, _question(idea))
        return found.model if found else None

    def shown(self, round_: int) -> frozenset[str]:
        """Return the kernels that the recorded search showed when it asked for this round's ideas."""
        questions = (call.question or {} for _, call in self._for_ideas(round_))
        return frozenset(str(elite) for question in questions for elite in question.get("elites", ()))

    def _for_ideas(self, round_: int) -> Iterator[tuple[CallId, RecordedCall]]:
        for call in self._calls.values():
            call_id = CallId.read(call.call_id)
            if call_id is not None and call_id.asks_for_ideas and call_id.round == round_:
                yield call_id, call


def _question(idea: Stated) -> dict[str, Any]:
    return {"idea": idea_key(idea.title, idea.mechanism)}


def _round(call_id: str) -> int | None:
    read = CallId.read(call_id)
    return read.round if read else None
