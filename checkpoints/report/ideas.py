"""The rows of report.html's table of ideas: predicted and measured gain, what is proven of it, what the idea took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ridgeline.checkpoints.history.gains import Gain
from ridgeline.checkpoints.history.idea_results import IdeaResult
from ridgeline.checkpoints.history.spending import Spent
from ridgeline.checkpoints.report.wording import PROOF_CSS, PROOF_MARKS, author_words, proof_words
from ridgeline.tools.records.vocabulary import IdeaOutcome

IDEAS = 400
"""Ideas with a row; the earliest of a longer search are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdeaRow:
    """One idea as the page shows it."""

    result: IdeaResult
    by: str
    spent: Spent
    gain: Gain | None  # over the parent, over eager PyTorch where it has none
    over: str  # "its parent" or "eager"
    verdict: str
    mark: str
    css: str

    @property
    def writers(self) -> str:
        """Return who wrote its kernels, where that is not its author alone; else ""."""
        others = [author_words(model) for model in self.spent.writers]
        return ", ".join(others) if others and others != [self.by] else ""


def idea_rows(results: Sequence[IdeaResult], spent: Mapping[str, Spent]) -> tuple[list[IdeaRow], int]:
    """Return the rows of the last IDEAS ideas, in the order in which they came, and how many are left out."""
    shown = results[-IDEAS:]
    return [_row(result, spent.get(result.idea.id) or Spent()) for result in shown], len(results) - len(shown)


def _row(result: IdeaResult, spent: Spent) -> IdeaRow:
    verdict, mark, css = _verdict(result)
    return IdeaRow(
        result=result,
        by=author_words(result.idea.model),
        spent=spent,
        gain=result.proven,
        over="its parent" if result.idea.parent_id else "eager",
        verdict=verdict,
        mark=mark,
        css=css,
    )


def _verdict(result: IdeaResult) -> tuple[str, str, str]:
    """Return what came of an idea in words, as a mark, and the class of its cell.

    Green is a gain that its interval proves, over the parent where there is one: a figure alone proves none.
    """
    if result.proven is not None:
        proof = result.proven.proof
        return proof_words(result.proven), PROOF_MARKS[proof], PROOF_CSS[proof]
    if result.best is not None:
        return "its parent has no time", "≈", "open"
    if result.outcome is IdeaOutcome.IMPLEMENTATION_FAILED:
        return "no right kernel", "✕", "lost"
    return ("no verdict", "✕", "open") if result.is_unjudged else ("not judged yet", "…", "open")


def tally(rows: Sequence[IdeaRow]) -> dict[str, int]:
    """Return how many of the ideas with a row came to what, in the words of the rows, most of them first."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    return dict(sorted(counts.items(), key=lambda entry: -entry[1]))
