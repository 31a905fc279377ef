"""Seed kernels that a search is told once it has begun."""

from __future__ import annotations

from tests.graph.conftest import Search
from tests.graph.search.judging.test_judging import in_a_node

from ridgeline.checkpoints.steering import Steering
from ridgeline.graph.search.rounds.seeds import seed_candidates, take_up_seeds
from ridgeline.tools.records.keys import comparison_key
from ridgeline.tools.records.results import Comparison


async def test_a_kernel_that_won_side_by_side_stays_ahead_when_a_seed_is_taken_up(search: Search) -> None:
    context = search.context(rounds=1, ideas=2, implementations=1, elites=3)
    await search.run(context)
    first, second = (e.candidate_id for e in search.archive.ranking()[:2])
    run = Comparison(ratio=1.2, ratio_ci95=(1.1, 1.3), first_ms=1.2, second_ms=1.0, blocks=9)
    search.archive.save("comparisons", comparison_key(first, second, "builds"), first, run)
    Steering(search.archive).add_seed("slow", "// speed 1.01\n")
    taken = await in_a_node(take_up_seeds, context, context.plan(None), 2)
    assert taken["elites"][:2] == [second, first]


async def test_a_told_seed_is_a_candidate_as_the_problems_seeds_are(search: Search) -> None:
    context = search.context()
    await search.run(context)
    Steering(search.archive).add_seed("mine", "// speed 1.01\n")
    await in_a_node(take_up_seeds, context, context.plan(None), 3)
    (given,) = seed_candidates(context.problem, context.target)
    told = search.archive.candidate("seed-mine")
    same = ("origin", "idea_id", "parent_id", "language", "interface", "model", "tunables")
    assert [getattr(told, name) for name in same] == [getattr(given, name) for name in same]
    assert (given.id, given.round, told.round) == ("seed-naive", 0, 3)
