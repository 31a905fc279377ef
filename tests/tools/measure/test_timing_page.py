"""The figures of docs/timing.md that the code decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgeline.tools.measure.changing_blocks import BLOCK_PARTS, CERTAIN_BLOCK_S, LONG_BLOCK_TRIES, TRIES
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.vocabulary import DeviceKind, Purpose

PAGE = " ".join((Path(__file__).parents[3] / "docs" / "timing.md").read_text(encoding="utf-8").split())


def test_the_page_says_how_many_blocks_are_tried() -> None:
    ways = 2 * BLOCK_PARTS
    assert (
        f"{ways * TRIES} at most, {ways * LONG_BLOCK_TRIES} where a block takes more than {CERTAIN_BLOCK_S:g} s" in PAGE
    )


@pytest.mark.parametrize(
    ("purpose", "words"),
    [
        (Purpose.SEARCH, "search, tune, and comparisons of two kernels there"),
        (Purpose.EVALUATE, "evaluate"),
        (Purpose.CERTIFY, "certify, and comparisons of two kernels there"),
    ],
)
def test_the_page_says_how_long_each_purpose_goes_on(purpose: Purpose, words: str) -> None:
    gpu, cpu = (TimingSettings.for_purpose(purpose, kind) for kind in (DeviceKind.CUDA, DeviceKind.CPU))
    rule, alike, pairs = gpu.rule, gpu.block_s == cpu.block_s, f"{gpu.rule.smallest} to {gpu.rule.largest}"
    blocks = f"{1e3 * gpu.block_s:g} ms" + ("" if alike else f" on a GPU, {1e3 * cpu.block_s:g} ms on a CPU")
    row = f"| {words} | {pairs} | {rule.time_s:g} s | {rule.patience_s:g} s | {blocks} | {gpu.checks} |"
    assert row in PAGE
