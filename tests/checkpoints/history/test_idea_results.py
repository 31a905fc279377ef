"""How an idea ended: its best kernel, its failure, or no verdict at all."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.history.idea_results import IdeaResult, idea_results
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.keys import comparison_key
from ridgeline.tools.records.results import Comparison, FailedComparison, Profile
from ridgeline.tools.records.vocabulary import IdeaOutcome, Origin, Purpose, ReasonCode, Status


def _result(archive: Archive, idea_id: str) -> IdeaResult:
    return next(result for result in idea_results(archive) if result.idea.id == idea_id)


def test_a_result_has_the_best_kernel_or_the_last_failure(filled: Archive) -> None:
    tuned, failed = _result(filled, "r4i1"), _result(filled, "r1i4")
    assert tuned.best is not None
    assert (tuned.best.candidate_id, tuned.best.speedup, tuned.failure) == ("r4i1v0a0t3", 2.31, "")
    assert failed.best is None
    assert failed.failure.startswith("runtime_error (crashed): killed by SIGSEGV")
    entry = failed.to_json()
    assert (entry["id"], entry["best_candidate_id"], entry["best_speedup"], entry["candidates"]) == (
        "r1i4",
        None,
        None,
        2,
    )


def test_an_idea_is_unjudged_when_the_engine_failed_on_every_candidate_that_ended(
    archive: Archive, story: SimpleNamespace
) -> None:
    archive.add_ideas([story.idea(1, 0, "Fuse", None)])
    archive.add_candidates([story.candidate(f"r1i0v{n}a0", idea_id="r1i0") for n in range(3)])
    assert not _result(archive, "r1i0").is_unjudged
    archive.add_engine_failure(EngineFailure(candidate_id="r1i0v1a0", purpose=Purpose.SEARCH, reason="the judge died"))
    unjudged = _result(archive, "r1i0")
    assert unjudged.is_unjudged
    assert unjudged.failure == "refused (engine_failed): the judge died"
    archive.add_evaluation(story.failed("r1i0v0a0", Status.WRONG, ReasonCode.WRONG_VALUES, "row 3 differs"))
    judged = _result(archive, "r1i0")
    assert (judged.is_unjudged, judged.failure) == (False, "wrong (wrong_values): row 3 differs")


def test_gain_is_over_the_parent_and_says_whether_the_idea_improved(filled: Archive) -> None:
    improved, refuted, failed = (_result(filled, name) for name in ("r4i1", "r1i3", "r1i4"))
    assert (improved.gain, improved.outcome) == (pytest.approx(2.31 / 2.18), IdeaOutcome.IMPROVED)
    assert (refuted.gain, refuted.outcome) == (pytest.approx(1.18 / 1.31), IdeaOutcome.REFUTED)
    assert (failed.gain, failed.outcome) == (None, IdeaOutcome.IMPLEMENTATION_FAILED)
    assert (improved.to_json()["outcome"], failed.to_json()["outcome"]) == ("improved", "implementation failed")


@pytest.mark.parametrize(
    ("interval", "outcome"),
    [((1.0, 1.1), IdeaOutcome.REFUTED), ((1.0, 2.0), IdeaOutcome.UNDECIDED), (None, IdeaOutcome.REFUTED)],
)
def test_an_idea_is_refuted_only_where_the_intervals_leave_no_gain(
    archive: Archive, story: SimpleNamespace, interval: tuple[float, float] | None, outcome: IdeaOutcome
) -> None:
    archive.add_ideas([story.idea(1, 0, "Fuse", None), story.idea(2, 0, "Prefetch", "r1i0v0a0")])
    archive.add_candidates([story.candidate(f"r{n}i0v0a0", idea_id=f"r{n}i0", round=n) for n in (1, 2)])
    for name, speedup, ends in (("r1i0v0a0", 1.2, (1.15, 1.3)), ("r2i0v0a0", 1.05, interval)):
        right = story.ok(name, speedup)
        archive.add_evaluation(replace(right, timing=replace(right.timing, speedup_ci95=ends)))
    assert _result(archive, "r2i0").outcome is outcome


@pytest.mark.parametrize(
    ("first", "second", "ratio"), [("r3i1v1a0", "r4i1v0a0t3", 0.97), ("r4i1v0a0t3", "r3i1v1a0", 1 / 0.97)]
)
def test_gain_is_that_of_an_alternating_run_where_there_was_one(
    filled: Archive, first: str, second: str, ratio: float
) -> None:
    run = Comparison(ratio=ratio, ratio_ci95=(ratio, ratio), first_ms=1.0, second_ms=1.0, blocks=12)
    filled.save("comparisons", comparison_key(first, second, "builds"), first, run)
    result = _result(filled, "r4i1")
    assert (result.gain, result.outcome) == (pytest.approx(0.97), IdeaOutcome.REFUTED)


def test_gain_is_not_that_of_a_run_in_which_one_failed(filled: Archive) -> None:
    finding = Finding(code=ReasonCode.CRASHED, reason="killed by SIGSEGV")
    failed = FailedComparison(finding=finding, at_fault=0)
    filled.save("comparisons", comparison_key("r3i1v1a0", "r4i1v0a0t3", "builds"), "r3i1v1a0", failed)
    assert _result(filled, "r4i1").gain == pytest.approx(2.31 / 2.18)


def test_a_gain_and_its_interval_are_of_the_same_measurement_when_a_later_run_of_the_two_failed(
    filled: Archive,
) -> None:
    pair, finding = ("r3i1v1a0", "r4i1v0a0t3"), Finding(code=ReasonCode.CRASHED, reason="killed by SIGSEGV")
    run = Comparison(ratio=0.97, ratio_ci95=(0.96, 0.98), first_ms=0.97, second_ms=1.0, blocks=12)
    filled.save("comparisons", comparison_key(*pair, "builds"), pair[0], run)
    either = FailedComparison(finding=finding, at_fault=None)
    filled.save("comparisons", comparison_key(*pair, "other builds"), pair[0], either)
    undisputed = _result(filled, "r4i1").to_json()
    assert (undisputed["gain"], undisputed["gain_ci95"]) == (0.97, [0.96, 0.98])
    filled.save("comparisons", comparison_key(*pair, "newer builds"), pair[0], replace(either, at_fault=0))
    entry = _result(filled, "r4i1").to_json()
    low, high = entry["gain_ci95"]
    assert entry["gain"] == pytest.approx(2.31 / 2.18)
    assert low < entry["gain"] < high and low == pytest.approx(2.31 * 0.98 / (2.18 * 1.02))


@pytest.mark.parametrize("parent", [None, "seed-unmeasured"])
def test_an_idea_without_a_measured_parent_has_no_gain_over_one_and_is_judged_by_eager(
    archive: Archive, story: SimpleNamespace, parent: str | None
) -> None:
    archive.add_ideas([story.idea(1, 0, "Fuse", parent)])
    archive.add_candidate(story.candidate("r1i0v0a0", idea_id="r1i0"))
    assert _result(archive, "r1i0").outcome is None
    archive.add_evaluation(story.ok("r1i0v0a0", 1.4))
    result = _result(archive, "r1i0")
    assert (result.gain, result.to_json()["gain"], result.outcome) == (None, None, IdeaOutcome.IMPROVED)


def test_each_implementation_has_a_line_with_its_end_and_its_repairs(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_ideas([story.idea(1, 0, "Fuse", None)])
    of_idea = {"idea_id": "r1i0"}
    archive.add_candidates(
        [
            story.candidate("r1i0v0a0", **of_idea),
            story.candidate("r1i0v0a1", attempt=1, **of_idea),
            story.candidate("r1i0v1a0", variation=1, **of_idea),
            story.candidate("r1i0v2a0", variation=2, **of_idea),
            story.candidate("r1i0v0a1t0", origin=Origin.TUNE, parent_id="r1i0v0a1", **of_idea),
        ]
    )
    archive.add_evaluation(story.failed("r1i0v0a0", Status.WRONG, ReasonCode.WRONG_VALUES, "row 3 differs"))
    archive.add_evaluation(story.ok("r1i0v0a1", 1.4))
    archive.add_evaluation(story.failed("r1i0v1a0", Status.WRONG, ReasonCode.WRONG_VALUES, "row\n3 " + "differs " * 80))
    ok, wrong, open_ = _result(archive, "r1i0").ends
    assert ok == "r1i0v0a1: ok after 1 repair, 1.400x eager"
    assert (
        wrong.startswith("r1i0v1a0: wrong (wrong_values): row 3 differs") and wrong.endswith("…") and len(wrong) < 240
    )
    assert open_ == "r1i0v2a0: not judged"


def _profile(archive: Archive, key: str, **fields: object) -> None:
    figures = {"bound": "memory", "fraction_of_floor": 0.5, "achieved_gbps": 5.0, "achieved_gflops": None}
    archive.save("profiles", key, "any", Profile(**figures, **fields))


def test_diagnoses_are_the_parents_and_the_fastest_kernels_that_has_one(filled: Archive) -> None:
    assert (_result(filled, "r4i1").before, _result(filled, "r4i1").after) == ("", "")
    _profile(filled, "key-r3i1v1a0-search", notes=("scalar",))
    _profile(filled, "key-r4i1v0a0-search", paragraph="It waits for memory.")
    result = _result(filled, "r4i1")
    assert result.before == "memory-bound, at 50% of the memory floor's rate, 5.0 GB/s. scalar."
    assert result.after == "It waits for memory."


def test_sweep_lists_the_fastest_points_and_counts_the_rest(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_ideas([story.idea(1, 0, "Fuse", None)])
    archive.add_candidate(story.candidate("r1i0v0a0", idea_id="r1i0"))
    archive.add_evaluation(story.ok("r1i0v0a0", 1.0))
    for number in range(8):
        name = f"r1i0v0a0t{number}"
        point = {"origin": Origin.TUNE, "parent_id": "r1i0v0a0", "tunables": {"BLOCK": str(number), "UNROLL": "4"}}
        archive.add_candidate(story.candidate(name, idea_id="r1i0", **point))
        if number < 7:
            archive.add_evaluation(story.ok(name, 1.0 + 0.1 * number, Purpose.TUNE))
    sweep = _result(archive, "r1i0").sweep
    assert [row.partition(":")[0] for row in sweep[:6]] == [f"BLOCK={n} UNROLL=4" for n in (6, 5, 4, 3, 2)] + [
        "as written (r1i0v0a0)"
    ]
    assert "1.60x (" in sweep[0] and " ms" not in "".join(sweep)
    assert sweep[6:] == ("2 slower points",)


def test_a_sweep_tells_by_which_code_points_failed_with_the_values_of_one(
    archive: Archive, story: SimpleNamespace
) -> None:
    archive.add_ideas([story.idea(1, 0, "Fuse", None)])
    archive.add_candidate(story.candidate("r1i0v0a0", idea_id="r1i0"))
    archive.add_evaluation(story.ok("r1i0v0a0", 1.0))
    for number in range(3):
        name = f"r1i0v0a0t{number}"
        point = {"origin": Origin.TUNE, "parent_id": "r1i0v0a0", "tunables": {"BLOCK": str(number)}}
        archive.add_candidate(story.candidate(name, idea_id="r1i0", **point))
        wrong = story.failed(name, Status.WRONG, ReasonCode.WRONG_VALUES, "row 3")
        ended = wrong if number else story.ok(name, 1.2, Purpose.TUNE)
        archive.add_evaluation(replace(ended, purpose=Purpose.TUNE))
    assert _result(archive, "r1i0").sweep[2:] == ("2 points failed, wrong (wrong_values): BLOCK=1",)


def test_an_idea_whose_kernel_repeats_an_earlier_one_names_it(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_ideas([story.idea(1, 0, "Fuse", None), story.idea(2, 0, "My own", None), story.idea(2, 1, "New", None)])
    written = story.candidate("r1i0v0a0", idea_id="r1i0")
    archive.add_candidates(
        [
            written,
            replace(written, id="r2i0v0a0", idea_id="r2i0", round=2),
            replace(written, id="r2i1v0a0", idea_id="r2i1", round=2, source="// another\n"),
        ]
    )
    told = {result.idea.id: result.to_json()["same_source_as"] for result in idea_results(archive)}
    assert told == {"r1i0": None, "r2i0": "r1i0v0a0", "r2i1": None}
    for name in ("r2i0v0a0", "r1i0v0a0"):
        archive.add_evaluation(story.ok(name, 1.4))
    assert _result(archive, "r2i0").same_source_as == "r1i0v0a0"


@pytest.mark.parametrize(("author", "outcome"), [("user", IdeaOutcome.UNDECIDED), ("offline", IdeaOutcome.REFUTED)])
def test_a_kernel_that_the_search_had_before_refutes_no_idea_of_a_user(
    archive: Archive, story: SimpleNamespace, author: str, outcome: IdeaOutcome
) -> None:
    archive.add_ideas([story.idea(1, 0, "Fuse", None), replace(story.idea(2, 0, "My own", "r1i0v0a0"), model=author)])
    written = story.candidate("r1i0v0a0", idea_id="r1i0")
    archive.add_candidates([written, replace(written, id="r2i0v0a0", idea_id="r2i0", round=2)])
    archive.add_evaluation(story.ok("r1i0v0a0", 1.4))
    archive.add_evaluation(story.ok("r2i0v0a0", 1.1))
    found = _result(archive, "r2i0")
    assert (found.same_source_as, found.outcome) == ("r1i0v0a0", outcome)
