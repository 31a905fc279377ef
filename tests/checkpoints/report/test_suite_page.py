"""suite.html: a row for each problem, with its interval and the way to its report."""

from __future__ import annotations

from pathlib import Path

from tests.checkpoints.report.reading import read_page

from ridgeline.checkpoints.report.suite_page import FILE_NAME, render_suite, write_suite_page
from ridgeline.checkpoints.runs.suite import Row, RowState, Suite

HOSTILE = "</td><script>alert(1)</script>"


def row(name: str, speedup: float | None = None, ends: tuple[float, float] | None = None, **fields: object) -> Row:
    return Row(
        name=name,
        problem=name,
        run=f"01-{name}",
        speedup=speedup,
        speedup_ci95=ends,
        correct=speedup is not None,
        **fields,
    )


ROWS = (
    row("fast", 2.0, (1.8, 2.3), state=RowState.FINISHED, certified=True),
    row("tie", 1.02, (0.97, 1.08), state=RowState.NO_GAIN),
    row("slow", 0.5, (0.4, 0.6), state=RowState.NO_GAIN),
    row("refused", state=RowState.REFUSED, reason=HOSTILE),
)


def test_each_problem_has_a_row_its_interval_and_words_that_its_interval_proves() -> None:
    page = read_page(render_suite(Suite(rows=ROWS), name="nightly", reported={"01-fast"}))
    found = {cells[0].text: each for each in page.find("tr") if (cells := each.find("td"))}
    assert [
        words in found[name].text
        for name, words in (("fast", "▲ faster"), ("tie", "≈ no proven gain"), ("slow", "▼ slower"))
    ] == [True] * 3
    assert [each.attributes["href"] for each in page.find("a")] == ["./01-fast/report.html"]
    bars = [each.find("rect")[0].attributes for each in page.find("svg")]
    assert [bar["class"] for bar in bars] == ["won-bar", "open-bar", "lost-bar"]
    line = float(page.find("svg")[0].find("line")[0].attributes["x1"] or 0)
    spans = [(float(bar["x"] or 0), float(bar["x"] or 0) + float(bar["width"] or 0)) for bar in bars]
    assert spans[2][1] < line < spans[0][0] and spans[1][0] < line < spans[1][1]
    assert page.find("svg")[0].attributes["aria-label"] == "2.00, 1.80 to 2.30"


def test_what_a_problem_or_a_folder_is_called_stays_text() -> None:
    strange = Row(name=HOSTILE, problem="", run="javascript:alert(1)//", state=RowState.FINISHED)
    page = read_page(render_suite(Suite(rows=(*ROWS, strange)), name=HOSTILE, reported={strange.run}))
    assert "script" not in page.tags
    assert [each.attributes["href"] for each in page.find("a")] == ["./javascript%3Aalert%281%29///report.html"]


def test_it_lies_in_the_suite_s_folder_and_links_reports_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "01-tie").mkdir()
    (tmp_path / "01-tie" / "report.html").write_text("")
    write_suite_page(tmp_path, Suite(rows=ROWS))
    page = read_page((tmp_path / FILE_NAME).read_text())
    assert [each.attributes["href"] for each in page.find("a")] == ["./01-tie/report.html"]
    read_page(render_suite(Suite(), name="", reported=set()))
