"""How many sets a measurement rotates over, and how much memory that is."""

from pathlib import Path

import pytest

from ridgeline.tools.judge.set_count import MAX_SETS, MIN_SETS, ROOM, count_sets, rotating_bytes, stay_in_cache
from ridgeline.tools.records.vocabulary import DeviceKind

MACHINE = {"kind": DeviceKind.CPU, "cache_bytes": 32 << 20, "memory_bytes": 64 << 30}


@pytest.mark.parametrize(
    ("set_bytes", "total"),
    [(1 << 20, 65 << 20), (1 << 10, 512 << 10), (8 << 20, 192 << 20), (1 << 30, 3 << 30)],
    ids=["usual", "tiny", "few", "huge"],
)
def test_rotating_total_is_that_of_the_sets(set_bytes: int, total: int) -> None:
    assert rotating_bytes(set_bytes, **MACHINE) == total
    assert count_sets(set_bytes, **MACHINE) * set_bytes == total


@pytest.mark.parametrize(("set_bytes", "stays"), [(20_000, True), (240_000, True), (250_000, False), (1 << 30, False)])
def test_sets_of_a_gpu_that_are_too_small_to_push_each_other_out_are_told(set_bytes: int, *, stays: bool) -> None:
    gpu = {"cache_bytes": 60 << 20, "memory_bytes": 140 << 30}
    n_sets = count_sets(set_bytes, kind=DeviceKind.CUDA, **gpu)
    assert stay_in_cache(n_sets, set_bytes, cache_bytes=gpu["cache_bytes"]) is stays


def test_the_page_gives_the_fewest_and_the_most_sets() -> None:
    page = (Path(__file__).parents[3] / "docs" / "timing.md").read_text(encoding="utf-8")
    usual = ROOM[DeviceKind.CPU].usual
    assert f"| CPU | {MIN_SETS} to {MAX_SETS}, at least {usual} where they fit |" in page
    assert f"| GPU | {MIN_SETS} to {MAX_SETS}, as many as fit |" in page
