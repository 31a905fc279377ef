"""Numbers beside a boundary may fall to either side of it; who rounds more on the way is wrong all the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.drawn_secrets import SECRETS
from tests.tools.judge.worker.grading.judged import Judged

from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, operation_name
from ridgeline.tools.judge.worker.grading.cases.class_errors import rounded
from ridgeline.tools.judge.worker.grading.excuses.last_bits import excused
from ridgeline.tools.judge.worker.grading.excuses.random_rounding import LastBits, shares_of
from ridgeline.tools.records.trial_names import NOMINAL
from ridgeline.tools.records.vocabulary import PrecisionClass

SIZES = [(256, 512), (32, 128)]
LARGEST = 127


def by_reciprocal(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    inverse = LARGEST / x.abs().amax(-1, keepdim=True)
    return torch.round(x * inverse).clamp(-LARGEST, LARGEST), 1 / inverse


def products(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    steps, scales = by_reciprocal(x)
    return (steps @ w) * scales


def problem(rows: int, depth: int, secret: bytes) -> Judged:
    body = [
        f"s = x.abs().amax(-1, keepdim=True) / {LARGEST}",
        f"return (torch.round(x / s).clamp(-{LARGEST}, {LARGEST}) @ w) * s",
    ]
    return Judged("x, w", f"torch.randn({rows}, {depth}), torch.randn({depth}, 64)", *body, secret=secret)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(("rows", "depth"), SIZES)
def test_rows_quantised_by_a_reciprocal_are_right(rows: int, depth: int, secret: bytes) -> None:
    assert problem(rows, depth, secret).refused_in(products) == []


@pytest.mark.first_case
@pytest.mark.parametrize(("rows", "depth"), SIZES)
@pytest.mark.parametrize("precision", [PrecisionClass.TF32, PrecisionClass.FP16, PrecisionClass.BF16])
def test_rows_quantised_in_less_are_wrong(rows: int, depth: int, precision: PrecisionClass) -> None:
    judged = problem(rows, depth, b"secret")
    for kernel in (
        lambda x, w: products(rounded(x, precision), w),
        lambda x, w: products(x, rounded(w, precision)),
    ):
        assert judged.refused_in(kernel, NOMINAL) == list(NOMINAL)


@pytest.mark.parametrize(("rows", "depth"), SIZES)
def test_rows_quantised_without_one_of_a_thousand_numbers_or_always_downwards_are_wrong(rows: int, depth: int) -> None:
    judged = problem(rows, depth, b"secret")

    def without(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        some = x.clone()
        some.view(-1)[::1000] = 0
        return products(some, w)

    def downwards(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        _, scales = by_reciprocal(x)
        return (torch.floor(x / scales) @ w) * scales

    for kernel in (without, downwards):
        assert judged.refused_in(kernel, NOMINAL) == list(NOMINAL)


DAYS = 7
STANDARDISED = {
    "mean": "return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, unbiased=False) + 1e-5)",
    "sum": "return (x - x.sum(-1, keepdim=True) / x.shape[-1]) / (x.std(-1, keepdim=True, unbiased=False) + 1e-5)",
}


def standardised(x: torch.Tensor) -> torch.Tensor:
    apart = x - x.sum(-1, keepdim=True) * torch.tensor(1 / DAYS)
    return apart / ((apart * apart).mean(-1, keepdim=True).sqrt() + 1e-5)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("body", STANDARDISED.values(), ids=STANDARDISED)
def test_rows_of_one_number_may_be_off_by_a_mean_of_a_rounded_reciprocal(body: str, secret: bytes) -> None:
    judged = Judged("x", f"torch.randint(2, 4, (4096, {DAYS})).float()", body, secret=secret)
    assert judged.refused_in(standardised) == []


def test_rows_of_one_whole_number_are_so_too_where_the_reference_computes_in_float32_alone() -> None:
    body = "x = x.to(torch.get_default_dtype())\n        " + STANDARDISED["mean"]
    judged = Judged("x", f"torch.randint(2, 4, (4096, {DAYS}))", body)
    assert judged.refused_in(lambda x: standardised(x.float())) == []


@pytest.mark.parametrize("body", STANDARDISED.values(), ids=STANDARDISED)
def test_a_mean_in_less_is_wrong_beside_rows_of_one_number(body: str) -> None:
    judged = Judged("x", f"torch.randn(4096, {DAYS})", body)
    for precision in (PrecisionClass.TF32, PrecisionClass.BF16):
        assert not judged.passes("integers", lambda x, to=precision: standardised(rounded(x * 1.1, to)))
        assert not judged.passes("nominal_0", lambda x, to=precision: standardised(rounded(x, to)))


WHOLE = {
    "int8": (
        [f"s = x.abs().amax(-1, keepdim=True) / {LARGEST}", "return torch.round(x / s).to(torch.int8)"],
        lambda x: by_reciprocal(x)[0].to(torch.int8),
    ),
    "mask": (["return x / x.norm(dim=-1, keepdim=True) > 0.04"], lambda x: x > 0.04 * (x * x).sum(-1, keepdim=True).sqrt()),
    "argmax": (
        ["return (x[:, None] * x[None]).sum(-1).fill_diagonal_(0).argmax(-1)"],
        lambda x: (x @ x.t()).fill_diagonal_(0).argmax(-1),
    ),
}  # fmt: skip


DRAWS = {"argmax": "torch.randn(192, 64)"}  # its products of all pairs take long by 16 draws


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("name", WHOLE)
def test_integers_beside_a_boundary_may_be_either(name: str, secret: bytes) -> None:
    body, kernel = WHOLE[name]
    assert Judged("x", DRAWS.get(name, "torch.randn(256, 512)"), *body, secret=secret).refused_in(kernel) == []


@pytest.mark.parametrize("name", WHOLE)
def test_integers_of_rounded_operands_are_wrong(name: str) -> None:
    body, kernel = WHOLE[name]
    judged = Judged("x", DRAWS.get(name, "torch.randn(256, 512)"), *body)
    near = () if name == "argmax" else (PrecisionClass.TF32, PrecisionClass.FP16)  # no two of so few are so near
    for precision in (*near, PrecisionClass.BF16):
        assert not judged.passes("nominal_0", lambda x, p=precision: kernel(rounded(x, p)))  # type: ignore[misc]


def test_integers_that_are_far_from_a_boundary_are_exact() -> None:
    body, kernel = WHOLE["int8"]
    judged = Judged("x", "torch.randn(256, 512)", *body)

    def off_by_one(x: torch.Tensor) -> torch.Tensor:
        whole: torch.Tensor = kernel(x)  # type: ignore[assignment]
        whole[7, 11] -= whole[7, 11].sign()
        return whole

    assert len(judged.refused_in(off_by_one)) >= 7


def test_a_boundary_of_whole_numbers_stays_where_it_is() -> None:
    judged = Judged("x", "torch.randint(0, 9, (64, 64)).float()", "return torch.where(x >= 4, x, -x)")
    assert not judged.passes("nominal_0", lambda x: torch.where(x > 4, x, -x))


def test_nothing_is_excused_where_nothing_jumps() -> None:
    judged = Judged("x", "torch.randn(64, 64)", "return torch.softmax(x, -1) @ x")
    case = judged.book.case("nominal_0")
    assert list(excused(judged.reference, case, 0, (case.expected[0].values,))) == []


QUANTISED = (
    "s = torch.linspace(0.01, 0.06, 512).to(x.dtype)",
    "z = torch.full((512,), 128, dtype=torch.int32)",
    "return torch.fake_quantize_per_channel_affine(x, s, z, 1, 0, 255)",
)


@pytest.mark.thorough
@pytest.mark.parametrize("secret", SECRETS)
def test_last_bits_decide_in_an_operation_that_refuses_float64_too(secret: bytes) -> None:
    judged = Judged("x", "torch.randn(256, 512)", *QUANTISED, secret=secret)
    s = torch.linspace(0.01, 0.06, 512)
    assert judged.reference.in_double(judged.book.case("nominal_0").inputs, {}) is None
    assert judged.refused_in(lambda x: (torch.clamp(torch.round(x / s) + 128, 0, 255) - 128) * s) == []
    halves = judged.refused_in(lambda x: (torch.clamp(torch.round(x.half() / s + 128), 0, 255) - 128) * s)
    downwards = judged.refused_in(lambda x: (torch.clamp(torch.floor(x / s + 128), 0, 255) - 128) * s)
    assert {"nominal_0", "nominal_1"} <= set(halves) & set(downwards)


def test_equal_numbers_are_moved_alike_and_others_at_random() -> None:
    values = torch.randn(4096, dtype=torch.float64).round(decimals=2)
    shares = shares_of(values, 3, 1)
    assert all(len(shares[values == v].unique()) == 1 for v in values[:64])
    for other in (shares_of(values, 4, 1), shares_of(values, 3, 2)):
        assert abs(float(((shares < 0.5) == (other < 0.5)).double().mean()) - 0.5) < 0.1
    assert float(shares.min()) >= 0 and float(shares.max()) <= 1 and abs(float(shares.mean()) - 0.5) < 0.1


@pytest.mark.parametrize("is_up", [False, True])
def test_no_result_is_moved_past_a_whole_number(is_up: bool) -> None:
    x = torch.cat([torch.rand(1000, dtype=torch.float64), 1 - 1e-9 * torch.rand(1000, dtype=torch.float64)])
    with LastBits(1, is_up=is_up):
        moved = x * 1.0
    assert float(moved.max()) <= 1 and float(((moved > x) if is_up else (moved < x)).double().mean()) > 0.4


FIXED = "return torch.round(x / 0.003).clamp(-32768, 32767).to(torch.int16)"


@pytest.mark.parametrize("secret", SECRETS)
def test_steps_of_a_scale_that_is_written_into_the_reference_may_be_either_beside_a_boundary(secret: bytes) -> None:
    judged = Judged("x", "torch.randn(128, 512) * 4", FIXED, secret=secret)

    def steps(values: torch.Tensor) -> torch.Tensor:
        return torch.round(values).clamp(-32768, 32767).to(torch.int16)

    scale = torch.tensor(0.003)
    assert judged.refused_in(lambda x: steps(x / scale)) == []
    assert judged.refused_in(lambda x: steps(x * (1 / scale))) == []
    for kernel in (lambda x: steps(rounded(x, PrecisionClass.TF32) / scale), lambda x: steps(x / scale + 0.01)):
        assert judged.refused_in(kernel, NOMINAL) == list(NOMINAL)


def test_cells_of_a_fixed_size_may_be_either_beside_a_boundary_but_not_another_one() -> None:
    judged = Judged("x", "torch.randn(512, 128)", "return torch.floor(x / 0.075).long()")
    assert judged.refused_in(lambda x: torch.floor(x * (1 / torch.tensor(0.075))).long()) == []
    assert judged.refused_in(lambda x: torch.trunc(x / 0.075).long(), NOMINAL) == list(NOMINAL)


QUANTISED_IN_16_BITS = (
    "scale = x.abs().amax(-1, keepdim=True) / 127",
    "return (x / scale).round().to(torch.int8), scale",
)


def quantised(x: torch.Tensor, *, is_scale_rounded: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise rows of 16-bit numbers in float32, by a scale as it is or as it is stored."""
    scale = x.float().abs().amax(-1, keepdim=True) / 127
    stored = scale.to(x.dtype)
    return (x.float() / (stored.float() if is_scale_rounded else scale)).round().to(torch.int8), stored


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("is_scale_rounded", [False, True])
def test_rows_of_16_bits_may_be_quantised_in_more_from_any_result_on(dtype: str, is_scale_rounded: bool) -> None:
    judged = Judged("x", f"torch.randn(64, 512).to(torch.{dtype})", *QUANTISED_IN_16_BITS)
    assert judged.refused_in(functools.partial(quantised, is_scale_rounded=is_scale_rounded)) == []


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_of_rows_of_16_bits_no_share_of_integers_may_be_another_one(share: float) -> None:
    judged = Judged("x", "torch.randn(64, 512).bfloat16()", *QUANTISED_IN_16_BITS)
    chosen = torch.rand(64, 512, generator=torch.Generator().manual_seed(1)) < share

    def one_less(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        whole, scale = quantised(x, is_scale_rounded=False)
        return torch.where(chosen, whole - 1, whole), scale

    assert "nominal_0" in judged.refused_in(one_less)


HITS = (
    "(lambda a, b: (a, b, torch.where(torch.arange(4096) < 24, a * b, torch.randn(4096))))"
    "(torch.randn(4096), torch.randn(4096))"
)


def hits(last_bits: float, *, share: float = 1.0) -> Callable[..., torch.Tensor]:
    """Return a kernel of `torch.where(a * b > c, 1e4, a)` whose products are off by last bits, in a share of the places."""

    def kernel(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        is_hit = a * b * (1 + last_bits * 2.0**-23) > c
        is_hit[int(share * len(a)) :] = True
        return torch.where(is_hit, 1e4, a)

    return kernel


@pytest.mark.parametrize("secret", SECRETS)
def test_few_numbers_may_be_far_off_where_last_bits_decide_on_them_and_others_may_not(secret: bytes) -> None:
    judged = Judged("a, b, c", f"*{HITS}", "return torch.where(a * b > c, 1e4, a)", secret=secret)
    assert judged.passes(NOMINAL[0], hits(1)) and judged.passes(NOMINAL[0], hits(-1))
    assert not judged.passes(NOMINAL[0], hits(0, share=0.99)) and not judged.passes(NOMINAL[0], hits(2.0**18))


def sums_off_by(share: float) -> Callable[..., torch.Tensor]:
    """Return a residual block whose products of bf16 numbers are off by this share of all terms before they are rounded."""

    def kernel(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        a, b = x.bfloat16().double(), w.bfloat16().double()
        signs = torch.where(shares_of(a @ b, 5, 5) < 0.5, -1.0, 1.0)
        return x + (a @ b + share * signs * (a.abs() @ b.abs())).bfloat16().float()

    return kernel


@pytest.mark.parametrize("secret", SECRETS)
def test_sums_of_16_bits_within_a_reference_may_be_rounded_to_either_side(secret: bytes) -> None:
    body = "return x + (x.bfloat16() @ w.bfloat16()).float()"
    judged = Judged("x, w", "torch.randn(64, 64), torch.randn(64, 64) / 8", body, secret=secret)
    assert judged.refused_in(sums_off_by(2.0**-23)) == []
    assert set(NOMINAL) <= set(judged.refused_in(sums_off_by(2.0**-13), NOMINAL))


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Keeps the type of every product of matrices."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.made: list[torch.dtype] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.made += [result.dtype] if operation_name(func) == "mm" else []
        return result


def test_only_the_sums_themselves_are_made_in_float64_and_no_size_of_terms_is() -> None:
    products = Products()
    with products, LastBits(1):
        torch.ones(2, 2).bfloat16() @ torch.ones(2, 2).bfloat16()
    assert products.made == [torch.bfloat16, torch.float64, torch.float32]
