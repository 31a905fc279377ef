"""The inputs, or rows, that the trial `moved_copy` makes copies of others: all that may be, or what the reference takes."""

from __future__ import annotations

import functools

from ridgeline.tools.judge.worker.domain.arguments.meeting_rows import do_rows_meet
from ridgeline.tools.judge.worker.domain.halving import settle_inputs
from ridgeline.tools.judge.worker.domain.objections import Objection, Tried
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.arrangements.moved_copies import first_of_each_copy, may_copy_rows, with_copies
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import MOVED_COPY

_APART = "its rows do not meet"


def settle_copies(
    source: SecretSource, book: CaseBook, reference: Reference, objection: Objection, tried: Tried
) -> dict[str, str]:
    """Note the copies in the secret source; return the inputs that stay as they are, by `moved_copy NAME` with the reason.

    An input that is neither a copy nor has one is its own first where its rows meet: some are copies of the others.
    """
    names = reference.input_names
    free = [i for i in range(len(names)) if source.ways.may_change(i)]
    inputs, forms = source.nominal(MOVED_COPY), source.ways.forms
    firsts = first_of_each_copy(inputs, forms, free)
    alone = set(free).difference(firsts, firsts.values())

    def do_meet(index: int) -> bool:
        what = f"{MOVED_COPY}, rows of {names[index]}"
        return not tried(what, lambda: "" if do_rows_meet(index, source, book, reference) else _APART)

    firsts |= {i: i for i in filter(do_meet, may_copy_rows(inputs, forms, alone))}

    def note(chosen: frozenset[int]) -> None:
        book.forget(MOVED_COPY)
        source.arrangements.pop(MOVED_COPY, None)
        if chosen:
            copied = {i: first for i, first in firsts.items() if i in chosen}
            source.arrangements[MOVED_COPY] = functools.partial(with_copies, firsts=copied)

    return settle_inputs(MOVED_COPY, tuple(firsts), names, note=note, objection=objection)
