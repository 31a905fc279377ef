"""Numbers that a reference moves and does not round have to come out as they are."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged

SORT = ("x", "torch.randn(64, 1024)", "return x.sort(-1).values")


def by_leading_bits(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Sort by so many bits of a number's 32, the lower ones left as they come."""
    whole = x.view(torch.int32).long()
    keys = torch.where(whole < 0, ~whole, whole + (1 << 31))
    order = (keys >> (32 - bits)).argsort(dim=-1, stable=True)
    return x.gather(-1, order)


def test_a_sort_by_most_of_the_bits_is_wrong() -> None:
    judged = Judged(*SORT)
    assert judged.refused_in(lambda x: by_leading_bits(x, 32)) == []
    assert {"nominal_0", "mixture"} <= set(judged.refused_in(lambda x: by_leading_bits(x, 24)))


@pytest.mark.parametrize(
    ("names", "inputs", "body"),
    [
        ("x", "torch.randn(64, 64)", "return torch.relu(x).mT"),
        ("x", "torch.randn(8, 64, 64)", "return torch.nn.functional.max_pool2d(x, 2)"),
        ("x, y", "torch.randn(64, 64), torch.randn(64, 64)", "return torch.cat([x, y]).flip(0)"),
        ("x, i", "torch.randn(64, 64), torch.randint(0, 64, (200,))", "return x[i]"),
        ("x", "torch.randn(64, 64)", "return x.cummax(-1).values"),
        ("x", "torch.randn(64, 64)", "return (x * 0.5).abs()"),
    ],
)
def test_a_number_that_lost_bits_is_wrong(names: str, inputs: str, body: str) -> None:
    judged = Judged(names, inputs, body)

    def right(*given: torch.Tensor) -> torch.Tensor:
        output = judged.reference.run(given)[0]
        assert isinstance(output, torch.Tensor)
        return output

    assert judged.refused_in(right) == []
    assert "nominal_0" in judged.refused_in(lambda *given: right(*given) * (1 + 2.0**-18))


def test_a_choice_that_last_bits_make_may_be_another_one() -> None:
    """The number that is chosen is moved; the product that chooses it is rounded."""
    judged = Judged("x", "torch.randn(256, 64)", "return x.gather(0, (x @ x.mT @ x).argmax(0, keepdim=True))")

    def in_double(x: torch.Tensor) -> torch.Tensor:
        wide = x.double()
        return x.gather(0, (wide @ wide.mT @ wide).argmax(0, keepdim=True))

    assert judged.refused_in(in_double) == []


def test_what_is_moved_beside_what_is_computed_keeps_its_bits() -> None:
    judged = Judged("x", "torch.randn(64, 1024)", "return x.softmax(-1), x.sort(-1).values")
    assert judged.refused_in(lambda x: (x.softmax(-1), by_leading_bits(x, 32))) == []
    assert "nominal_0" in judged.refused_in(lambda x: (x.softmax(-1), by_leading_bits(x, 24)))


def test_what_is_written_into_moved_numbers_is_computed() -> None:
    judged = Judged(
        "x", "torch.randn(64, 64)", "y = x.clone()", "y[:, :1] = y[:, :1].tanh() * 0 + y[:, 1:2].tanh()", "return y"
    )

    def otherwise(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, :1] = y[:, 1:2].tanh() * (1 + 2.0**-22)
        return y

    assert judged.refused_in(otherwise) == []


def test_numbers_that_are_computed_keep_their_limit() -> None:
    judged = Judged("x", "torch.randn(64, 64)", "return torch.where(x > 0, x, 0.1 * x)")
    assert judged.refused_in(lambda x: torch.where(x > 0, x, 0.1 * x) * (1 + 2.0**-22)) == []


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        ("torch.randn(64, 64)", "return torch.tanh(x.float())"),
        ("torch.randn(64, 64)", "return torch.tanh(x.view(torch.int32).view(torch.float32))"),
        ("torch.randn(64, 64, dtype=torch.float64)", "return torch.tanh(x)"),
        ("torch.randn(64, 64)", "return torch.tanh(x.float()).sort(-1).values"),
    ],
    ids=["casts", "looks at bits", "float64", "computes, then moves"],
)
def test_what_float64_does_not_show_the_rounding_of_keeps_its_limit(inputs: str, body: str) -> None:
    """The expected output is then the reference's own, and its own error is 0."""
    judged = Judged("x", inputs, body)

    def otherwise(x: torch.Tensor) -> torch.Tensor:
        output = judged.reference.run((x,))[0]
        return output * (1 + 4 * torch.finfo(x.dtype).eps)

    assert judged.refused_in(otherwise) == []


def test_what_is_moved_may_be_flushed_to_zero() -> None:
    judged = Judged("x", "(30 * torch.randn(64, 512)).softmax(-1)", "return x.view(64, 256, 2).amax(-1)")
    x = judged.book.case("nominal_0").inputs[0]
    assert bool(((x > 0) & (x < torch.finfo(torch.float32).tiny)).any())

    def flushed(x: torch.Tensor) -> torch.Tensor:
        largest = x.view(64, 256, 2).amax(-1)
        return torch.where(largest.abs() < torch.finfo(torch.float32).tiny, 0.0, largest)

    assert judged.refused_in(flushed) == []
    assert "nominal_0" in judged.refused_in(lambda x: flushed(x) * (1 + 2.0**-18))
