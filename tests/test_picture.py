"""The README's pictures are drawn by the live view and by the report themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

from ridgeline.checkpoints.archive import Archive
from tests.checkpoints.conftest import fill

ROOT = Path(__file__).parents[1]


def test_a_moment_of_a_recorded_search_is_drawn_as_the_live_view_shows_it(tmp_path: Path) -> None:
    started = {"event": "round_started", "max_rounds": 3, "ideas": 1, "branches": 1}
    events = [{"at_s": at_s, "round": number} | started for number, at_s in ((1, 5.0), (2, 60.0))]
    (tmp_path / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    command = [sys.executable, ROOT / "docs" / "pictures" / "record.py", "draw", tmp_path / "events.jsonl"]
    subprocess.run([*command, tmp_path / "live.svg", "--at", "42"], check=True, env={"PYTHONPATH": str(ROOT / "src")})
    drawn = (tmp_path / "live.svg").read_text().replace("&#160;", " ")
    assert "round 1 of 3" in drawn and "42s" in drawn
    assert "round 2 of 3" not in drawn and "http://www.w3.org/2000/svg" in drawn and "font-face" not in drawn


def test_a_runs_report_is_drawn_with_its_own_chart_and_colours(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "run" / "archive.sqlite") as archive:
        fill(archive)
    command = [sys.executable, ROOT / "docs" / "pictures" / "record.py", "report", tmp_path / "run"]
    subprocess.run([*command, tmp_path / "report.svg"], check=True, env={"PYTHONPATH": str(ROOT / "src")})
    drawn = ET.parse(tmp_path / "report.svg").getroot()
    text = " ".join(drawn.itertext())
    assert "as fast as eager PyTorch" in text and "speedup over eager, log scale" in text
    assert "prefers-color-scheme: dark" in text and "svg .tick" in text
    css = {name for each in drawn.iter() for name in each.get("class", "").split()}
    assert {"page", "figure", "best", "dot", "whisker", "failed", "tick"} <= css
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}svg")) == 1
