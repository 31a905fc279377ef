"""The table of ideas: green is a proven gain over the parent, and no figure is called a gain beside "no proven gain"."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

from tests.checkpoints.report.reading import Element, read_page

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.report.ideas import IDEAS
from ridgeline.checkpoints.report.page import render_report
from ridgeline.checkpoints.result import build_result
from ridgeline.tools.errors import MachineBusyError
from ridgeline.tools.records.vocabulary import Purpose


def rows(archive: Archive) -> dict[str, Element]:
    page = read_page(render_report(archive, build_result(archive), state_words="finished"))
    (table,) = page.find("table", class_="ideas")
    return {cells[0].text: row for row in table.find("tr") if (cells := row.find("td")) and len(cells) > 1}


def cell(row: Element, name: str) -> Element:
    return row.find("td", data_name=name)[0]


def test_an_idea_is_green_only_where_it_beat_its_parent_beyond_the_interval(filled: Archive) -> None:
    found = rows(filled)
    green = {name for name, row in found.items() if cell(row, "measured").find("span", class_="won")}
    assert green == {"r1i2", "r2i1", "r2i2", "r3i1", "r4i1"}  # of the 12 whose best kernel is faster than eager
    for name, row in found.items():
        words = cell(row, "measured").text
        assert ("▲ faster" in words) is (name in green)


def test_a_gain_that_its_interval_leaves_open_is_not_called_one(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_ideas(
        [story.idea(1, 1, "Tie", None), story.idea(2, 1, "Slightly", "r1i1v0a0"), story.idea(2, 2, "Far", None)]
    )
    for name, idea, parent, speedup in (("r1i1v0a0", "r1i1", None, 2.0), ("r2i1v0a0", "r2i1", "r1i1v0a0", 2.04)):
        archive.add_candidate(story.candidate(name, idea_id=idea, parent_id=parent))
        archive.add_evaluation(story.ok(name, speedup))
    row = rows(archive)["r2i1"]
    assert "1.02×" in row.text and "≈ no proven gain" in row.text
    assert "improved" not in row.text
    assert not row.find("span", class_="won")
    assert "… not judged yet" in rows(archive)["r2i2"].text


def test_an_idea_whose_kernels_got_no_verdict_names_no_engine_as_the_cause(
    archive: Archive, story: SimpleNamespace
) -> None:
    archive.add_ideas([story.idea(1, 1, "Tie", None)])
    archive.add_candidate(story.candidate("r1i1v0a0", idea_id="r1i1"))
    archive.add_engine_failure(EngineFailure.of("r1i1v0a0", Purpose.SEARCH, MachineBusyError("too busy")))
    row = rows(archive)["r1i1"]
    assert "✕ no verdict" in row.text and "engine failed" not in row.text


def test_a_row_tells_predicted_and_measured_model_tokens_cost_and_time(filled: Archive) -> None:
    row = rows(filled)["r4i1"]
    assert cell(row, "by").text == "offline"
    assert cell(row, "predicted").text.startswith("1.30×")
    assert "1.02 to 1.10" in cell(row, "measured").text
    assert cell(row, "tokens, cost").text.split() == ["1,525$0.008"]
    assert cell(row, "time: model, judge").text == "0 s6 s"


def test_an_interval_of_one_run_of_the_two_counts(filled: Archive, story: SimpleNamespace) -> None:
    best = filled.evaluation("r3i1v1a0")
    assert best is not None and best.timing is not None
    wide = dataclasses.replace(best, timing=dataclasses.replace(best.timing, speedup_ci95=(1.0, 3.0)))
    filled.add_evaluation(wide)
    assert "no proven gain" in rows(filled)["r4i1"].text


def test_a_search_of_many_ideas_shows_the_last_ones(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_ideas([story.idea(n // 10 + 1, n % 10, f"Idea {n}", None) for n in range(IDEAS + 7)])
    page = render_report(archive, build_result(archive), state_words="finished")
    assert "The 7 earliest ideas are left out." in page
