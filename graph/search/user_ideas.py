"""The user's own ideas, which the search tries first."""

from __future__ import annotations

from collections.abc import Sequence

from ridgeline.graph.models.requests import Elite, IdeaDraft
from ridgeline.tools.records.search import Idea
from ridgeline.tools.records.vocabulary import Category

CATEGORY_WORDS: dict[Category, tuple[str, ...]] = {
    Category.PRECISION: ("precision", "fp16", "bf16", "tf32", "half", "dtype", "quanti"),
    Category.LATENCY_HIDING: ("async", "prefetch", "latency", "pipeline", "double buffer", "overlap"),
    Category.MEMORY_ACCESS: ("memory", "cache", "register", "load", "store", "coalesc", "stream", "layout", "shared"),
    Category.PARALLELISM: ("thread", "parallel", "occupancy", "warp", "block", "core"),
    Category.CONTROL_FLOW: ("loop", "unroll", "branch", "fuse", "pass", "tile", "tiling"),
}


def user_drafts(texts: Sequence[str], tried: Sequence[Idea], count: int, elites: Sequence[Elite]) -> list[IdeaDraft]:
    """Return at most `count` of the user's ideas that were not tried yet, in the user's order, from the best kernel."""
    done = {idea.mechanism for idea in tried}
    parent_id = elites[0].candidate_id if elites else None
    fresh = [text for text in texts if _mechanism(text) not in done]
    return [
        IdeaDraft(title=_title(text), mechanism=_mechanism(text), category=_category(text), parent_id=parent_id)
        for text in fresh[:count]
    ]


def _mechanism(text: str) -> str:
    return text.strip() if len(text.strip()) >= 10 else f"As the user puts it: {text.strip()}"


def _title(text: str) -> str:
    line = text.strip().splitlines()[0]
    return line[:157] + "..." if len(line) > 160 else line.ljust(3, ".")


def _category(text: str) -> Category:
    lowered = text.lower()
    return next((c for c, found in CATEGORY_WORDS.items() if any(w in lowered for w in found)), Category.COMPUTE)
