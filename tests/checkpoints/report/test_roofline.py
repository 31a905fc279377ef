"""The roofline: where its ceilings, its floor and a kernel's mark lie, and when there is none."""

from __future__ import annotations

import dataclasses
import math
import re
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
from tests.checkpoints.conftest import EAGER_MS

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report.charts import roofline_chart
from ridgeline.checkpoints.report.figures import ms_text
from ridgeline.checkpoints.report.roofline import HEIGHT, WIDTH, Mark, ceilings_of, roofline
from ridgeline.checkpoints.report.search_records import SearchRecords


def test_the_floor_is_where_the_roof_meets_the_problem_s_intensity(story: SimpleNamespace) -> None:
    floor, description = story.baselines().floor, story.description()
    found = ceilings_of(floor, description)
    assert found is not None
    assert found.intensity == pytest.approx(description.flops / description.compulsory_bytes)
    assert found.gbps == pytest.approx(description.compulsory_bytes / floor.floor_ms / 1e6)
    assert description.flops / found.floor_ms / 1e6 == pytest.approx(found.roof(found.intensity))


def test_a_kernel_at_the_floor_lies_on_the_roof_and_a_slower_one_below(story: SimpleNamespace) -> None:
    found = ceilings_of(story.baselines().floor, story.description())
    assert found is not None
    marks = [Mark(ms=found.floor_ms * n, label="<&>", css="dot") for n in (1, 2, 1000)]
    root = ET.fromstring(roofline(found, marks))
    heights = [float(c.attrib["cy"]) for c in root.findall("circle")]
    roof = next(path for path in root.findall("path") if path.attrib["class"] == "roof")
    assert heights == sorted(heights)
    assert float(roof.attrib["d"].split(",")[1].split("l")[0]) == pytest.approx(heights[0] - 6, abs=0.2)
    assert all(
        0 <= float(c.attrib["cx"]) <= WIDTH and 0 <= y <= HEIGHT
        for c, y in zip(root, heights, strict=False)
        if c.tag == "circle"
    )
    assert root.findall("circle")[0].findtext("title") == "<&>"


def test_an_interval_is_a_line_through_its_mark(story: SimpleNamespace) -> None:
    found = ceilings_of(story.baselines().floor, story.description())
    assert found is not None
    root = ET.fromstring(roofline(found, [Mark(ms=1.0, label="k", css="dot", interval_ms=(0.8, 1.3))]))
    (line,) = [each for each in root.findall("line") if each.attrib["class"] == "whisker"]
    (circle,) = root.findall("circle")
    assert line.attrib["x1"] == circle.attrib["cx"]
    assert float(line.attrib["y1"]) < float(circle.attrib["cy"]) < float(line.attrib["y2"])


@pytest.mark.parametrize(
    "change", [{"floor_ms": 0.0}, {"gflops": 0.0}, {"compute_floor_ms": 0.0}, {"floor_ms": math.inf}]
)
def test_without_a_ceiling_there_is_no_picture(story: SimpleNamespace, change: dict[str, float]) -> None:
    floor = dataclasses.replace(story.baselines().floor, **change)
    assert ceilings_of(floor, story.description()) is None


def test_without_operations_there_is_no_picture(story: SimpleNamespace) -> None:
    assert ceilings_of(story.baselines().floor, dataclasses.replace(story.description(), flops=0)) is None


def test_a_mark_tells_the_kernel_s_own_time_and_where_else_it_is_drawn(filled: Archive) -> None:
    [best, *_] = filled.ranking()
    assert best.timing and best.timing.median_ms and best.speedup
    for by, is_elsewhere in ((1.0, False), (2.0, True)):
        timing = dataclasses.replace(best.timing, median_ms=by * EAGER_MS / best.speedup)
        filled.add_evaluation(dataclasses.replace(best, timing=timing))
        chart, _ = roofline_chart(SearchRecords.read(filled), None)
        [told] = [
            each for each in re.findall("<title>(.*?)</title>", chart) if each.startswith(f"{best.candidate_id}: ")
        ]
        own = f"{best.candidate_id}: {ms_text(timing.median_ms)}, {best.speedup:.2f}x ("
        drawn = f"); drawn at {ms_text(EAGER_MS / best.speedup)}, where eager PyTorch takes what it took by itself"
        assert told.startswith(own) and told.endswith(drawn) is is_elsewhere and ("drawn" in told) is is_elsewhere
