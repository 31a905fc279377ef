"""What is told of an exception of the reference, or of what PyTorch makes of it."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import loading

from ridgeline.tools.judge.worker.__main__ import NOT_IN_REFERENCE, failure
from ridgeline.tools.judge.worker.user_code import load_reference, named_line


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


def test_an_error_that_no_line_of_the_reference_raised_is_told_as_one_to_report(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Else a defect of the judge is the user's fault: exit code 2, and nothing in the log."""
    load = loading("", "00")
    with pytest.raises(KeyError) as ours:
        _ = {}["trials"]
    assert str(failure(ours.value, load)) == f"reference.py: KeyError: 'trials'; {NOT_IN_REFERENCE}"
    assert "in test_an_error_that_no_line" in capfd.readouterr().err
    with pytest.raises(KeyError) as theirs:
        load_reference("def f():\n    return {}['weight']\nf()")
    assert str(failure(theirs.value, load)) == "reference.py: KeyError: 'weight'"
