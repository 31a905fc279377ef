"""What pictures are drawn of: where values and labels lie, and that words stay text."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from ridgeline.checkpoints.report.svg import LogScale, circle, labels, picture, spread, text


def test_twice_and_half_lie_equally_far_from_one_and_what_lies_outside_on_the_edge() -> None:
    scale = LogScale(low=0.25, high=4.0, begin=100.0, end=20.0)
    assert [scale.at(value) for value in (0.25, 0.5, 1.0, 2.0, 4.0)] == pytest.approx([100, 80, 60, 40, 20])
    assert (scale.at(0.01), scale.at(100.0)) == (100.0, 20.0)


def test_words_stay_text_wherever_they_stand() -> None:
    hostile = '"><script>'
    body = [text(1, 2, hostile, "tick"), circle(1, 2, 3.0, "dot", hostile), *labels(10, [(5.0, hostile, "label")])]
    root = ET.fromstring(picture(20, 10, hostile, body))
    assert root.attrib["aria-label"] == hostile and not list(root.iter("script"))
    assert [each.text for each in root.iter() if each.text] == [hostile] * 3


def test_labels_are_spread_until_none_overlaps_and_keep_their_order() -> None:
    wanted = [100.0, 101.0, 102.0, 300.0, 50.0, 99.0]
    placed = spread(wanted, gap=17)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    along = [placed[i] for i in order]
    assert all(b - a >= 17 - 1e-9 for a, b in pairwise(along))
    assert placed[3] == 300.0
    assert spread([]) == []
