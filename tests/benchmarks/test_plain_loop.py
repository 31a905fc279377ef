"""The sizes of the plain loops: what a GPU can hold."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize(("memory_gb", "rows"), [(85, 8192), (150, 16384), (400, 32768), (1, 64)])
def test_a_size_is_halved_until_the_device_has_room_for_it(memory_gb: int, rows: int) -> None:
    assert import_module("plain_loop").fitted(65536, 32768, memory_gb * 10**9) == rows
