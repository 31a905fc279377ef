"""The user's own ideas, which the search tries first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ridgeline.checkpoints.steering import Steering, SteerKind, mechanism_of
from ridgeline.graph.models.requests import Elite, IdeaDraft
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.search import Idea
from ridgeline.tools.records.vocabulary import Category

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext

CATEGORY_WORDS: dict[Category, tuple[str, ...]] = {
    Category.PRECISION: ("precision", "fp16", "bf16", "tf32", "half", "dtype", "quanti"),
    Category.LATENCY_HIDING: ("async", "prefetch", "latency", "pipeline", "double buffer", "overlap"),
    Category.MEMORY_ACCESS: ("memory", "cache", "register", "load", "store", "coalesc", "stream", "layout", "shared"),
    Category.PARALLELISM: ("thread", "parallel", "occupancy", "warp", "block", "core"),
    Category.CONTROL_FLOW: ("loop", "unroll", "branch", "fuse", "pass", "tile", "tiling"),
}


async def users_ideas(context: SearchContext, round_: int) -> tuple[str, ...]:
    """Return the user's words: those told since the search began, then those of the problem's file."""
    told = await run_whole(Steering(context.archive).told, SteerKind.IDEA, upto_round=round_)
    return (*(steer.text for steer in told), *context.problem.ideas)


def user_draft(text: str, parent_id: str | None = None) -> IdeaDraft:
    """Return a user's words as an idea.

    Raises:
        ValidationError: no idea can be made of them.
    """
    return IdeaDraft(title=title_of(text), mechanism=mechanism_of(text), category=_category(text), parent_id=parent_id)


def user_drafts(texts: Sequence[str], tried: Sequence[Idea], count: int, elites: Sequence[Elite]) -> list[IdeaDraft]:
    """Return at most `count` of the user's ideas that were not tried yet, in the user's order, from the best kernel.

    One that the problem's file states and that was told once more is one idea.
    """
    done = {idea.mechanism for idea in tried}
    parent_id = elites[0].candidate_id if elites else None
    stated: dict[str, str] = {}
    for text in texts:
        stated.setdefault(mechanism_of(text), text)
    fresh = [text for mechanism, text in stated.items() if mechanism not in done]
    return [user_draft(text, parent_id) for text in fresh[:count]]


def title_of(text: str) -> str:
    """Return the title of an idea of these words: the first line, cut."""
    line = text.strip().splitlines()[0]
    return line[:157] + "..." if len(line) > 160 else line.ljust(3, ".")


def _category(text: str) -> Category:
    lowered = text.lower()
    return next((c for c, found in CATEGORY_WORDS.items() if any(w in lowered for w in found)), Category.COMPUTE)
