"""What a request for ideas tells of the ideas that were tried."""

from __future__ import annotations

from dataclasses import replace

from tests.graph.requests_made import ELITE, TRIED, ideation

from ridgeline.graph.models.prompts import render_ideation
from ridgeline.tools.records.vocabulary import IdeaOutcome


def test_an_idea_that_is_open_is_told_as_one_that_may_be_proposed_again() -> None:
    failed = {"best_candidate_id": None, "best_speedup": None, "outcome": IdeaOutcome.IMPLEMENTATION_FAILED}
    closed = replace(TRIED, failure="wrong (wrong_values): row 3 differs", **failed)
    text = render_ideation(ideation(tried=(closed, replace(closed, id="r1i1", tries_left=1)), elites=()))
    assert "do not repeat these, except where it says so" in text
    assert "failed: `wrong (wrong_values): row 3 differs`; implementation failed\n" in text
    assert (
        "failed: `wrong (wrong_values): row 3 differs`; implementation failed; still open: may be proposed again once"
        in text
    )
    text = render_ideation(ideation(tried=(replace(closed, tries_left=2),), elites=()))
    assert "may be proposed again (2 times at most)\n" in text


def test_an_idea_of_which_no_kernel_was_judged_is_not_told_as_one_that_failed() -> None:
    told = replace(TRIED, best_candidate_id=None, best_speedup=None)
    assert "Unroll by four [from scratch]: fewer branches → not judged\n" in render_ideation(ideation(tried=(told,)))


def test_a_reason_that_an_implementation_s_end_says_is_not_said_twice() -> None:
    failed = {"best_candidate_id": None, "best_speedup": None, "outcome": IdeaOutcome.IMPLEMENTATION_FAILED}
    told = replace(
        TRIED, failure="wrong (wrong_values): row 3", ends=("r1i0v0a0: wrong (wrong_values): row 3",), **failed
    )
    assert render_ideation(ideation(tried=(told,), elites=())).count("wrong (wrong_values): row 3") == 1


def test_an_idea_whose_kernel_is_shown_is_told_by_its_title_and_its_other_implementations_ends() -> None:
    ends = ("r1i0v0a0: ok, 1.300x eager", "r1i0v1a0: wrong (wrong_values): row 3")
    told = replace(TRIED, mechanism="fewer branches in each loop", ends=ends)
    shown = replace(ELITE, candidate_id="r1i0v0a0", idea_id="r1i0")
    text = render_ideation(ideation(tried=(told,), elites=(shown,)))
    assert "- `r1i0` Unroll by four [from scratch] → `r1i0v0a0`, below\n  - `r1i0v1a0: wrong" in text
    assert "r1i0v0a0: ok" not in text
    assert "fewer branches in each loop" in render_ideation(ideation(tried=(told,), elites=()))


def test_a_tried_idea_tells_prediction_result_ends_and_diagnoses() -> None:
    told = replace(
        TRIED, parent_id="seed-naive", gain=0.9,
        predicted_gain=1.5, ends=("v1: did not compile",), before="waits for L2", after="spills",
        sweep=("BLOCK = 64: 1.2 ms",), outcome=IdeaOutcome.REFUTED,
    )  # fmt: skip
    text = render_ideation(ideation(tried=(told,), elites=()))
    for part in ("gain 0.90×; predicted 1.50×; refuted", "v1: did not compile", "before: waits for L2"):
        assert part in text
    assert "after: spills" in text and "swept: BLOCK = 64: 1.2 ms" in text


def test_an_idea_of_which_only_the_result_is_known_is_one_line() -> None:
    told = replace(TRIED, mechanism=f"Fewer branches in the loop. {'And a long reason. ' * 20}")
    text = render_ideation(ideation(tried=(told,), elites=()))
    assert "- `r1i0` Unroll by four [from scratch]: Fewer branches in the loop. → 1.300× eager (r1i0v0a0)\n" in text
    assert "long reason" not in text


def test_one_diagnosis_is_told_once() -> None:
    best = replace(ELITE, candidate_id="r1i0v0a0", diagnosis="waits for memory")
    one = replace(TRIED, id="r1i0", before="spills registers", after="waits for memory")
    two = replace(TRIED, id="r1i1", before="spills registers", after="")
    text = render_ideation(ideation(tried=(one, two), elites=(best,)))
    assert text.count("waits for memory") == text.count("spills registers") == 1


def test_the_gain_of_an_idea_from_scratch_is_its_speedup_and_is_not_said_twice() -> None:
    told = replace(TRIED, gain=1.3, predicted_gain=11.5, ends=("r1i0v0a0: ok",), outcome=IdeaOutcome.IMPROVED)
    text = render_ideation(ideation(tried=(told,), elites=()))
    assert "→ 1.300× eager (r1i0v0a0); predicted 11.50×; improved\n" in text
    text = render_ideation(ideation(tried=(replace(told, parent_id="seed-naive"),), elites=()))
    assert "→ 1.300× eager (r1i0v0a0); gain 1.30×; predicted 11.50×; improved\n" in text


def test_a_mechanism_in_brief_does_not_end_at_a_semicolon() -> None:
    told = replace(TRIED, mechanism="About 0.5 ms remain; packing hides them. More words follow.")
    assert "About 0.5 ms remain; packing hides them. →" in render_ideation(ideation(tried=(told,), elites=()))
