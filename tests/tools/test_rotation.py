"""How many sets a measurement rotates over, and how much memory that is."""

import pytest

from ridgeline.tools.rotation import count_sets, rotating_bytes

MACHINE = {"cache_bytes": 32 << 20, "memory_bytes": 64 << 30}


@pytest.mark.parametrize(
    ("set_bytes", "total"),
    [(1 << 20, 65 << 20), (1 << 10, 512 << 10), (8 << 20, 192 << 20), (1 << 30, 3 << 30)],
    ids=["usual", "tiny", "few", "huge"],
)
def test_rotating_total_is_that_of_the_sets(set_bytes: int, total: int) -> None:
    assert rotating_bytes(set_bytes, **MACHINE) == total
    assert count_sets(set_bytes, **MACHINE) * set_bytes == total
