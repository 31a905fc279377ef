"""Plain sums in float32, by 8 or 16 lanes, of short rows by one, are right in every trial, and what does less is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from tests.tools.judge.worker.drawn_secrets import SECRETS
from tests.tools.judge.worker.grading.judged import Judged, Kernel, sums_by_lanes
from torch.nn.attention import SDPBackend, sdpa_kernel

from ridgeline.tools.judge.worker.grading.cases.class_errors import rounded
from ridgeline.tools.judge.worker.grading.limits.lanes import Lanes
from ridgeline.tools.judge.worker.grading.limits.plain_sums import PlainSums
from ridgeline.tools.records.vocabulary import PrecisionClass

ROWS, WIDTH, CHANNELS = 64, 8192, 8
Sum = Kernel
L1 = ("return x.abs().sum(-1)", f"torch.randn({ROWS}, {4 * WIDTH})")
KURTOSIS = (
    "d = x - x.mean(-1, keepdim=True)\n        return d.pow(4).mean(-1) / d.pow(2).mean(-1) ** 2 - 3",
    f"torch.randn({ROWS}, {WIDTH})",
)
LAYER_NORM = ("return torch.nn.functional.layer_norm(x, x.shape[-1:])", f"torch.randn(2, {16 * WIDTH})")
SQUARES = ("return x.pow(2).mean((0, 1, 2))", f"torch.randn(16, 64, 64, {CHANNELS})")


def l1(add: Sum) -> Kernel:
    return lambda x: add(x.abs())


def kurtosis(add: Sum) -> Kernel:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        d = x - add(x)[:, None] / WIDTH
        return add(d**4) / WIDTH / (add(d * d) / WIDTH) ** 2 - 3

    return kernel


def squares(add: Sum) -> Kernel:
    return lambda x: add((x * x).reshape(-1, CHANNELS).t().contiguous()) / (x.numel() // CHANNELS)


def layer_norm(add: Sum) -> Kernel:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        d = x - add(x)[:, None] / x.shape[1]
        return d / (add(d * d)[:, None] / x.shape[1] + 1e-5).sqrt()

    return kernel


CASES = [(L1, l1), (KURTOSIS, kurtosis), (SQUARES, squares), (LAYER_NORM, layer_norm)]
NAMES = ["l1", "kurtosis", "squares", "layer norm"]


def by_16_lanes(terms: torch.Tensor) -> torch.Tensor:
    return sums_by_lanes(terms, 16)


def without_a_thousandth(terms: torch.Tensor) -> torch.Tensor:
    return sums_by_lanes(terms[:, : -terms.shape[1] // 1024])


def in_bf16(terms: torch.Tensor) -> torch.Tensor:
    return sums_by_lanes(terms.bfloat16()).float()


def in_fp16(terms: torch.Tensor) -> torch.Tensor:
    return sums_by_lanes(terms.half()).float()


@pytest.mark.first_case
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(("problem", "kernel"), CASES, ids=NAMES)
def test_sums_by_few_lanes_in_float32_are_right(problem: tuple[str, str], kernel: object, secret: bytes) -> None:
    judged = Judged("x", problem[1], problem[0], secret=secret)
    for add in (sums_by_lanes, by_16_lanes):
        assert judged.refused_in(kernel(add)) == []  # type: ignore[operator]


@pytest.mark.first_case
@pytest.mark.parametrize("add", [without_a_thousandth, in_bf16, in_fp16])
@pytest.mark.parametrize(("problem", "kernel"), CASES, ids=NAMES)
def test_sums_of_fewer_terms_or_in_less_are_wrong(problem: tuple[str, str], kernel: object, add: Sum) -> None:
    judged = Judged("x", problem[1], problem[0])
    assert not judged.passes("nominal_0", kernel(add))  # type: ignore[operator]


@pytest.mark.thorough
def test_channels_that_lie_side_by_side_may_be_lanes_themselves() -> None:
    judged = Judged("x", SQUARES[1], SQUARES[0])

    def one_after_the_other(x: torch.Tensor) -> torch.Tensor:
        return sums_by_lanes((x * x).reshape(-1, CHANNELS).t(), 1) / (x.numel() // CHANNELS)

    assert judged.refused_in(one_after_the_other) == []


@pytest.mark.parametrize("secret", SECRETS)
def test_running_sums_of_long_rows_in_float32_are_right_and_those_in_less_are_not(secret: bytes) -> None:
    judged = Judged("x", f"torch.randn(2, {1 << 18})", "return x.cumsum(-1)", secret=secret)

    def running(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.add.accumulate(x.numpy(), axis=-1))

    assert judged.refused_in(running) == []
    for less in (lambda x: running(x.bfloat16().float()), lambda x: running(x.half().float())):
        assert not judged.passes("nominal_0", less)


LABELS = 1024
LOSS = (
    "z",
    f"torch.where(torch.rand(256, {LABELS}) < 0.9 + 0.03 * torch.rand(256, 1), 0.77, torch.randn(256, {LABELS}))",
    "return torch.nn.functional.softplus(z).mean(-1)",
)


def loss(add: Sum) -> Kernel:
    return lambda z: add(z.clamp(min=0) + (-z.abs()).exp().log1p()) / LABELS


@pytest.mark.parametrize("secret", SECRETS)
def test_short_rows_may_be_summed_one_term_after_the_other(secret: bytes) -> None:
    judged = Judged(*LOSS, secret=secret)
    for lanes in (1, 2):
        assert judged.passes("nominal_1", loss(lambda terms, lanes=lanes: sums_by_lanes(terms, lanes)))
    for less in (lambda terms: sums_by_lanes(terms[:, :-1], 1), in_bf16, in_fp16):
        assert not judged.passes("nominal_1", loss(less))


def test_a_lane_that_is_alone_has_few_terms() -> None:
    terms = torch.full((2, 1 << 16), 1.37)
    assert torch.equal(Lanes(1).sum(terms, [1]), Lanes(16).sum(terms, [1]))
    assert torch.equal(Lanes(1).sum(terms[:, :4096], [1]), sums_by_lanes(terms[:, :4096], 1))
    assert Lanes(1).product(torch.ones(1, 2, 8), torch.ones(1, 8, 2)) is None
    assert Lanes(1).product(torch.ones(1, 2, 8), torch.ones(1, 8, 1)) is not None


SAMPLES, FEATURES = 4096, 32
COVARIANCE = ("x = x - x.mean(0)\n        return x.T @ x / (x.shape[0] - 1)", f"torch.randn({SAMPLES}, {FEATURES})")


def covariance(add: Callable[[torch.Tensor], torch.Tensor]) -> Kernel:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        x = x - x.mean(0)
        return add((x[:, :, None] * x[:, None, :]).reshape(SAMPLES, -1)).reshape(FEATURES, FEATURES) / (SAMPLES - 1)

    return kernel


def by_one_accumulator(terms: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.add.accumulate(terms.numpy(), axis=0)[-1].copy())


@pytest.mark.parametrize("secret", SECRETS)
def test_products_of_one_accumulator_an_output_are_right(secret: bytes) -> None:
    judged = Judged("x", COVARIANCE[1], COVARIANCE[0], secret=secret)
    assert judged.refused_in(covariance(by_one_accumulator)) == []


@pytest.mark.parametrize(
    "add",
    [
        lambda terms: by_one_accumulator(terms[: -SAMPLES // 1024]),
        lambda terms: by_one_accumulator(terms.bfloat16().float()),
        lambda terms: by_one_accumulator(rounded(terms, PrecisionClass.TF32)),
    ],
    ids=["a thousandth less", "bf16", "tf32"],
)
def test_products_of_fewer_terms_or_in_less_are_wrong(add: Callable[[torch.Tensor], torch.Tensor]) -> None:
    judged = Judged("x", COVARIANCE[1], COVARIANCE[0])
    assert not judged.passes("nominal_0", covariance(add))


VOCABULARY = 1 << 16


@pytest.mark.parametrize("secret", SECRETS)
def test_exponentials_summed_by_few_lanes_are_right(secret: bytes) -> None:
    judged = Judged("x", f"torch.randn(8, {VOCABULARY})", "return torch.logsumexp(x, -1)", secret=secret)

    def kernel(x: torch.Tensor) -> torch.Tensor:
        largest = x.amax(-1)
        return sums_by_lanes((x - largest[:, None]).exp()).log() + largest

    assert judged.refused_in(kernel) == []


@pytest.mark.parametrize("secret", SECRETS)
def test_a_loss_that_is_one_operation_may_be_summed_plainly(secret: bytes) -> None:
    sizes = "torch.randn(2, 2, 256, 256), torch.randint(0, 2, (2, 256, 256))"
    judged = Judged("x, y", sizes, "return torch.nn.functional.cross_entropy(x, y)", secret=secret)

    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        losses = torch.nn.functional.cross_entropy(x, y, reduction="none")
        return sums_by_lanes(losses.reshape(1, -1))[0] / losses.numel()

    assert judged.refused_in(kernel) == []


def test_a_transform_by_its_definition_is_right_beside_a_bin_that_nearly_cancels_and_one_in_bf16_is_not() -> None:
    angles = 2 * np.pi * (np.arange(256)[:, None] * np.arange(129) % 256) / 256
    tables = tuple(torch.from_numpy(table(angles)).float() for table in (np.cos, np.sin))

    def power(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        sums = torch.zeros(len(x), 129)
        for place in range(256):
            sums += x[:, place : place + 1] * table[place]
        return sums**2

    def kernel(x: torch.Tensor) -> torch.Tensor:
        return torch.log(power(x, tables[0]) + power(x, tables[1]) + 1e-6)

    body = "return torch.log(torch.fft.rfft(x).abs().pow(2) + 1e-6)"
    judged = Judged("x", "torch.randn(256, 256)", body, secret=b"t1")
    assert judged.passes("nominal_0", kernel)
    assert not judged.passes("nominal_0", lambda x: kernel(rounded(x, PrecisionClass.BF16)))


def test_a_product_is_added_in_float32_by_its_lanes() -> None:
    first, second = torch.randn(2, 5, 1 << 10), torch.randn(2, 1 << 10, 3)
    for lanes, own in ((8, 1), (16, 16)):
        made = Lanes(lanes).product(first, second)
        terms = (first[:, :, None] * second.transpose(1, 2)[:, None]).reshape(30, -1)
        assert made is not None
        torch.testing.assert_close(made.reshape(-1), sums_by_lanes(terms, own), rtol=0.0, atol=2e-5)
        assert not torch.equal(made.double(), first.double() @ second.double())
    assert Lanes(8).product(torch.empty(0, 1, 8), torch.empty(0, 8, 1)) is None


def test_a_plain_sum_adds_in_float32_by_its_lanes() -> None:
    terms = torch.full((2, 1 << 12), 0.1)
    lost = Lanes(8).sum(terms.double(), [1]) - terms.double().sum(-1)
    torch.testing.assert_close(lost, sums_by_lanes(terms) - terms.double().sum(-1), rtol=0.1, atol=0.0)
    assert not torch.equal(Lanes(8).sum(terms, [1]), Lanes(16).sum(terms, [1]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_scale_takes_no_digit_of_numbers_of_16_bits(dtype: torch.dtype) -> None:
    x, w = torch.rand(6, 96).to(dtype), torch.rand(96, 7).to(dtype)
    plain = Lanes(8, 1.37)
    found = plain.product(x[None], w[None])
    assert found is not None
    torch.testing.assert_close(found[0].double(), x.double() @ w.double(), rtol=1e-6, atol=0.0)
    torch.testing.assert_close(plain.sum(x, [1]).double(), x.double().sum(-1), rtol=1e-6, atol=0.0)
    torch.testing.assert_close(plain.running_sum(x, 1).double(), x.double().cumsum(-1), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize(
    "body",
    [
        "x.sum()", "x.sum((0, 2), keepdim=True)", "x.mean(1)", "x.var()", "x.std((0, 1), correction=0)", "x.norm(dim=-1)",
        "torch.cat(torch.var_mean(x, 2, keepdim=True))", "torch.linalg.vector_norm(x, 1, dim=0)", "x.norm(3)",
        "torch.nn.functional.mse_loss(x, y)", "torch.nn.functional.huber_loss(x, y, reduction='sum', delta=0.5)",
        "torch.nn.functional.smooth_l1_loss(x, y, reduction='none')",
        "torch.nn.functional.binary_cross_entropy(x, y)", "x.sum(-1).cumsum(0)", "x.cumsum(1)", "x.sum(dtype=torch.float64)",
        "torch.nn.functional.layer_norm(x, (7, 9), y[0], y[1])", "torch.nn.functional.layer_norm(x, (9,))",
        "torch.nn.functional.group_norm(x.transpose(0, 1), 3, y[0, :6, 0], y[1, :6, 0])",
        "torch.nn.functional.instance_norm(x)", "torch.nn.functional.batch_norm(x, None, None, training=True)",
        "torch.nn.functional.batch_norm(x, y[0, :, 0], y[1, :, 0], y[2, :, 0])",
        "x @ y.transpose(1, 2)", "x[0] @ y[1].T", "x[0] @ y[0, 0]", "x[0, 0] @ y[0, 0]", "x[0, :, 0] @ y[1]",
        "torch.addmm(x[0, 0], x[0].T, y[0], beta=2, alpha=0.5)", "torch.addmm(x[0, 0], x[0].T, y[0], beta=0)",
        "torch.baddbmm(x[:, :, :7], x, y.transpose(1, 2), alpha=3)", "torch.addmv(x[0, :, 0], x[0], y[0, 0], beta=2)",
        "torch.nn.functional.linear(x, y[0], y[0, :, 0])", "torch.einsum('bij,bkj->bik', x, y)",
        "torch.nn.functional.scaled_dot_product_attention(x, y, y)",
        "x.logsumexp(-1)", "x.logsumexp((0, 2), keepdim=True)", "x.softmax(1)", "x.log_softmax(-1)", "x.nansum(0)",
        "torch.nn.functional.cross_entropy(x, y[:, 0].argmax(-1, keepdim=True).expand(-1, 9) % 7, reduction='sum')",
        "torch.nn.functional.cross_entropy(x[0], torch.arange(7), weight=y[0, 0], label_smoothing=0.1)",
        "torch.nn.functional.nll_loss(x[0], torch.arange(7), reduction='none')",
        "torch.nn.functional.soft_margin_loss(x, y)", "torch.nn.functional.multi_margin_loss(x[0], torch.arange(7))",
        "torch.fft.rfft(x).abs()", "torch.fft.fft(x, dim=1, norm='ortho').imag", "torch.fft.rfft2(x, norm='forward').real",
        "torch.fft.irfft(torch.fft.rfft(x), n=9)", "torch.fft.irfft(torch.complex(x, y), n=16)",
        "torch.fft.ifft2(torch.complex(x, y)).imag", "torch.fft.irfftn(torch.complex(x, y), s=(6, 7, 12), norm='ortho')",
        "torch.fft.hfft(torch.complex(x, y), dim=0) + 9", "torch.matrix_exp(x[:, :, :7] * y[:, :1, :1])",
        "torch.linalg.matrix_exp(torch.zeros(2, 3, 3) + x[0, :3, :3] * 4)", "torch.matrix_exp(x[0, :3, :3])",
        "torch.stft(x[0, 0], 8, window=y[0, 0, :8], return_complex=True).abs()",
    ],
)  # fmt: skip
def test_every_reduction_is_the_same_but_for_its_last_bits(body: str) -> None:
    x, y = torch.rand(6, 7, 9, dtype=torch.float64), torch.rand(6, 7, 9, dtype=torch.float64)
    want = eval(body, {"x": x, "y": y, "torch": torch})
    for lanes in (8, 16):
        with sdpa_kernel(SDPBackend.MATH), PlainSums(Lanes(lanes, 1.37)):
            found = eval(body, {"x": x, "y": y, "torch": torch})
        assert found.shape == want.shape and found.dtype is want.dtype
        torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-7)
