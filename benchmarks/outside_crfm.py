"""The six published CRFM kernels, under the rule they were published with: each has to be accepted, but one.

    PYTHONPATH=src python benchmarks/outside_crfm.py PATH [NAME …]

PATH is a copy of ScalingIntelligence/good-kernels: a folder a kernel with `ref.py` (`Model`) and `src.py` (`ModelNew`
with `load_inline`). `tolerance: crfm` is the original's 1e-2, absolute and relative; the class that the kernel's error
fits is measured all the same and printed, beside what an H200 gave with its L2 flushed before every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outside_suite import ACCEPTED, REJECTED, Published, run, text_of

KERNELS: Mapping[str, Mapping[str, Any]] = {
    "Conv2D": {"ms": 0.807, "eager, TF32 off / on": "1.068 / 0.832 ms", "arithmetic": "fp16 (wmma)"},
    "Conv2D_ReLU_MaxPool": {"ms": 0.966, "eager, TF32 off / on": "1.236 / 1.003 ms", "arithmetic": "fp16 (wmma)"},
    "LayerNorm": {"ms": 0.327, "eager": "8.352 ms"},
    "LayerNorm2": {},
    "MatmulFP32": {"ms": 3.703, "eager, TF32 off / on": "2.687 / 0.346 ms"},
    "Softmax": {"ms": 1.251, "eager": "1.087 ms"},
}
"""Figures of one H200 (medians of 30 calls, L2 flushed, torch 2.11, CUDA 13.0), and those of the sources."""

MAY_BE_REFUSED = frozenset({"LayerNorm2"})
"""Its running means in one float lose what skewed contents add to them beside a mean of 1000."""


def read(suite: Path) -> list[Published]:
    """Return the six kernels."""
    return [
        Published(
            name=name,
            reference=text_of(suite / name / "ref.py"),
            source=text_of(suite / name / "src.py"),
            expected=ACCEPTED | (REJECTED if name in MAY_BE_REFUSED else frozenset()),
            known=known,
        )
        for name, known in KERNELS.items()
    ]


if __name__ == "__main__":
    run("crfm", "the six published CRFM kernels, under their own tolerance", read)
