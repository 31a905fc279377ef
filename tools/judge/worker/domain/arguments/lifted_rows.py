"""Rows that are outliers as a whole, where single ones leave nothing that is a number: a logarithm of a softmax, say.

Beside one number of 200 the exponentials of all others of its row are 0. Where the whole row is lifted, none is, and a
kernel that leaves out the maximum is not finite all the same.
"""

from __future__ import annotations

from ridgeline.tools.judge.worker.domain.conditioning import ROOM, are_within, room_of
from ridgeline.tools.judge.worker.domain.objections import Objection
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.values.transforms import has_rows_to_lift
from ridgeline.tools.records.trial_names import OUTLIERS
from ridgeline.tools.records.vocabulary import PrecisionClass


def settle_lifted_rows(source: SecretSource, book: CaseBook, objection: Objection) -> bool:
    """Note in the secret source how much is lifted as a whole, and return whether the reference takes any of it.

    Rows are, else all but the first dimension, else the whole: a softmax along whatever dimension has all of its numbers
    lifted alike then.
    """
    inputs = source.nominal(OUTLIERS)
    most = max((inputs[i].dim() for i in source.may_be_larger if has_rows_to_lift(inputs[i])), default=0)
    for dims in sorted({1, most - 1, most} - {0, -1}) if most else ():
        source.lifted_dims = dims
        book.forget(OUTLIERS)
        if not objection(OUTLIERS, f"{OUTLIERS}, {dims} dimensions lifted") and _is_exact(book):
            return True
    source.lifted_dims = 0
    book.forget(OUTLIERS)
    return False


def _is_exact(book: CaseBook) -> bool:
    """Return whether the reference's own type is nearly as good as float64: a variance of lifted numbers loses bits."""
    case = book.case(OUTLIERS)
    room = (room_of(PrecisionClass.FP32, ROOM),) * len(case.expected)
    return are_within(case.own.get(PrecisionClass.FP32), room, 1.0)
