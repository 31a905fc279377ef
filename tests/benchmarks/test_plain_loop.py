"""The sizes of the plain loops: what a GPU can hold."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from ridgeline.tools.machine.devices import detect_device


@pytest.mark.parametrize(("memory_gb", "rows"), [(85, 4096), (150, 8192), (400, 16384), (1, 32)])
def test_a_size_is_halved_until_the_device_has_room_for_it(memory_gb: int, rows: int) -> None:
    assert import_module("plain_loop").fitted(65536, 32768, memory_gb * 10**9) == rows


def test_a_loop_has_as_many_sets_as_the_judge_where_a_tenth_of_the_memory_holds_them() -> None:
    device = replace(detect_device("cpu"), memory_bytes=100 * 2**30)
    sets_beside = import_module("plain_loop").sets_beside
    assert [sets_beside(24, size << 30, device) for size in (1, 2, 50)] == [10, 5, 3]
    assert sets_beside(8, 1 << 30, device) == 8
