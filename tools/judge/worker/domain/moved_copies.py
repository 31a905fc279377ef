"""The inputs that the trial `moved_copy` makes copies of others: all that may be one, or those that the reference takes."""

from __future__ import annotations

from collections.abc import Sequence

from ridgeline.tools.judge.worker.domain.halving import settle_by_halves
from ridgeline.tools.judge.worker.domain.objections import Objection
from ridgeline.tools.judge.worker.grading.cases import CaseBook
from ridgeline.tools.judge.worker.inputs.moved_copies import first_of_each_copy
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.records.trial_names import MOVED_COPY


def settle_copies(source: SecretSource, book: CaseBook, names: tuple[str, ...], objection: Objection) -> dict[str, str]:
    """Note the copies in the secret source; return the inputs that stay as they are, by `moved_copy NAME` with the reason."""
    free = [i for i in range(len(names)) if source.ways.may_change(i)]
    firsts = first_of_each_copy(source.nominal(MOVED_COPY), source.ways.forms, free)

    def note(chosen: frozenset[int]) -> None:
        book.forget(MOVED_COPY)
        source.copied = {i: first for i, first in firsts.items() if i in chosen}

    def objection_to(asked: Sequence[int], taken: frozenset[int]) -> str:
        named = ", ".join(names[i] for i in asked)
        return objection(MOVED_COPY, f"{MOVED_COPY} {named}, beside {len(taken)}")

    refused = settle_by_halves(tuple(firsts), note=note, objection_to=objection_to)
    return {f"{MOVED_COPY} {names[i]}": why for i, why in refused.items()}
