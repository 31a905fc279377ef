"""The inline polynomials against the standard library in double precision, special values included."""

import dataclasses
import math

import numpy as np
import pytest

from ridgeline.graph.offline.text.sections import needed_sections

EXACT = {
    "exp": math.exp,
    "log": math.log,
    "erf": math.erf,
    "gelu": lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "tanh": math.tanh,
}
SPECIAL = {
    "exp": {0.0: 1.0, -100.0: 0.0, -math.inf: 0.0, 100.0: math.inf, math.inf: math.inf, 88.5: math.exp(88.5)},
    "log": {1.0: 0.0, 0.0: -math.inf, math.inf: math.inf, -1.0: math.nan, 1e38: math.log(1e38)},
    "erf": {0.0: 0.0, 5.0: 1.0, -5.0: -1.0, math.inf: 1.0, -math.inf: -1.0, 1e30: 1.0},
    "gelu": {0.0: 0.0, 1e6: 1e6, -1e6: 0.0, 1e30: 1e30},
    "sigmoid": {0.0: 0.5, 200.0: 1.0, -200.0: 0.0, math.inf: 1.0, -math.inf: 0.0},
    "silu": {0.0: 0.0, 1e6: 1e6, -1e6: 0.0},
    "tanh": {0.0: 0.0, 50.0: 1.0, -50.0: -1.0, math.inf: 1.0, -math.inf: -1.0},
}
RELATIVE_ERROR = 6e-7
ABSOLUTE_ERROR = 8e-7  # where gelu and silu approach 0 their 1 + erf and 1 + exp cancel, as in every fp32 form


def source_of(name):
    return (
        '#include "problem.h"\n#include <cmath>\n#include <cstdint>\n'
        + needed_sections([name])
        + 'extern "C" void run(const float* x, float* out, void*) {\n#pragma omp simd\n'
        + f"  for (int64_t i = 0; i < X_NUMEL; ++i) out[i] = rl_{name}(x[i]);\n}}\n"
    )


@pytest.fixture(scope="module")
def points():
    spread = np.concatenate([np.linspace(-9, 9, 1500), np.geomspace(1e-20, 80, 400)]).astype(np.float32)
    specials = [*sorted({x for values in SPECIAL.values() for x in values}), math.nan]
    data = np.ones(2000, dtype=np.float32)
    data[: spread.size] = spread
    data[spread.size : spread.size + len(specials)] = specials
    return data


def test_polynomials_match_the_library(bench, references, points):
    reference = dataclasses.replace(references["plain"], arrays={"in_0": points.reshape(20, 100)})
    results = bench.run(reference, [source_of(name) for name in EXACT])
    for name, (outputs,) in zip(EXACT, results, strict=True):
        check_curve(name, points, outputs.ravel())
        check_specials(name, points, outputs.ravel())


def check_curve(name, points, got):
    domain = (points > 0) if name == "log" else np.ones_like(points, dtype=bool)
    domain &= np.isfinite(points) & (np.abs(points) <= 87)
    exact = np.array([EXACT[name](float(x)) for x in points[domain]])
    slack = ABSOLUTE_ERROR if name in ("gelu", "silu") else 1e-37
    worst = np.max(np.abs(got[domain] - exact) / (RELATIVE_ERROR * np.abs(exact) + slack))
    assert worst < 1, f"{name}: {worst} times the allowed error"


def check_specials(name, points, got):
    for x, expected in {**SPECIAL[name], math.nan: math.nan}.items():
        value = got[np.isnan(points)][0] if math.isnan(x) else got[points == np.float32(x)][0]
        both_nan = math.isnan(expected) and math.isnan(value)
        assert both_nan or value == pytest.approx(expected, rel=2e-6), f"{name}({x}) = {value}"
