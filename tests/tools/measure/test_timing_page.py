"""The figures of docs/timing.md that the code decides."""

from __future__ import annotations

from pathlib import Path

from ridgeline.tools.measure.changing_blocks import BLOCK_PARTS, LONG_BLOCK_S, LONG_BLOCK_TRIES, TRIES


def test_the_page_says_how_many_blocks_are_tried() -> None:
    page = " ".join((Path(__file__).parents[3] / "docs" / "timing.md").read_text(encoding="utf-8").split())
    ways = 2 * BLOCK_PARTS
    assert f"{ways * TRIES} at most, {ways * LONG_BLOCK_TRIES} where a block takes more than {LONG_BLOCK_S:g} s" in page
