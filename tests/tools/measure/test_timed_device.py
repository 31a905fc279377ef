"""The kinds of device as a timing sees them."""

import pytest

from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.runner.worker.device import DEVICES


@pytest.mark.parametrize("kind", DeviceKind)
def test_every_kind_of_device_can_be_timed(kind: DeviceKind) -> None:
    assert TIMED_DEVICES[kind].empty_blocks.source.is_file()


@pytest.mark.parametrize("kind", DeviceKind)
def test_a_runner_notes_its_outputs_where_the_parent_reads_them(kind: DeviceKind) -> None:
    assert DEVICES[kind].is_read_from_outside is not TIMED_DEVICES[kind].collects
