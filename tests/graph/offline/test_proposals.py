"""The order of proposals, and the gains that they promise."""

import pytest
from tests.graph.offline.subjects import BASELINES

from ridgeline.graph.offline.proposals import within_roofline


@pytest.mark.parametrize(("gain", "promised"), [(0.9, 1.0), (1.234, 1.23), (50.0, 30.0)])
def test_a_gain_stays_between_one_and_the_roofline(gain, promised):
    assert within_roofline(gain, BASELINES) == promised
