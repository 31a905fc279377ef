"""The ways in which PyTorch runs a reference beside a candidate or as a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from ridgeline.tools.records.vocabulary import DeviceKind


class ReferenceMode(StrEnum):
    """One way to run the reference; its value names the baseline in JSON, and says nothing else."""

    compile_mode: str  # torch.compile's, "" for eager
    uses_tf32: bool
    attention_backend: str  # of scaled_dot_product_attention, by SDPBackend's name; "" for torch's own choice

    def __new__(
        cls,
        value: str,
        compile_mode: str = "",
        uses_tf32: bool = False,  # noqa: FBT001, FBT002  a member's tuple is positional
        attention_backend: str = "",
    ) -> Self:
        """Make a member whose value is the mode's name."""
        mode = str.__new__(cls, value)
        mode._value_ = value
        mode.compile_mode = compile_mode
        mode.uses_tf32 = uses_tf32
        mode.attention_backend = attention_backend
        return mode

    EAGER = "eager"
    EAGER_TF32 = "eager_tf32", "", True
    COMPILE = "compile", "default"
    COMPILE_TF32 = "compile_tf32", "default", True
    MAX_AUTOTUNE = "compile_max_autotune", "max-autotune"
    MAX_AUTOTUNE_TF32 = "compile_max_autotune_tf32", "max-autotune", True
    SDPA_FLASH = "sdpa_flash", "", False, "FLASH_ATTENTION"
    SDPA_EFFICIENT = "sdpa_efficient", "", False, "EFFICIENT_ATTENTION"
    SDPA_CUDNN = "sdpa_cudnn", "", False, "CUDNN_ATTENTION"
    SDPA_MATH = "sdpa_math", "", False, "MATH"

    @property
    def needs_gpu(self) -> bool:
        """Return whether PyTorch has this way on a GPU alone."""
        return self.uses_tf32 or bool(self.attention_backend)


_WORDS: Mapping[str, str] = {
    ReferenceMode.COMPILE: "torch.compile",
    ReferenceMode.MAX_AUTOTUNE: "max-autotune",
    ReferenceMode.SDPA_FLASH: "SDPA flash",
    ReferenceMode.SDPA_EFFICIENT: "SDPA efficient",
    ReferenceMode.SDPA_CUDNN: "SDPA cuDNN",
    ReferenceMode.SDPA_MATH: "SDPA math",
    ReferenceMode.EAGER_TF32: "eager with TF32",
    ReferenceMode.COMPILE_TF32: "torch.compile with TF32",
    ReferenceMode.MAX_AUTOTUNE_TF32: "max-autotune with TF32",
}


def mode_words(name: str) -> str:
    """Return the words for a mode, by its name in JSON, wherever a reader meets it; a foreign name as it is."""
    return _WORDS.get(name, name)


MODES_ON: Mapping[DeviceKind, frozenset[ReferenceMode]] = {
    DeviceKind.CPU: frozenset(mode for mode in ReferenceMode if not mode.needs_gpu),
    DeviceKind.CUDA: frozenset(ReferenceMode),
}
"""The ways that PyTorch has on each kind of device."""
EAGER_MODES = (ReferenceMode.EAGER, ReferenceMode.EAGER_TF32)
"""The modes that need no compilation: measured before anything else of a search."""
ATTENTION_MODES = tuple(mode for mode in ReferenceMode if mode.attention_backend)
COMPILED_MODES = (ReferenceMode.COMPILE, ReferenceMode.MAX_AUTOTUNE)
"""The modes of torch.compile that are baselines."""
WITH_TF32 = {
    ReferenceMode.EAGER: ReferenceMode.EAGER_TF32,
    ReferenceMode.COMPILE: ReferenceMode.COMPILE_TF32,
    ReferenceMode.MAX_AUTOTUNE: ReferenceMode.MAX_AUTOTUNE_TF32,
}
"""The same mode on a GPU with TF32 on."""
