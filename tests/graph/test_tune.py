"""What tuning finds among a kernel's declared values."""

from __future__ import annotations

from ridgeline.tools.records import Origin

from .conftest import Search
from .scripted_model import ScriptedModel

TUNED = """// {title}
constexpr int BLOCK = 64;  // tune: BLOCK = 32 | 64 | 128 | 256
#define UNROLL 1  // tune: UNROLL = 1 | 2 | 4
// speed 1.5
// factor BLOCK 128 1.2
// factor UNROLL 4 1.1
"""


async def test_tune_finds_the_declared_values_that_are_fastest_without_a_token(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": TUNED.format(title=r.idea.title)})
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1, tune_trials=11))
    best = search.archive.candidate(output["best_id"])
    assert best.tunables == {"BLOCK": "128", "UNROLL": "4"}
    assert "constexpr int BLOCK = 128;  // tune: BLOCK = 32" in best.source
    assert "#define UNROLL 4  // tune" in best.source
    assert best.idea_id == "r1i0"
    tuned = search.archive.candidates(origin=Origin.TUNE)
    assert len({tuple(c.tunables.items()) for c in tuned}) == len(tuned) <= 11
    assert len(search.model.writes) == 1


async def test_tune_keeps_to_its_trials_over_all_elites(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": TUNED.format(title=r.idea.title)})
    await search.run(search.context(rounds=2, ideas=2, implementations=1, tune_trials=6))
    for round_ in (1, 2):
        assert 0 < len(search.archive.candidates(round=round_, origin=Origin.TUNE)) <= 6


async def test_seed_named_like_a_tuned_kernel_is_tuned_as_any_other(search: Search) -> None:
    context = search.context(rounds=1, ideas=1, implementations=1, tune_trials=8)
    seeds = context.problem.path.parent / "seeds"
    (seeds / "float4.cpp").write_text(TUNED.format(title="float4"))
    (seeds / "float4t0.cpp").write_text("// speed 0.6\n")
    context.problem = context.problem.model_copy(update={"seeds": ["seeds/*.cpp"]})
    output = await search.run(context)
    best = search.archive.candidate(output["best_id"])
    assert (best.parent_id, best.origin) == ("seed-float4", Origin.TUNE)
    assert search.archive.candidate("seed-float4t0").origin is Origin.SEED
