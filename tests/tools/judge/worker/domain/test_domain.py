"""What a trial may hold is found out by running the reference: narrower ways are tried, and what stays is named."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import N_SETS, made

from ridgeline.tools.errors import DeviceLostError
from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.domain.timed_kinds import inputs_apart
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.timed_sets import Draws, Mixtures
from ridgeline.tools.records.trial_names import CORRIDOR, CROWDED, TRANSFORMED

CAUSAL = "torch.randn(32, 32), torch.ones(32, 32, dtype=torch.bool).tril()"


def test_a_mask_that_may_not_lose_elements_only_gains_some() -> None:
    found = made("x, mask", CAUSAL, "return x.masked_fill(~mask, 0.0) / mask.diagonal()[:, None]")
    given, (_, mask) = torch.ones(32, 32, dtype=torch.bool).tril(), found.source.nominal("a")
    assert bool((mask >= given).all()) and not torch.equal(mask, given)
    assert set(TRANSFORMED) <= set(found.domain.names)
    assert list(found.domain.skipped) == [f"{CROWDED} mask", f"{CORRIDOR} mask"]


def test_lengths_whose_zero_is_refused_begin_at_one() -> None:
    body = "kept = torch.arange(16) < lengths[:, None]", "return (x * kept).sum(-1) / lengths"
    found = made("x, lengths", "torch.randn(64, 16), torch.full((64,), 16)", *body)
    lengths = found.source.nominal("a")[1]
    assert (int(lengths.min()) >= 1, int(lengths.max()) <= 16, not found.domain.skipped) == (True, True, True)


def test_a_single_whole_number_is_never_lowered_to_0() -> None:
    found = made("x, n", "torch.randn(16, 64), torch.tensor(2)", "return x.sin() * n")
    assert not found.domain.not_varied | found.domain.only_as_drawn
    assert {int(found.source.nominal(str(label))[1]) for label in range(40)} == {1, 2}


@pytest.mark.parametrize("least", [1000, 1700, 2047])
def test_lengths_of_which_a_lower_bound_is_asserted_are_lowered_to_above_it(least: int) -> None:
    body = (
        f"assert int(lengths.min()) >= {least}",
        "return (x * (torch.arange(2048) < lengths[:, None])).sum(-1) / lengths",
    )
    found = made("x, lengths", "torch.rand(16, 2048), torch.full((16,), 2048)", *body)
    assert not found.domain.not_varied | found.domain.only_as_drawn and not found.domain.skipped
    for trial in ("a", "b", "c"):
        assert least <= int(found.source.nominal(trial)[1].min()) < 2048


@pytest.mark.parametrize("least", [0.9, 0.95, 1.0])
def test_factors_of_which_a_range_is_asserted_are_scaled_within_it(least: float) -> None:
    body = f"assert bool(((t >= {least}) & (t < 1.1)).all())", "return torch.softmax(x / t[:, None], -1)"
    found = made("x, t", "torch.randn(16, 64), torch.ones(16)", *body)
    assert not found.domain.not_varied | found.domain.only_as_drawn
    assert bool((found.source.nominal("a")[1] != 1).any())


def test_a_mask_that_may_lose_few_elements_loses_few() -> None:
    body = "assert float(mask.float().mean()) > 0.95", "return torch.where(mask, x, 0.0).sum(-1)"
    found = made("x, mask", "torch.randn(32, 64), torch.ones(32, 64, dtype=torch.bool)", *body)
    assert (
        not found.domain.not_varied | found.domain.only_as_drawn
        and 0.95 < float(found.source.nominal("a")[1].float().mean()) < 1
    )


PREFIX = "torch.randn(16, 64), torch.arange(64)[None] < torch.randint(8, 32, (16, 1))"


def test_a_drawn_mask_has_elements_flipped_and_no_row_is_lost() -> None:
    found = made("x, mask", PREFIX, "return x.masked_fill(~mask, -torch.inf).softmax(-1)")
    given, (_, mask) = found.source.given("a")[1], found.source.nominal("a")
    assert 0.05 < float((mask != given).float().mean()) < 0.25 and bool(mask.any(-1).all())
    assert not torch.equal(mask.cummin(-1).values, mask), "no prefix any more"
    _, as_given = found.book.case("nominal_1").inputs
    assert torch.equal(as_given.cummin(-1).values, as_given)


def test_a_drawn_mask_whose_shape_the_reference_asserts_stays_as_drawn() -> None:
    body = "assert torch.equal(mask.cummin(-1).values, mask)", "return x.masked_fill(~mask, 0.0)"
    found = made("x, mask", PREFIX, *body)
    mask = found.source.nominal("a")[1]
    assert torch.equal(mask, found.source.given("a")[1]) and not found.domain.not_varied | found.domain.only_as_drawn


@pytest.mark.parametrize(("body", "least"), [("x.sum(-1) * n", 0), ("x.sum(-1) / n", 1)])
def test_drawn_whole_numbers_above_0_are_lowered_in_part(body: str, least: int) -> None:
    found = made("x, n", "torch.randn(64, 4), torch.randint(20, 40, (64,))", f"return {body}")
    given, lowered = found.source.given("a")[1], found.source.nominal("a")[1]
    assert int(lowered.min()) == least and 0 < float((lowered != given).float().mean()) < 0.4


def test_an_input_whose_other_values_are_refused_is_kept_and_named() -> None:
    body = "if bool((table != table[0]).any()):", "    raise ValueError('no')", "return x + table + shift"
    inputs = "torch.randn(9), torch.full((9,), 3.0), torch.full((9,), 8.0)"
    found = made("x, table, shift", inputs, *body)
    assert list(found.domain.not_varied) == ["table"] and "no" in found.domain.not_varied["table"]
    assert not torch.equal(found.source.nominal("a")[2], found.source.given("a")[2])


def test_whole_numbers_that_trials_hold_are_told() -> None:
    found = made("x, i, flag", "torch.randn(9), torch.arange(-3, 6), torch.rand(9) > 0.5", "return x.abs() + i * flag")
    assert [(each.name, each.low, each.high) for each in found.domain.whole_numbers] == [("i", -3, 5)]


def test_of_many_arguments_those_of_one_form_are_in_different_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    dealt = (0, 1, 3, 4, 5, 6, 7, 2, 8)  # the copies six places from each other
    monkeypatch.setattr(SecretSource, "shuffled", lambda *_: list(dealt))
    draws = "torch.randn(1, 9), *(lambda a: (a, a.clone()))(torch.randn(9))"
    draws += "".join(f", torch.randn({n}, 9)" for n in range(2, 8))
    apart = made("a, b, c, d, e, f, g, h, i", draws, "return a + b * c + sum(t.sum() for t in (d, e, f, g, h, i))")
    shares = inputs_apart(apart.domain.names, apart.book.changes.alone).values()
    assert len(shares) == 6 and frozenset().union(*shares) == frozenset(range(9))
    assert not any({1, 2} <= share for share in shares)


def test_a_reference_that_refuses_mixtures_gets_a_draw_for_each_set() -> None:
    body = "assert bool((x.sum(-1) - 1).abs().max() < 1e-3)", "return x * 2"
    refusing = made("x", "torch.randn(8, 64).softmax(dim=-1)", *body)
    taking = made("x", "torch.randn(8, 64).softmax(dim=-1)", body[1])
    assert isinstance(refusing.source.fill("a", N_SETS), Draws)
    assert isinstance(taking.source.fill("a", N_SETS), Mixtures)


LOSES = 'raise RuntimeError("CUDA error: device-side assert triggered")'


@pytest.mark.parametrize(
    ("names", "inputs", "bad", "tried", "skipped"),
    [
        (
            "x",
            "torch.rand(64, 16)",
            "bool((x > 1).any())",
            ["shifted", "row_scaled", "blocked", "outliers", "few_outliers", "large_inputs, twice as large"],
            {"shifted", "row_scaled", "blocked", "outliers", "few_outliers"},
        ),
        (
            "x, n, m",
            "torch.rand(64, 16), torch.full((64,), 16), torch.full((64,), 9)",
            "bool((n != 16).any())",
            ["other inputs", *(f"other n, way {i}" for i in range(5))],
            {"n"},
        ),
        (
            "x, n, m",
            "torch.rand(64, 16), torch.full((64,), 16), torch.full((64,), 16)",
            "bool((n != 16).any()) and bool((m != 16).any())",
            ["other inputs", "other inputs, each accepted alone"],
            {"n", "m"},
        ),
    ],
    ids=["a probability", "a length", "two lengths"],
)
def test_what_loses_the_gpu_is_named_and_left_out_the_next_time(
    names, inputs, bad, tried, skipped, monkeypatch
) -> None:
    lost = []

    def settle(_device: Cpu) -> None:  # as CUDA does: every later call fails
        if lost:
            raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(Cpu, "settle", settle)
    monkeypatch.setattr(torch, "lost_for_this_test", lost, raising=False)
    body = (f"if {bad}:", "    torch.lost_for_this_test.append(1)", "    " + LOSES, "return x.sum(-1)")
    fatal_attempts: frozenset[str] = frozenset()
    for what in tried:
        with pytest.raises(DeviceLostError, match=f"^{what}$"):
            made(names, inputs, *body, fatal_attempts=fatal_attempts)
        fatal_attempts |= {what}
        lost.clear()
    found = made(names, inputs, *body, fatal_attempts=fatal_attempts)
    assert set(found.domain.skipped | found.domain.not_varied) == skipped
    assert not skipped & set(found.domain.names)


def test_a_failure_that_leaves_the_gpu_answering_is_an_objection_as_any_other() -> None:
    found = made("x", "torch.rand(64, 16)", "if bool((x > 1).any()):", f"    {LOSES}", "return x.sum(-1)")
    assert "device-side assert" in found.domain.skipped["shifted"]


def test_inputs_in_float64_are_judged_with_outliers_too() -> None:
    found = made("x", "torch.randn(8, 32, dtype=torch.float64)", "return 2 * x")
    assert "outliers" in found.domain.names and not found.domain.skipped
    assert float(found.book.contents.of("outliers")[0][0].abs().max()) > 100
