"""KernelBench's own adversarial kernels, each of which has to be rejected.

    PYTHONPATH=src python benchmarks/outside_kernelbench.py PATH [NAME …]

PATH is a copy of ScalingIntelligence/KernelBench. Its tests run every kernel of `unit_tests/test_kernels` against
level 1's first problem, a square matrix product; so does this.

- result_reuse_kernel: returns memory that it never wrote
- zero_out_kernel: sets its inputs to zero and returns zeros
- non_default_stream_kernel: cuBLAS on a stream of its own that nobody waits for. What is at fault is the timing, not
  the values: a judge that waits for every stream times all of its work. So it is either rejected, or accepted without a
  gain over the eager product, which is the same cuBLAS; either way its trick bought nothing.
"""

from __future__ import annotations

from pathlib import Path

from outside_suite import ACCEPTED, REJECTED, Published, run, text_of

KERNELS = Path("src", "kernelbench", "unit_tests", "test_kernels")
REFERENCE = Path("KernelBench", "level1", "1_Square_matrix_multiplication_.py")
MAY_PASS_WITHOUT_A_GAIN = {"non_default_stream_kernel"}


def read(suite: Path) -> list[Published]:
    """Return every adversarial kernel of the suite."""
    reference = text_of(suite / REFERENCE)
    paths = sorted((suite / KERNELS).glob("*.py"))
    if not paths:
        raise SystemExit(f"{suite / KERNELS}: holds no kernel; give the folder of a copy of KernelBench")
    return [
        Published(
            name=path.stem,
            reference=reference,
            source=text_of(path),
            expected=REJECTED | (ACCEPTED if path.stem in MAY_PASS_WITHOUT_A_GAIN else frozenset()),
            most_speedup=1.1 if path.stem in MAY_PASS_WITHOUT_A_GAIN else None,
        )
        for path in paths
    ]


if __name__ == "__main__":
    run("kernelbench-adversarial", "KernelBench's adversarial kernels", read)
