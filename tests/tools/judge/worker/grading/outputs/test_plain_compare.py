"""The judge's figures are those of a plain formulation, but for the last digits that another order of sums changes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from tests.tools.judge.worker.grading.outputs.moved_bytes import bytes_an_element
from tests.tools.judge.worker.grading.outputs.plain_compare import plain_difference, plain_expected

from ridgeline.tools.judge.worker.grading.outputs import chunks
from ridgeline.tools.judge.worker.grading.outputs import compare as judged
from ridgeline.tools.judge.worker.grading.outputs.compare import Difference, compare
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected, expect

SHAPES = [(), (0,), (3, 0), (0, 5), (7,), (5, 1), (4, 15), (9, 16), (2, 3, 31), (1, 3000)]
FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
SCALES = [1.0, 1e-30, 1e-170, 1e200]
SPECIAL = {
    "finite": (),
    "nan": (math.nan,),
    "infinite": (math.inf, -math.inf),
    "every": (math.nan, math.inf, -math.inf, 1e39, 1.7e308),
}


def figures(found: Difference) -> tuple[float, ...]:
    errors = found.errors
    return (errors.overall, errors.worst_row, errors.worst_element, found.crfm, found.wrong_integers)


def are_near(found: float, wanted: float, *, beside: float = 0.0) -> bool:
    both_nan = math.isnan(found) and math.isnan(wanted)
    return both_nan or math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-13 * beside)


def expect_near(found: tuple[float, ...], wanted: tuple[float, ...]) -> None:
    assert all(map(are_near, found, wanted)), (found, wanted)


def expect_expected_alike(found: Expected, wanted: Expected) -> None:
    assert found.all_finite is wanted.all_finite
    assert are_near(found.mean, wanted.mean, beside=0.0 if math.isinf(wanted.rms) else wanted.rms)
    expect_near((found.spread, found.norm, found.rms), (wanted.spread, wanted.norm, wanted.rms))
    assert (found.row_norms is None) == (wanted.row_norms is None)
    if found.row_norms is not None and wanted.row_norms is not None:
        torch.testing.assert_close(found.row_norms, wanted.row_norms, rtol=1e-9, atol=0.0)


def expect_alike(output: torch.Tensor, values: torch.Tensor) -> None:
    expected, plain = expect(values), plain_expected(values)
    expect_expected_alike(expected, plain)
    wanted = plain_difference(output, plain)
    for with_worst in (False, True):
        expect_near(figures(compare(output, expected, with_crfm=True, with_worst=with_worst)), figures(wanted))
    found = compare(output, expected)
    expect_near(figures(replace(found, crfm=wanted.crfm)), figures(wanted))  # NaN where rms is infinite


def drawn(shape: tuple[int, ...], scale: float, special: tuple[float, ...], generator: torch.Generator) -> torch.Tensor:
    values = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    if values.dim() > 1 and values.numel():
        values[..., -1, :] = 0.0  # a row that is nothing
        values[(0,) * (values.dim() - 1)] += 1e4 * scale  # ... and one that is nearly constant
    flat = values.view(-1)
    for number in special if flat.numel() else ():
        flat[int(torch.randint(flat.numel(), (), generator=generator))] = number
    return values


def rounded(values: torch.Tensor, dtype: torch.dtype, error: float, generator: torch.Generator) -> torch.Tensor:
    return (values * (1 + error * torch.randn(values.shape, generator=generator, dtype=torch.float64))).to(dtype)


FEW = 40
"""Numbers of a chunk that are so few that an output has many of them; `make soak` tries all kinds of numbers so."""


@pytest.fixture(params=[False, True], ids=["float64", "float32_first"])
def is_coarse_first(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Take elements' errors in float32 first, as on a GPU, or not."""
    monkeypatch.setattr(judged, "_is_coarse_first", lambda _output: request.param)
    return bool(request.param)


@pytest.mark.first_case
@pytest.mark.usefixtures("is_coarse_first")
@pytest.mark.parametrize(
    ("dtype", "kind", "chunk"),
    [
        pytest.param(dtype, kind, chunk, marks=[pytest.mark.slow] if chunk == FEW and (i + j) % 2 else [])
        for i, dtype in enumerate(FLOATS)
        for j, kind in enumerate(SPECIAL)
        for chunk in (FEW, chunks._CHUNK)
    ],
)
def test_figures_are_those_of_the_plain_formulation(
    dtype: torch.dtype, kind: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "_CHUNK", chunk)
    generator = torch.Generator().manual_seed(len(kind) * 8 + dtype.itemsize)
    for shape in SHAPES:
        for scale in SCALES:
            values = drawn(shape, scale, SPECIAL[kind], generator)
            for error in (0.0, 1e-6, 1.0):
                expect_alike(rounded(values, dtype, error, generator), values)


@pytest.mark.usefixtures("is_coarse_first")
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_wrong_nan_or_infinity_is_as_wrong_as_plainly(dtype: torch.dtype, bad: float) -> None:
    generator = torch.Generator().manual_seed(1)
    for shape in SHAPES:
        values = drawn(shape, 1.0, (), generator)
        output = values.to(dtype, copy=True)
        if output.numel():
            output.view(-1)[-1] = bad
        expect_alike(output, values)
        assert (compare(output, expect(values)).non_finite is not None) == bool(output.numel())


@pytest.mark.usefixtures("is_coarse_first")
@pytest.mark.parametrize("values", [1e300, 1.7e308])
def test_differences_whose_squares_float64_does_not_hold_have_the_plain_figures(values: float) -> None:
    wanted = torch.linspace(-values, values, 96, dtype=torch.float64).reshape(4, 24)
    expect_alike(-wanted, wanted)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_counts_of_wrong_integers_and_bools_are_the_plain_ones(dtype: torch.dtype) -> None:
    for shape in SHAPES:
        values = torch.randint(0, 2, shape).to(dtype)
        expect_alike(values.clone(), values)
        expect_alike(torch.randint(0, 2, shape).to(dtype), values)


def test_outputs_that_are_not_contiguous_or_remember_their_gradient_have_the_plain_figures() -> None:
    values = torch.randn(24, 40, dtype=torch.float64)
    output = (values + 1e-6).float()
    expect_alike(output.t().contiguous().t(), values)
    kept = output.clone().requires_grad_()
    assert (
        compare(2 * kept, expect(2 * values.requires_grad_())).errors == compare(2 * output, expect(2 * values)).errors
    )


@pytest.mark.usefixtures("is_coarse_first")
@pytest.mark.parametrize("chunk", [40, chunks._CHUNK])
@pytest.mark.parametrize("offset", [10.0, 99.0, 101.0, 3e3, 1e5, 1e9])
def test_rows_and_outputs_that_are_nearly_constant_have_the_plain_figures(
    offset: float, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "_CHUNK", chunk)
    generator = torch.Generator().manual_seed(1)
    for shape in ((3000,), (40, 5), (9, 33), (2, 3, 4000)):
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        values[-1] += offset
        expect_alike((values * (1 + 1e-6)).float(), values)
        expect_alike((values + offset).float(), values + offset)


def test_the_spread_of_a_constant_output_is_none() -> None:
    for shape in ((700,), (40, 5), (9, 33)):
        found = expect(torch.full(shape, 0.1, dtype=torch.float64))
        assert found.spread <= 1e-14 * found.norm


@pytest.mark.usefixtures("is_coarse_first")
@pytest.mark.parametrize("difference", [0.0, 1e-300, 1e-100, 1e-40, 1e-33, 1e-10, 1e25, 1e45, 1e120])
def test_the_worst_element_is_the_plain_one_whatever_its_size(
    difference: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "_CHUNK", 200)
    values = torch.randn(60, 20, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    values[41, 3] = 0.0
    output = values.clone()
    output[41, 3] = difference
    expect_alike(output, values)
    found = compare(output, expect(values)).errors
    assert (found.worst_element > 0.0) == (difference > 0.0)


@pytest.mark.usefixtures("is_coarse_first")
def test_the_worst_of_elements_that_float32_does_not_tell_apart_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_CHUNK", 256)
    values = torch.randn(64, 32, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    values[:, 5] = 1.0
    for worst in range(0, 64, 7):
        output = values.clone()
        output[:, 5] += 1e-3
        output[worst, 5] += 1e-11
        expect_alike(output, values)


def test_a_comparison_that_takes_elements_in_float32_first_moves_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_CHUNK", 1 << 12)
    values = torch.randn(256, 1024, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    expected, output = expect(values), (values * (1 + 1e-7)).float()
    assert bytes_an_element(lambda: compare(output, expected), output) < 92.5
    monkeypatch.setattr(judged, "_is_coarse_first", lambda _output: True)
    assert bytes_an_element(lambda: compare(output, expected), output) < 71
    exact = values.float()
    same = expect(exact.double())
    assert bytes_an_element(lambda: compare(exact, same), exact) < 84
