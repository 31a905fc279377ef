from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

from ridgeline.checkpoints.report.plots import HEIGHT, WIDTH, Dot, Line, bars, trajectory


def test_the_chart_is_xml_whose_marks_lie_inside_it() -> None:
    dots = [Dot(round=n % 9, speedup=s, label='<&">') for n, s in enumerate([0.0001, 0.5, 1.0, 2.0, 400.0, None])]
    lines = [Line(speedup=1.0, label="eager"), Line(speedup=1.001, label="a <b>"), Line(speedup=30.0, label="floor")]
    root = ET.fromstring(trajectory(dots, lines, [(0, 0.5), (1, 2.0), (4, 400.0)]))
    circles = root.findall("circle")
    assert len(circles) == 5
    assert all(0 <= float(c.attrib["cx"]) <= WIDTH and 0 <= float(c.attrib["cy"]) <= HEIGHT for c in circles)
    labels = [float(t.attrib["y"]) for t in root.findall("text") if "label" in t.attrib["class"]]
    assert len(labels) == 4
    assert min(b - a for a, b in pairwise(sorted(labels))) >= 17 - 0.11


def test_an_empty_chart_is_still_a_chart() -> None:
    assert ET.fromstring(trajectory([], [], [])).tag == "svg"
    assert ET.fromstring(bars([])).tag == "svg"


def test_bars_show_their_numbers() -> None:
    root = ET.fromstring(bars([("ok", 27, "ok"), ("wrong <", 3, "bad")]))
    assert [t.text for t in root.findall("text")] == ["ok", "27", "wrong <", "3"]


def test_a_dot_s_interval_is_a_line_through_it_that_stays_in_the_plot() -> None:
    dots = [Dot(round=1, speedup=2.0, label="k", interval=(1.0, 400.0)), Dot(round=1, speedup=1.5, label="none")]
    root = ET.fromstring(trajectory(dots, [], []))
    (line,) = [each for each in root.findall("line") if each.attrib["class"] == "whisker"]
    circle = root.findall("circle")[0]
    assert line.attrib["x1"] == line.attrib["x2"] == circle.attrib["cx"]
    low, high = float(line.attrib["y1"]), float(line.attrib["y2"])
    assert HEIGHT > low > float(circle.attrib["cy"]) > high > 0
