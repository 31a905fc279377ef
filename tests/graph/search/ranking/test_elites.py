"""Which kernels the next round starts from."""

from __future__ import annotations

import math

from tests.candidates import candidate_of
from tests.graph.scripted_model import own_structure

from ridgeline.graph.search.ranking.elites import Standing, best_of_ideas, choose_elites, winners_first
from ridgeline.tools.records.results import Evaluation, Timing
from ridgeline.tools.records.vocabulary import Origin, Purpose, Status


def standing(candidate_id: str, idea_id: str | None, speedup: float, source: str = "", **fields: object) -> Standing:
    origin = {"origin": Origin.MODEL, "round": 1, "idea_id": idea_id} | fields
    candidate = candidate_of(source or own_structure(candidate_id), name=candidate_id, **origin)
    timing = Timing(status=Status.OK, median_ms=10 / speedup, speedup=speedup)
    return Standing(
        candidate=candidate,
        evaluation=Evaluation(
            key=candidate_id, candidate_id=candidate_id, purpose=Purpose.SEARCH, status=Status.OK, timing=timing
        ),
    )


def names(standings: list[Standing]) -> list[str]:
    return [s.candidate.id for s in standings]


def chosen(standings: list[Standing], count: int) -> list[str]:
    return names(choose_elites(standings, count))


def test_elites_are_of_different_ideas() -> None:
    standings = [standing("a0", "a", 2.0), standing("a1", "a", 1.99), standing("b0", "b", 1.9)]
    assert chosen(standings, 2) == ["a0", "b0"]


def test_second_kernel_of_an_idea_stays_when_it_is_far_ahead() -> None:
    standings = [standing("a0", "a", 3.0), standing("a1", "a", 2.9), standing("b0", "b", 1.5)]
    assert chosen(standings, 2) == ["a0", "a1"]


def test_places_left_over_go_to_the_next_fastest_of_another_structure() -> None:
    standings = [standing("a0", "a", 2.0), standing("a1", "a", 1.99), standing("b0", "b", 1.9)]
    assert chosen(standings, 3) == ["a0", "a1", "b0"]


def test_kernels_that_differ_by_a_constant_have_one_place_whatever_their_ideas() -> None:
    source = "void run(const float* x) {{ for (int i = 0; i < {}; ++i) use(x[i]); }}"
    standings = [
        standing("a0", "a", 3.0, source.format(8)),
        standing("a1", "a", 2.9, source.format(16)),
        standing("b0", "b", 1.5, source.format(32)),
        standing("c0", "c", 1.4),
    ]
    assert chosen(standings, 4) == ["a0", "c0"]


def test_swept_points_have_the_place_of_the_kernel_they_were_tuned_from() -> None:
    point = {"origin": Origin.TUNE, "parent_id": "a0"}
    standings = [
        standing("a0t1", "a", 2.2, **point),
        standing("a0t2", "a", 2.1, **point),
        standing("a0", "a", 2.0),
        standing("b0", "b", 1.0),
    ]
    assert chosen(standings, 4) == ["a0t1", "b0"]


def test_winner_side_by_side_is_an_elite_before_the_kernel_it_beat() -> None:
    lucky, steady, other = standing("a0", "a", 2.1), standing("a1", "a", 2.0), standing("b0", "b", 1.9)
    ratios = {("a0", "a1"): 1.04, ("a1", "a0"): 1 / 1.04}
    assert chosen([lucky, steady, other], 1) == ["a0"]
    assert chosen(winners_first([lucky, steady, other], ratios), 1) == ["a1"]
    assert names(winners_first([other, lucky, steady], ratios)) == ["b0", "a1", "a0"]


def test_kernel_that_failed_where_it_was_compared_is_behind_the_other() -> None:
    standings = [standing("a0", "a", 2.1), standing("b0", "b", 2.0), standing("c0", "c", 1.9)]
    ratios = {("a0", "c0"): math.inf, ("c0", "a0"): 0.0, ("a0", "b0"): 0.97, ("a0", "gone"): 2.0}
    assert names(winners_first(standings, ratios)) == ["c0", "a0", "b0"]


def test_best_of_an_idea_is_its_first_kernel() -> None:
    standings = [standing("a1", "a", 2.0), standing("b0", "b", 1.9), standing("a0", "a", 1.8), standing("s", None, 1.0)]
    assert names(best_of_ideas(standings, ["a", "c"])) == ["a1"]
