"""What a sanitizer's build finds that no output shows: reads and writes beyond tensors, the workspace and a call's own set."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools.measure.bench import RELU_REFERENCE, Bench

from ridgeline.tools.records.vocabulary import ReasonCode, Status

pytestmark = [
    pytest.mark.long,
    pytest.mark.sandboxed,
    pytest.mark.thorough,
    pytest.mark.usefixtures("warm_judge"),
]
RELU = "for (int64_t i = 0; i < X_NUMEL; ++i) out[i] = (x[i] > 0 ? x[i] : 0) + 1;"


@pytest.fixture(scope="module")
def bench(folder: Path) -> Iterator[Bench]:
    bench = Bench(folder, RELU_REFERENCE)
    yield bench
    bench.evaluator.close()


def kernel(statement: str = "", above: str = "") -> str:
    """Return a kernel that does the reference's work, and a statement after it."""
    return f"{above}\nvoid run(const float* x, float* out, void* workspace) {{ {RELU} {statement}; }}\n"


def test_sanitizer_names_an_overrun_that_passes_unseen(bench: Bench) -> None:
    overrun = kernel("out[0] += x[X_NUMEL + 1] > 1e30f")
    assert bench.verify(overrun).status is Status.OK
    verdict = bench.verify(overrun, sanitized=True)
    assert (verdict.status, verdict.reason_code) == (Status.RUNTIME_ERROR, ReasonCode.CRASHED)
    assert verdict.reason.endswith(
        "AddressSanitizer: use-after-poison (memory that is no tensor's): READ of size 4 in run, kernel.cpp:2"
    ), verdict
    assert bench.verify(kernel(), sanitized=True).status is Status.OK


@pytest.mark.parametrize(
    "beyond",
    [
        "out[OUT_NUMEL + 3] = 7",
        "out[0] += 0 * x[X_NUMEL + 64]",
        "out[0] += 0 * x[-1]",
        "out[0] += 0 * x[3 * (X_NUMEL + 1024)]",
        "out[-3 * (OUT_NUMEL + 1024)] = 7",
    ],
)
def test_sanitizer_finds_what_lies_beyond_tensors_that_fill_their_pages(bench: Bench, beyond: str) -> None:
    verdict = bench.verify(kernel(beyond), sanitized=True)
    assert (verdict.status, verdict.reason_code) == (Status.RUNTIME_ERROR, ReasonCode.CRASHED)
    assert "AddressSanitizer" in verdict.reason


@pytest.mark.parametrize(
    "beyond",
    [
        "static_cast<float*>(workspace)[25] = 7",
        "out[0] += 0 * static_cast<float*>(workspace)[-1]",
        "static const float* first = x; out[0] += 0 * first[1]",
        "static float* last = out; last[1] = last == out ? out[1] : 7; last = out",
    ],
)
def test_sanitizer_finds_what_lies_beyond_the_workspace_and_what_earlier_calls_were_given(
    bench: Bench, beyond: str
) -> None:
    asked = 'extern "C" size_t workspace_bytes() { return 100; }'
    own = "static_cast<float*>(workspace)[24] = 7"
    assert bench.verify(kernel(own, asked), sanitized=True).status is Status.OK
    verdict = bench.verify(kernel(beyond, asked), sanitized=True)
    assert verdict.status is Status.RUNTIME_ERROR, verdict
    assert "killed" in verdict.reason or "Sanitizer" in verdict.reason


def test_sanitizer_build_cannot_be_told_by_its_macros(bench: Bench) -> None:
    told = "#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_UNDEFINED__)\n#define AT 0\n#else\n#define AT 16\n#endif\n"
    verdict = bench.verify(kernel("own[AT] = 1", f"{told}static float* own = new float[16]();"), sanitized=True)
    assert (verdict.status, verdict.reason_code) == (Status.RUNTIME_ERROR, ReasonCode.CRASHED)
    assert "AddressSanitizer: heap-buffer-overflow" in verdict.reason
