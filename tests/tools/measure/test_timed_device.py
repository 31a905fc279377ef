"""The kinds of device as a timing sees them."""

import pytest

from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.records.vocabulary import DeviceKind


@pytest.mark.parametrize("kind", DeviceKind)
def test_every_kind_of_device_can_be_timed(kind: DeviceKind) -> None:
    assert TIMED_DEVICES[kind].empty_blocks.source.is_file()
