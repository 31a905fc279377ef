"""NaN and infinities come where the reference asks for them, of the kinds and in the inputs that it takes."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import SOURCE, made

from ridgeline.tools.judge.worker.domain.arguments import not_finite_inputs
from ridgeline.tools.judge.worker.domain.arguments.asked_numbers import asks_for_not_finite
from ridgeline.tools.judge.worker.domain.halving import UNTRIED
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import NOMINAL, NOT_FINITE, ONE_INFINITE, ONE_NAN, as_kind
from ridgeline.tools.records.vocabulary import PrecisionClass

DRAW = "torch.randn(32, 16)"
SKIPPED_STEP = "return torch.where(torch.isfinite(y).all(), x - 0.1 * y, x)"


def asks(*body: str, draw: str = DRAW, names: str = "x") -> bool:
    lines = "\n".join(f"        {line}" for line in body)
    reference = Reference(SOURCE.format(names=names, inputs=draw, body=lines))
    return asks_for_not_finite(reference, reference.draw_inputs(1))


@pytest.mark.parametrize(
    "body",
    [
        "x.isnan()",
        "torch.isinf(x)",
        "torch.isfinite(x)",
        "torch.nan_to_num(x)",
        "x.clone().nan_to_num_()",
        "torch.nansum(x, 1)",
        "torch.nanmean(x, 1)",
        "torch.nanmedian(x, 1).values",
        "torch.isposinf(x)",
        "x != x",
        "x == float('-inf')",
        "x.abs() < float('inf')",
        "torch.fmax(x, x.flip(1))",
        "torch.fmax(torch.zeros(16), x)",
        "torch.nanquantile(x, 0.5)",
    ],
)
def test_what_takes_nan_or_an_infinity_for_something_else_asks_for_it(body: str) -> None:
    assert asks(f"return ({body}) * 1.0")


@pytest.mark.parametrize("body", ["x.softmax(1)", "x.abs() < 3", "x == x.flip(1)", "x.clamp(min=0).amax(1)"])
def test_other_operations_ask_for_nothing(body: str) -> None:
    assert not asks(f"return ({body}) * 1.0")


@pytest.mark.parametrize(
    "body",
    [
        "x.masked_fill(x < 0.5, float('-inf')).softmax(1).nan_to_num()",
        "(x / x.sum(1, keepdim=True)).nan_to_num()",
        "(x @ x.T).isfinite()",
        "x.log_softmax(1).isfinite()",
    ],
)
def test_what_the_reference_makes_of_several_numbers_is_not_asked_of_its_inputs(body: str) -> None:
    assert not asks(f"return ({body}) * 1.0", draw="torch.rand(64, 3)")


@pytest.mark.parametrize(
    "body",
    [
        "(x / y).isnan()",
        "(x - y.flip(1)).isfinite()",
        "(x / x.flip(1)).isnan()",
        "(x / x[:, :1]).isnan()",
        "(x[:, 1:] - x[:, :-1]).isinf()",
        "torch.where(y > 0.5, x, 0.0).nansum(1)",
        "torch.cat([x, x / y], 1).isnan()",
        "torch.stack([y.softmax(1), y]).isnan()",
        "torch.zeros_like(x).add_(x).add_(y).isinf()",
        "(k / y[:, 0]).isnan()",
        "k.flip(0).div(y[:, 0]).isnan()",
        "x.clone().index_put_((k > 4,), torch.zeros(3)).isnan()",
        "(k * x[:, 0]).isnan()",
        "torch.zeros(9)[k].div(x[:, 0]).isnan()",
    ],
)
def test_what_is_made_of_several_inputs_or_places_is_not_either(body: str) -> None:
    draw = "torch.rand(64, 3), torch.rand(64, 3), torch.randint(9, (64,))"
    assert not asks(f"return ({body}) * 1.0", draw=draw, names="x, y, k")


def test_memory_that_was_an_inputs_numbers_and_is_several_others_is_asked_for_nothing() -> None:
    draw = "torch.rand(512, 512)"
    assert not asks("y = x * 2", "del y", "return (x @ x).sort(1)[0].isnan() * 1.0", draw=draw)


@pytest.mark.parametrize(
    "body",
    [
        "(x * 0.5).isfinite()",
        "x.double().exp().isinf()",
        "x.T.abs().reshape(-1).isnan()",
        "(x * torch.arange(3)).isnan()",
        "(x + x.abs()).isnan()",
        "torch.where(x > 0.5, x, torch.zeros(3)).isnan()",
    ],
)
def test_what_is_made_of_each_number_by_itself_is(body: str) -> None:
    assert asks(f"return ({body}) * 1.0", draw="torch.rand(64, 3)")


@pytest.mark.parametrize(
    "body",
    [
        "x.flip(1).isnan()",
        "x.roll(1, 0).isnan()",
        "(torch.cat([x, y], 1) * 2).isnan()",
        "x[:, torch.arange(2)].isnan()",
        "x[k].isfinite()",
        "x.sort(1).values.isnan()",
        "nn.functional.pad(x, (1, 1)).isnan()",
        "x.tril().isnan()",
        "x.new_zeros(9, 3).index_copy_(0, k[:1], x[:1]).isnan()",
        "x.clone().index_put_((k,), torch.zeros(3)).isnan()",
        "x.clone().unsqueeze_(0).isnan()",
        "[c := x.clone(), c[0].zero_(), c[:, 0].fill_(1.0)][0].isnan()",
    ],
)
def test_numbers_that_are_only_moved_are_an_inputs_own(body: str) -> None:
    draw = "torch.rand(64, 3), torch.rand(64, 3), torch.randint(9, (64,))"
    assert asks(f"return ({body}) * 1.0", draw=draw, names="x, y, k")


def test_numbers_scaled_by_an_input_of_one_number_are_an_inputs_own() -> None:
    body, draw = "return torch.where((x * y).isfinite().all(), x * y, x)", "torch.randn(64, 3), torch.rand(()) + 1"
    assert asks(body, draw=draw, names="x, y")
    assert not asks("return (x / x.sum()).isnan() * 1.0")


def test_numbers_that_are_written_beside_others_are_an_inputs_own() -> None:
    lines = "out = x.new_zeros(64, 6)", "out[:, :3] = x", "out[:, 3:] = y", "return out.isnan() * 1.0"
    assert asks(*lines, draw="torch.rand(64, 3), torch.rand(64, 3)", names="x, y")
    assert not asks(lines[0], "out[:, :3] = x @ x.T[:, :3]", lines[-1], draw="torch.rand(64, 3)")


def test_a_check_of_every_number_has_trials_of_one() -> None:
    found = made("x, y", f"{DRAW}, {DRAW}", SKIPPED_STEP)
    assert {NOT_FINITE, ONE_NAN, ONE_INFINITE} <= set(found.domain.names)
    for trial, is_one in ((ONE_NAN, torch.isnan), (ONE_INFINITE, torch.isinf)):
        x, y = found.book.contents.of(trial)[0]
        assert bool(x.isfinite().all()) and int(is_one(y).sum()) == int((~y.isfinite()).sum()) == 1
    assert [name for name in found.domain.skipped if "finite" in name] == [f"{NOT_FINITE} x (nan, inf, -inf)"]


def test_kinds_that_the_reference_refuses_are_left_out_and_named() -> None:
    found = made("x", DRAW, "y = torch.where(x.isnan(), 0.0, x)", "return y - y.mean(1, keepdim=True)")
    [x] = found.book.contents.of(NOT_FINITE)[0]
    assert bool(x.isnan().any()) and not bool(x.isinf().any())
    assert f"{NOT_FINITE} x (inf, -inf)" in found.domain.skipped and ONE_INFINITE not in found.domain.names


def test_one_infinity_alone_comes_where_the_other_is_refused() -> None:
    found = made("x", DRAW, "return torch.where(x == -torch.inf, 0.0, x)")
    [x] = found.book.contents.of(NOT_FINITE)[0]
    assert bool((x == -torch.inf).any()) and not bool((x.isnan() | (x == torch.inf)).any())
    assert f"{NOT_FINITE} x (nan, inf)" in found.domain.skipped and ONE_INFINITE in found.domain.names


def test_a_single_number_that_the_reference_refuses_is_named_and_does_not_come() -> None:
    found = made("x", DRAW, "assert int(x.isnan().sum()) != 1", "return torch.where(x.isfinite(), x, 0.0)")
    assert ONE_NAN in found.domain.skipped and ONE_NAN not in found.domain.names
    assert {NOT_FINITE, ONE_INFINITE} <= set(found.domain.names)


def test_what_is_refused_together_is_not_looked_at_alone_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(not_finite_inputs, "_LIMIT_S", -1.0)
    found = made("x, y", f"{DRAW}, {DRAW}", SKIPPED_STEP)
    reasons = {name: why for name, why in found.domain.skipped.items() if name.startswith(NOT_FINITE)}
    assert NOT_FINITE not in found.domain.names and set(reasons.values()) == {UNTRIED} and len(reasons) == 2


def test_what_cannot_be_seen_in_a_mode_asks_for_nothing() -> None:
    assert not asks("assert not torch._C._len_torch_dispatch_stack()", "return x.isnan() * 1.0")


def test_lines_of_nothing_else_come_only_where_they_have_a_value() -> None:
    found = made("x", DRAW, "return x.nanmean(1)")
    is_gap = found.book.contents.of(NOT_FINITE)[0][0].isnan()
    assert bool(is_gap.all(0).any()) and not bool(is_gap.all(1).any())
    assert f"{NOT_FINITE} x (whole lines of dimension 1)" in found.domain.skipped


def test_an_input_that_holds_nan_anyhow_has_rows_of_nothing_else() -> None:
    draw = f"{DRAW}.masked_fill(torch.rand(32, 16) < 0.2, float('nan'))"
    found = made("x", draw, "return torch.where((~x.isnan()).any(1, keepdim=True), torch.nan_to_num(x), -1.0)")
    assert bool(found.book.contents.of(NOT_FINITE)[0][0].isnan().all(1).any())


def test_a_reference_that_asserts_finite_numbers_or_asks_for_nothing_has_no_such_trial() -> None:
    found = made("x", DRAW, "assert bool(torch.isfinite(x).all())", "return x * 2")
    assert NOT_FINITE not in found.domain.names and f"{NOT_FINITE} x (nan, inf, -inf)" in found.domain.skipped
    other = made("x", DRAW, "return x * 2").domain
    assert not {NOT_FINITE, ONE_NAN, ONE_INFINITE}.intersection(other.names)
    assert not any("finite" in name for name in other.skipped)


def test_errors_count_beside_what_the_output_usually_varies_by() -> None:
    found = made("x, y", f"{DRAW}, {DRAW}", "return torch.where(torch.isfinite(y).all(), x - 0.1 * y, 1 + 0.001 * x)")
    usual = found.book.case(NOMINAL[0]).expected[0]
    for trial in (NOT_FINITE, ONE_NAN, ONE_INFINITE):
        case = found.book.case(trial)
        here, own = case.expected[0], found.book.own_errors(case, PrecisionClass.FP32)
        assert here.spread < 0.002 * here.norm
        assert here.scale == pytest.approx(here.norm * usual.spread / usual.norm)
        assert own is not None and own[0].overall < 1e-6, "beside the spread of its own it is some 3e-5"
        assert as_kind(trial) == f"trial:{trial}"
