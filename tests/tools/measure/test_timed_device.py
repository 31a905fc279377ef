"""The kinds of device as a timing sees them."""

import os

import pytest

from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.records.vocabulary import DeviceKind


@pytest.mark.parametrize("kind", DeviceKind)
def test_every_kind_of_device_can_be_timed(kind: DeviceKind) -> None:
    device = TIMED_DEVICES[kind]
    assert device.empty_blocks.source.is_file()
    before_s = device.collection.spent_s(os.getpid())
    assert device.collection.spent_s(os.getpid()) >= before_s


def test_the_slowest_blocks_are_dropped_where_a_clock_decides() -> None:
    blocks_s = [9.0, *[1.0] * 7]
    assert TIMED_DEVICES[DeviceKind.CPU].collection.counted(blocks_s) == sorted(blocks_s)
    assert TIMED_DEVICES[DeviceKind.CUDA].collection.counted(blocks_s) == [1.0] * 7
