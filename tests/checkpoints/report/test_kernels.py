"""Every kernel's entry on the page: its source or error, what it changed, and how much room all of them take."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest
from tests.checkpoints.report.reading import Element, Page, read_page

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report.kernels import LINE, ROOM, SHOWN, SOURCE
from ridgeline.checkpoints.report.page import render_report
from ridgeline.checkpoints.result import build_result
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.tools.records.vocabulary import Origin, ReasonCode, Status

HOSTILE = '</pre></details></script><script>alert("x")</script><!-- \x1b[2J \u202e \x00 & <img src=x onerror=y>'


def page_of(archive: Archive) -> Page:
    return read_page(render_report(archive, build_result(archive), state_words="finished"))


def entry(page: Page, candidate_id: str) -> Element:
    """Return a kernel's folded entry."""
    found = [
        each for each in page.find("details", class_="kernel") if each.find("span", class_="id")[0].text == candidate_id
    ]
    assert len(found) == 1
    return found[0]


def test_every_kernel_has_its_source_or_its_difference_folded_in(filled: Archive) -> None:
    page = page_of(filled)
    for candidate in filled.candidates():
        own = entry(page, candidate.id)
        assert "open" not in own.attributes
        assert own.find("pre", class_="source") or own.find("pre", class_="diff") or "Same source as" in own.text
    changed = entry(page, "r1i1v0a0")
    (diff,) = changed.find("pre", class_="diff")
    assert "+// r1i1v0a0" in diff.text and "-// seed-fused" in diff.text
    assert "Difference to seed-fused: 1 added, 1 removed" in changed.text


def test_a_failed_kernel_tells_its_reason_and_the_compiler_s_messages(filled: Archive, story: SimpleNamespace) -> None:
    failed = story.failed(
        "r1i1v0a0", Status.COMPILE_ERROR, ReasonCode.COMPILER_FAILED, "line 3: 'ROW' was not declared"
    )
    build = dataclasses.replace(
        failed.build,
        status=Status.COMPILE_ERROR,
        reason_code=ReasonCode.COMPILER_FAILED,
        log=f"k.cpp:3: error\n{HOSTILE}",
    )
    filled.add_evaluation(dataclasses.replace(failed, build=build))
    own = entry(page_of(filled), "r1i1v0a0")
    assert "compile error (compiler failed): line 3: 'ROW' was not declared" in own.text
    assert "k.cpp:3: error" in own.find("pre", class_="log")[0].text


def test_links_lead_to_kernels_that_are_there(filled: Archive) -> None:
    page = page_of(filled)
    ids = {each.attributes["id"] for each in page.all() if "id" in each.attributes}
    links = [str(each.attributes["href"]) for each in page.find("a")]
    assert len(links) > 20
    assert [link for link in links if link.removeprefix("#") not in ids] == []


def test_a_repair_without_a_parent_is_compared_with_what_it_repairs(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_ideas([story.idea(1, 1, "From nothing", None)])
    for attempt in (0, 1):
        name = f"r1i1v0a{attempt}"
        archive.add_candidate(story.candidate(name, idea_id="r1i1", attempt=attempt))
        archive.add_evaluation(story.ok(name, 1.5))
    assert "Difference to r1i1v0a0" in entry(page_of(archive), "r1i1v0a1").text
    assert "Difference" not in entry(page_of(archive), "r1i1v0a0").text


def test_hostile_sources_titles_and_ids_stay_text(filled: Archive, story: SimpleNamespace) -> None:
    filled.add_ideas([story.idea(5, 1, HOSTILE, HOSTILE)])
    made = story.candidate(HOSTILE, round=5, idea_id="r5i1", parent_id="seed-fused", source=HOSTILE, model=HOSTILE)
    filled.add_candidate(made)
    filled.add_evaluation(story.ok(HOSTILE, 9.0))
    filled.save_run(RunRecord(best_id=HOSTILE))
    page = page_of(filled)
    assert not {"script", "img"} & set(page.tags)
    assert not [name for name, _ in page.every_attribute if name.startswith("on")]
    text = page.text
    assert '<script>alert("x")</script>' in text
    assert not set("\x1b\u202e\x00") & set(text)


def test_a_source_of_a_megabyte_and_an_endless_line_are_cut_with_a_note(
    filled: Archive, story: SimpleNamespace
) -> None:
    filled.add_candidate(story.candidate("long", source="int x;\n" * 150_000))
    filled.add_candidate(story.candidate("wide", source="x" * 50_000))
    page = page_of(filled)
    for name, words in (("long", f"first {SOURCE:,} of 1,050,000 characters"), ("wide", f"cut at {LINE:,} characters")):
        own = entry(page, name)
        assert words in own.text, name
        assert len(own.find("pre", class_="source")[0].text) <= SOURCE


@pytest.mark.thorough
def test_five_hundred_candidates_fit_on_a_page_of_few_megabytes(archive: Archive, story: SimpleNamespace) -> None:
    source = "\n".join(f"  out[{n}] = x[{n}] < y[{n}] ? a & b : c;  // {n}" for n in range(450))
    made = []
    for n in range(SHOWN + 20):
        name = f"r{n // 40 + 1}i{n % 40}v0a0"
        made.append(
            story.candidate(
                name,
                round=n // 40 + 1,
                parent_id=made[-1].id if n % 7 else None,
                source=f"// {n}\n{source}\n{source[n * 9 :]}",
            )
        )
    archive.save_baselines(story.baselines())
    archive.add_candidates(made)
    for candidate in made:
        archive.add_evaluation(story.ok(candidate.id, 1.5))
    html = render_report(archive, build_result(archive), state_words="finished")
    page = read_page(html)
    assert len(html) < 2 * ROOM + 1_200_000
    assert len(page.find("details", class_="kernel")) == SHOWN
    text = page.text
    assert "20 further kernels are left out here" in text
    assert "What does not stand here is left out, as the page is full; the archive has it." in text
    best = build_result(archive)["best"]["id"]
    assert entry(page, best).find("pre")


def test_a_tuned_point_shows_its_difference_alone(filled: Archive, story: SimpleNamespace) -> None:
    source = filled.candidate("r4i1v0a0").source.replace("0.5f", "0.25f")
    tuned = story.candidate(
        "r4i1v0a0t9", origin=Origin.TUNE, round=4, idea_id="r4i1", parent_id="r4i1v0a0", source=source
    )
    filled.add_candidate(tuned)
    own = entry(page_of(filled), "r4i1v0a0t9")
    assert own.find("pre", class_="diff") and not own.find("pre", class_="source")
