"""The trials of SILENT whose inputs are faint, not zero, beyond a part: those in which zeros hide a state that lasts.

What is read by a query, a gate or a later input is zero beside zeros. Beside small ones it is as small as these, and a row of
its own shows what was left out of the state.
"""

from __future__ import annotations

from ridgeline.tools.judge.worker.domain.objections import Tried
from ridgeline.tools.judge.worker.domain.sizes.first_parts import FirstParts
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.records.trial_names import EARLY, SILENT

_LEAST = 1 / 64
"""Part of an output's rows that have to show the part beside faint inputs, and not beside zeros."""


def find_faint_trials(source: SecretSource, book: CaseBook, parts: FirstParts, tried: Tried) -> None:
    """Note in the secret source in which trials of SILENT inputs are faint."""
    source.faint.clear()
    if not source.may_be_larger:
        return
    for trial in SILENT:

        def look(trial: str = trial) -> str:
            with book.usual_parameters():
                if _shows_more(parts, is_late=trial not in EARLY):
                    source.faint.add(trial)
            return ""

        tried(f"{trial}, faint", look)


def _shows_more(parts: FirstParts, *, is_late: bool) -> bool:
    beside_zeros = parts.beside_zeros(is_late=is_late)
    if beside_zeros is None or not beside_zeros.leaves_places:
        return False
    faint = parts.beside(parts.zeros, is_late=is_late, is_faint=True)
    return faint is not None and faint.rows_shown - beside_zeros.rows_shown >= _LEAST
