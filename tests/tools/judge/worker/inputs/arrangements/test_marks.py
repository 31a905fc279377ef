"""Whole numbers that mean something come among an input's: marks, the ends of its range, and runs that the source writes."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.inputs.arrangements import marks as module
from ridgeline.tools.judge.worker.inputs.arrangements.marks import Marks
from ridgeline.tools.records.trial_names import SHARED_NUMBERS

RANGE = (0, 31999)
HEADER = (28006, 8191, 28007, 271)


def marks(*runs: tuple[int, ...], written: tuple[int, ...] = ()) -> Marks:
    return Marks(torch.tensor(written, dtype=torch.int64), runs, {0: RANGE})


def words(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(1000, 31000, shape, generator=torch.Generator().manual_seed(seed))


def copies(tensor: torch.Tensor, run: tuple[int, ...]) -> torch.Tensor:
    """Return how many copies of a run each row holds."""
    return (tensor.unfold(-1, len(run), 1) == torch.tensor(run)).all(-1).sum(-1)


def test_each_mark_comes_at_some_places_of_a_small_input_too() -> None:
    written = (1, 3, 11, 30001)
    for seed in range(8):
        placed = marks(written=written).placed(0, words(96), RANGE, torch.Generator().manual_seed(seed))
        counts = [int((placed == mark).sum()) for mark in (*written, *RANGE)]
        assert all(3 <= count <= 6 for count in counts)


def test_marks_take_a_sixteenth_of_a_large_input() -> None:
    placed = marks(written=(3, 31500)).placed(0, words(64, 64), RANGE, torch.Generator().manual_seed(1))
    assert int(torch.isin(placed, torch.tensor((3, 31500, *RANGE))).sum()) == 64 * 64 // 16


def test_no_mark_is_left_out_always_where_there_is_no_room_for_all() -> None:
    written = tuple(range(1, 11))
    met: set[int] = set()
    for seed in range(64):
        placed = marks(written=written).placed(0, words(16), RANGE, torch.Generator().manual_seed(seed))
        came = [mark for mark in (*written, *RANGE) if bool((placed == mark).any())]
        assert len(came) == 4, "a quarter of the places"
        met |= set(came)
    assert met == {*written, *RANGE}


def test_no_mark_takes_a_sentinels_place() -> None:
    given = words(64, 64)
    given[:, ::5] = -100
    found, generator = marks(HEADER, written=(30001,)), torch.Generator().manual_seed(0)
    changed = found.with_runs(found.placed(0, given, RANGE, generator), RANGE, generator)
    assert torch.equal(changed == -100, given == -100) and bool((changed == 30001).any())


@pytest.mark.parametrize("shape", [(256, 128), (4096,), (64, 5), (1, 4)])
def test_runs_come_whole_in_some_places_and_at_the_same_ones_again(shape: tuple[int, ...]) -> None:
    def changed() -> torch.Tensor:
        return marks(HEADER).with_runs(words(*shape), RANGE, torch.Generator().manual_seed(1))

    count = int(copies(changed(), HEADER).sum())
    places = torch.Size(shape).numel()
    assert max(1, places // 200) <= count <= max(1, places // 64)
    assert torch.equal(changed(), changed())


PAIRS = tuple((100 + 2 * i, 101 + 2 * i) for i in range(100))


@pytest.mark.parametrize(("shape", "n_seeds"), [((8, 64), 64), ((64, 64), 16)])
def test_runs_of_a_source_that_writes_many_are_whole_and_take_a_sixteenth_of_the_places(
    shape: tuple[int, int], n_seeds: int
) -> None:
    met: set[tuple[int, ...]] = set()
    for seed in range(n_seeds):
        changed = marks(*PAIRS).with_runs(words(*shape), RANGE, torch.Generator().manual_seed(seed))
        of_runs, wholes = int((changed < 1000).sum()), [int(copies(changed, run).sum()) for run in PAIRS]
        assert of_runs == 2 * sum(wholes), "none is written over"
        assert shape[0] * 2 <= of_runs <= shape[0] * 4
        met |= {run for run, count in zip(PAIRS, wholes, strict=True) if count}
    assert met == set(PAIRS)


def test_a_long_list_leaves_places_to_a_short_one() -> None:
    runs = tuple(range(100, 140)), (7, 8)
    for seed in range(8):
        changed = marks(*runs).with_runs(words(16, 64), RANGE, torch.Generator().manual_seed(seed))
        assert all(int(copies(changed, run).sum()) >= 1 for run in runs)


def test_the_places_of_all_runs_are_dealt_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    monkeypatch.setattr(module, "_permuted", lambda n, generator: (counts.append(n), torch.arange(n))[1])
    marks(*PAIRS).with_runs(words(64, 64), RANGE, torch.Generator().manual_seed(1))
    assert sorted(counts) == [100, 1024]


@pytest.mark.parametrize("run", [(5, 99999), (-5, 7)])
def test_a_run_beyond_the_range_does_not_come(run: tuple[int, int]) -> None:
    given = words(64, 64)
    beyond = marks(run).with_runs(given, RANGE, torch.Generator().manual_seed(1))
    assert torch.equal(beyond, given)


@pytest.mark.parametrize("shape", ["(512, 8)", "(24,)", "(2, 16)"])
def test_an_input_of_short_rows_holds_marks_too(shape: str) -> None:
    found = made("x", f"torch.randint(2**15, {shape})", "return (x == 31123).double().cumsum(-1)")
    met = 0
    for secret in range(16):
        found.source.draw_from(b"%d" % secret)
        (ids,) = found.book.contents.of(SHARED_NUMBERS)[0]
        met += int((ids == 31123).any())
    assert met >= 12


def test_a_run_that_the_source_writes_comes_among_words() -> None:
    body = "return sum((x.roll(-k, -1) == word).double() for k, word in enumerate((28006, 8191, 28007, 271)))"
    (ids,) = made("x", "torch.randint(32000, (16, 256))", body).book.contents.of(SHARED_NUMBERS)[0]
    assert int((copies(ids, HEADER) > 0).sum()) >= 4


def floats_in_trial(body: str, inputs: str = "torch.rand(64, 64)") -> torch.Tensor | None:
    """Return the only input of the trial, None where there is no such trial."""
    found = made("x", inputs, body)
    return found.book.contents.of(SHARED_NUMBERS)[0][0] if SHARED_NUMBERS in found.domain.names else None


def test_a_limit_that_the_source_writes_comes_among_floats() -> None:
    x = floats_in_trial("return torch.where(x >= 0.75, x, 0)")
    assert x is not None and 2900 < int((x == 0.75).sum()) < 3250


@pytest.mark.parametrize(
    "body",
    [
        "return x * 0.75",
        "return torch.where(x >= 2.5, x, x / 2)",
        "return torch.where(x >= 0.7, x, x / 2)",
        "return torch.where(x > 0.25, 1 / (x - 0.75), x)",
    ],
    ids=["compares nothing", "beyond the range", "rounded", "refused"],
)
def test_no_other_number_comes_among_floats(body: str) -> None:
    assert floats_in_trial(body) is None


def test_a_code_for_a_missing_value_comes_beyond_the_range_where_the_reference_takes_it() -> None:
    x = floats_in_trial("return torch.where(x != -999.0, x, 0).sum(-1)", "torch.randn(64, 64)")
    assert x is not None and 2900 < int((x == -999).sum()) < 3250
