"""The ways in which PyTorch runs a reference beside a candidate or as a baseline."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class ReferenceMode(StrEnum):
    """One way to run the reference; its value names the baseline."""

    compile_mode: str  # torch.compile's, "" for eager
    uses_tf32: bool

    def __new__(cls, value: str, compile_mode: str = "", uses_tf32: bool = False) -> Self:  # noqa: FBT001, FBT002  a member's tuple is positional
        """Make a member whose value is the mode's name."""
        mode = str.__new__(cls, value)
        mode._value_ = value
        mode.compile_mode = compile_mode
        mode.uses_tf32 = uses_tf32
        return mode

    EAGER = "eager"
    EAGER_TF32 = "eager_tf32", "", True
    COMPILE = "compile", "default"
    COMPILE_TF32 = "compile_tf32", "default", True
    MAX_AUTOTUNE = "compile_max_autotune", "max-autotune"
    MAX_AUTOTUNE_TF32 = "compile_max_autotune_tf32", "max-autotune", True
    SDPA_FLASH = "sdpa_flash"  # eager with one backend of scaled_dot_product_attention, as the next three
    SDPA_EFFICIENT = "sdpa_efficient"
    SDPA_CUDNN = "sdpa_cudnn"
    SDPA_MATH = "sdpa_math"


EAGER_MODES = (ReferenceMode.EAGER, ReferenceMode.EAGER_TF32)
"""The modes that need no compilation: measured before anything else of a search."""
ATTENTION_MODES = (
    ReferenceMode.SDPA_FLASH, ReferenceMode.SDPA_EFFICIENT, ReferenceMode.SDPA_CUDNN, ReferenceMode.SDPA_MATH,
)  # fmt: skip
COMPILED_MODES = {"default": ReferenceMode.COMPILE, "max-autotune": ReferenceMode.MAX_AUTOTUNE}
"""By the `mode` of torch.compile."""
WITH_TF32 = {
    ReferenceMode.EAGER: ReferenceMode.EAGER_TF32,
    ReferenceMode.COMPILE: ReferenceMode.COMPILE_TF32,
    ReferenceMode.MAX_AUTOTUNE: ReferenceMode.MAX_AUTOTUNE_TF32,
}
"""The same mode on a GPU with TF32 on."""
