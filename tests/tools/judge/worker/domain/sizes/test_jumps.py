"""Of an output that jumps a few rows say nothing of how well conditioned it is, nor one size of what others show."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import made

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.alike import Likeness
from ridgeline.tools.judge.worker.domain.conditioning import errors_by_rounding
from ridgeline.tools.judge.worker.domain.sizes.jumps import jumps, without_jumps
from ridgeline.tools.judge.worker.domain.sizes.larger_arguments import why_larger_shows_nothing
from ridgeline.tools.judge.worker.domain.sizes.usual_trial import Arguments
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import LARGE_INPUTS, NOMINAL


@pytest.mark.parametrize(
    ("call", "is_found"),
    [
        (lambda x: x.argmax(-1), True),
        (lambda x: x.topk(2), True),
        (lambda x: x.round(), True),
        (lambda x: (x > 0).float(), True),
        (lambda x: x.relu() @ x.mT, False),
        (lambda x: x.softmax(-1), False),
    ],
)
def test_a_choice_a_rounding_and_a_comparison_jump(call: object, is_found: bool) -> None:
    x = torch.randn(4, 8)
    assert callable(call)
    assert jumps(lambda: call(x)) is is_found


def test_as_many_rows_as_may_jump_are_as_they_are_expected() -> None:
    expected = torch.randn(16, 8, dtype=torch.float64)
    output = expected.clone()
    output[[3, 7]] += 10
    output[5] += 1
    kept = without_jumps(output, expected)
    assert torch.equal(kept[[3, 7]], expected[[3, 7]])
    assert torch.equal(kept[5], output[5])
    whole = torch.arange(16)
    assert torch.equal(without_jumps(whole, whole + 1), whole)
    few = torch.ones(4, 8)
    assert torch.equal(without_jumps(few, few + 1), few), "one row of four is more than may jump"


def test_errors_of_rounded_operands_leave_out_the_rows_that_jump() -> None:
    body = "return x * (1 + (torch.arange(16) % 8 == 3).to(x.dtype)[:, None] * ((x[:, :1] * 2**16).floor() % 2))"
    found = made("x", "torch.randn(16, 8)", body)
    case = found.book.case(NOMINAL[0])
    reference: Reference = found.book._reference
    plain, left = (errors_by_rounding(reference, case, change)[0] for change in (None, without_jumps))
    assert plain is not None
    assert left is not None
    assert plain[0].overall > 0.1
    assert left[0].overall < 1e-3


@pytest.mark.parametrize("is_jumping", [False, True])
def test_where_an_output_jumps_it_is_scaled_by_much_larger_arguments_too(is_jumping: bool) -> None:
    x = torch.randn(16, 8)
    usual = Arguments(inputs=(x,), parameters={}, scalars=())

    def larger(times: float) -> Arguments:
        return Arguments(inputs=(x * times,), parameters={}, scalars=())

    def flips_once(arguments: Arguments) -> Tensors:
        (now,) = arguments.inputs
        return (now.flip(0) if bool(now.abs().max() > 16 * x.abs().max()) else now,)

    def refuses(arguments: Arguments) -> Tensors:
        if bool(arguments.inputs[0].abs().max() > 3 * x.abs().max()):
            raise BadReferenceError.of_text("too large")
        return arguments.inputs

    assert why_larger_shows_nothing(usual, larger, lambda a: a.inputs, is_jumping=is_jumping) == Likeness.SCALED
    assert why_larger_shows_nothing(usual, larger, refuses, is_jumping=is_jumping) == Likeness.SCALED
    assert why_larger_shows_nothing(usual, larger, flips_once, is_jumping=is_jumping) == (
        "" if is_jumping else Likeness.SCALED
    ), "eight times is as far as a trial of larger arguments goes"


def test_a_reference_whose_operations_take_no_mode_is_loaded_all_the_same() -> None:
    body = ("assert torch.utils._python_dispatch._get_current_dispatch_mode() is None", "return torch.tanh(x @ w)")
    assert LARGE_INPUTS in made("x, w", "torch.randn(16, 8), torch.randn(8, 8)", *body).domain.names
