"""A profile in one paragraph: what limits the kernel, its longest stage, and what in the code to change."""

from __future__ import annotations

from collections.abc import Sequence

from ridgeline.tools.profile.stage_clocks import StageClocks
from ridgeline.tools.records.results import OwnWork, StageTime

MOST_NOTES = 6
MOST_STAGES_TOLD = 5
LEFT_TOLD = 0.02
"""Share of a call from which the time outside its stages is told: code before the first one, and waiting threads."""
SLOWED_BY = 1.25
"""A build with clocks that takes longer than this factor is not the kernel that was timed."""


def paragraph(
    reached: Sequence[str], clocks: StageClocks, notes: Sequence[str], own_work: OwnWork | None, median_ms: float | None
) -> str:
    """Return all of it as sentences; `notes` are in the order of what they promise, and the first few are taken."""
    stages = [stage_words(clocks, median_ms)] if clocks.stages else []
    borrowed = own_work.others if own_work else ()
    names = ", ".join(map(_quoted, borrowed[:3]))
    others = [f"part of its work is not its own: {names}"] if borrowed else []
    return " ".join(_sentence(text) for text in (*reached, *stages, *others, *notes[:MOST_NOTES]))


def _quoted(name: str) -> str:
    """Return a file's or a function's name as one: the candidate may have chosen it, and a model reads it."""
    return f"`{name.replace('`', ' ')}`"


def stage_words(clocks: StageClocks, median_ms: float | None) -> str:
    """Return the shares of the stages, the largest first, and what the clocks themselves cost where that is much."""
    largest = sorted(clocks.stages, key=lambda stage: stage.share, reverse=True)
    scale = median_ms / clocks.call_ms if clocks.call_ms and median_ms else 1.0  # the clocks ran at another speed
    told = ", ".join(_stage(stage, scale) for stage in largest[:MOST_STAGES_TOLD])
    rest = len(largest) - MOST_STAGES_TOLD
    more = f" and {rest} shorter ones" if rest > 0 else ""
    slowed = clocks.call_ms / median_ms if clocks.call_ms and median_ms else 1.0
    doubt = (
        f" (with clocks a call takes {slowed:.2g} x as long, so trust their order only)" if slowed > SLOWED_BY else ""
    )
    outside = (median_ms or 0.0) - scale * sum(stage.ms for stage in clocks.stages)
    left = f", in none of them {outside:.3g} ms" if outside > LEFT_TOLD * (median_ms or 0.0) else ""
    return f"its stages: {told}{more}{left}{doubt}"


def _stage(stage: StageTime, scale: float) -> str:
    return f"{stage.name} {stage.share:.0%} ({stage.ms * scale:.3g} ms)"


def _sentence(text: str) -> str:
    """Return a note with a capital letter and a full stop; a name in front of a colon stays as it is."""
    first = text.split(" ", 1)[0]
    is_name = "_" in first or first.endswith(":")
    return f"{text if is_name else text[:1].upper() + text[1:]}."
