"""Declared tunables and the order of trials."""

from __future__ import annotations

import time

import pytest
from tests.candidates import candidate_of

from ridgeline.graph.search.sources.tuning import (
    MAX_TUNABLES,
    PATIENCE,
    MeasuredPoint,
    likely_points,
    next_points,
    parse_tunables,
    point_of,
    root_id,
    shared_trials,
    with_values,
)
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin

SOURCE = """
constexpr int BLOCK = 128;  // tune: BLOCK = 64 | 128 | 256
#define UNROLL 4            // tune: UNROLL = 2 | 4 | 8
static const long CHUNK = 1 << 10; // rows
// tune: CHUNK = 1 << 9 | 1 << 10 | 1 << 11
int f(int BLOCK_COUNT) { return BLOCK_COUNT * BLOCK; }
"""


def test_constexpr_define_and_const_are_tunable() -> None:
    found = {t.name: (t.values, t.current) for t in parse_tunables(SOURCE)}
    assert found == {
        "BLOCK": (("64", "128", "256"), "128"),
        "UNROLL": (("2", "4", "8"), "4"),
        "CHUNK": (("1 << 9", "1 << 10", "1 << 11"), "1 << 10"),
    }


def test_values_replace_definitions_and_nothing_else() -> None:
    changed = with_values(SOURCE, {"BLOCK": "64", "UNROLL": "8", "CHUNK": "1 << 9"})
    assert "constexpr int BLOCK = 64;  // tune: BLOCK = 64 | 128 | 256" in changed
    assert "#define UNROLL 8            // tune" in changed
    assert "static const long CHUNK = 1 << 9; // rows" in changed
    assert "return BLOCK_COUNT * BLOCK;" in changed
    assert with_values(changed, {"BLOCK": "128", "UNROLL": "4", "CHUNK": "1 << 10"}) == SOURCE


@pytest.mark.parametrize(
    "source",
    [
        "// tune: MISSING = 1 | 2",
        "constexpr int ONE = 1;  // tune: ONE = 1",
        "constexpr int TWICE = 1;\nconstexpr int TWICE = 2;\n// tune: TWICE = 1 | 2",
        "int variable = 1;  // tune: variable = 1 | 2",
    ],
)
def test_declaration_that_cannot_be_swept_is_ignored(source: str) -> None:
    assert parse_tunables(source) == ()


def sweep(trials: int, batch: int) -> list[dict[str, str]]:
    """Run a whole sweep in batches, each point as fast as its block is large."""
    tunables = parse_tunables(SOURCE)
    done: list[MeasuredPoint] = []
    while len(done) < trials:
        points = next_points(tunables, done, 1.0, rng_seed=3, planned=trials, count=min(batch, trials - len(done)))
        if not points:
            break
        done += [MeasuredPoint(point=p, speedup=int(p["BLOCK"]) / 64) for p in points]
    return [dict(t.point) for t in done]


def test_sequence_is_the_same_every_time_and_repeats_no_point() -> None:
    points = sweep(12, 4)
    assert points == sweep(12, 4)
    assert len({tuple(sorted(p.items())) for p in points}) == len(points)


def test_sweep_finds_the_best_value() -> None:
    assert any(p["BLOCK"] == "256" for p in sweep(12, 4))


def test_sweep_ends_when_the_grid_is_exhausted() -> None:
    tunables = parse_tunables("constexpr int A = 1;  // tune: A = 1 | 2 | 3")
    points = next_points(tunables, [], 1.0, rng_seed=1, planned=9, count=9)
    assert sorted(p["A"] for p in points) == ["2", "3"]


def test_points_that_are_other_kernels_are_not_chosen() -> None:
    tunables = parse_tunables("constexpr int A = 1;  // tune: A = 1 | 2 | 3\nconstexpr int B = 1;  // tune: B = 1 | 2")
    elsewhere = [{"A": "2", "B": "1"}, {"A": "3", "B": "2"}, {"A": "9", "B": "9"}]
    points = next_points(tunables, [], 1.0, rng_seed=1, planned=9, count=9, elsewhere=elsewhere)
    assert sorted((p["A"], p["B"]) for p in points) == [("1", "2"), ("2", "2"), ("3", "1")]
    assert next_points(tunables, [], 1.0, rng_seed=1, planned=9, count=9, elsewhere=[*elsewhere, *points]) == []


@pytest.mark.parametrize(
    ("old", "new", "point"),
    [
        ("BLOCK = 64;", "BLOCK = 128;", {"BLOCK": "128", "UNROLL": "1"}),
        ("BLOCK = 64;", "BLOCK = 7;", {"BLOCK": "7", "UNROLL": "1"}),  # a value that is not among the declared ones
        ("// kernel", "// kernel", {"BLOCK": "64", "UNROLL": "1"}),
        ("// kernel", "// another", None),
        ("BLOCK = 64;", "SIZE = 64;", None),
        ("// kernel", "#define UNROLL 2", None),
    ],
)
def test_kernel_that_differs_in_tunable_values_alone_is_a_point(
    old: str, new: str, point: dict[str, str] | None
) -> None:
    source = (
        "constexpr int BLOCK = 64;  // tune: BLOCK = 64 | 128\n#define UNROLL 1  // tune: UNROLL = 1 | 2\n// kernel\n"
    )
    tunables, other = parse_tunables(source), source.replace(old, new)
    assert point_of(source, tunables, other) == point
    likely = likely_points(source, tunables, [other, "// other\n" + other, other + "// other\n"])
    assert [*likely] == ([other] if point is not None else [])


def test_sweep_ends_after_trials_without_gain() -> None:
    tunables = parse_tunables(SOURCE)
    values = [(b, u) for b in ("64", "128", "256") for u in ("2", "4", "8")]
    trials = [
        MeasuredPoint(point={"BLOCK": b, "UNROLL": u, "CHUNK": "1 << 9"}, speedup=0.9) for b, u in values[:PATIENCE]
    ]
    assert next_points(tunables, trials, 1.0, rng_seed=1, planned=30, count=4) == []


@pytest.mark.parametrize(
    ("trials", "speeds", "shares"),
    [
        (8, [2.0, 1.0], [8, 0]),
        (9, [2.0, 2.0], [5, 4]),
        (12, [2.0, 1.7], [8, 4]),
        (5, [1.0, 0.95, 0.9], [3, 1, 1]),
        (4, [], []),
        (0, [2.0], [0]),
    ],
)
def test_trials_are_shared_by_promise_and_none_go_to_a_kernel_far_behind(
    trials: int, speeds: list[float], shares: list[int]
) -> None:
    assert shared_trials(trials, speeds) == shares


def candidate(candidate_id: str, origin: Origin, parent_id: str | None) -> Candidate:
    return candidate_of("", name=candidate_id, origin=origin, round=1, parent_id=parent_id)


@pytest.mark.parametrize(
    ("candidate_id", "origin", "parent_id", "root"),
    [
        ("r1i0v0a0t12", Origin.TUNE, "r1i0v0a0", "r1i0v0a0"),
        ("r2i0v0a0", Origin.MODEL, "r1i0v0a0", "r2i0v0a0"),
        ("seed-float4", Origin.SEED, None, "seed-float4"),
        ("seed-float4t3", Origin.TUNE, "seed-float4", "seed-float4"),
    ],
)
def test_tuned_kernel_leads_back_to_its_root_whatever_their_names(
    candidate_id: str, origin: Origin, parent_id: str | None, root: str
) -> None:
    assert root_id(candidate(candidate_id, origin, parent_id)) == root


@pytest.mark.parametrize(
    "piece",
    [
        "const ",
        "const int A ",
        "const int A = 1 /",
        "//tune:A=1|2 ",
        "// tune: A = 1 | 2\nconst int A = 1 /\n",
        "#define A ",
        "A =",
    ],
)
def test_a_source_is_read_in_time_by_its_length(piece: str) -> None:
    source = (piece * (1 << 18))[: 1 << 18] + "\nconstexpr int LAST = 1;  // tune: LAST = 1 | 2\n"
    started = time.process_time()
    tunables = parse_tunables(source)
    changed = with_values(source, {"LAST": "2"})
    assert time.process_time() - started < 10.0
    assert [t.name for t in tunables] == ["LAST"]
    assert "LAST = 2;" in changed


def test_no_more_tunables_are_taken_than_a_sweep_can_use() -> None:
    lines = [f"constexpr int T{i} = 1;  // tune: T{i} = 1 | 2" for i in range(2 * MAX_TUNABLES)]
    assert [t.name for t in parse_tunables("\n".join(lines))] == [f"T{i}" for i in range(MAX_TUNABLES)]


def test_a_definition_behind_another_statement_is_found() -> None:
    source = "int f = 1; const int A = 2;  // tune: A = 2 | 4\nconst int C = 1 /* no */;  // tune: C = 1 | 2\n"
    assert [(t.name, t.current) for t in parse_tunables(source)] == [("A", "2")]
