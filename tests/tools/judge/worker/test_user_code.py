"""What is told of an exception of the reference, or of what PyTorch makes of it."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.judge.worker.user_code import named_line


def test_of_torchs_error_the_frames_of_its_c_plus_plus_are_left_out() -> None:
    with pytest.raises(TypeError, match="frame #0") as caught:
        torch.rand(10**23)
    assert named_line(caught.value).endswith('at pos 1 with error "Overflow when unpacking long long"')


def test_of_inductors_error_the_compilers_words_are_told_and_not_its_command() -> None:
    from torch._inductor.exc import CppCompileError  # a second of imports, which no other test's process needs

    command = ["g++", "-x", "c++-header", *(f"-D TORCH_{n}" for n in range(100))]
    error = CppCompileError(command, "/tmp/torchinductor/abc.h: fatal error: writing file: No space left on device")
    said = "CppCompileError: C++ compile error /tmp/torchinductor/abc.h: fatal error: writing file: No space left on device"
    assert named_line(error).startswith(said)
