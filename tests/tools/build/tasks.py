"""What makes the tasks of a compiler's tests, what some of them need, and a kernel that does nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from ridgeline.tools.engine import CompileTask
from ridgeline.tools.records.problem import DescribedTarget

MakeTask = Callable[..., CompileTask]
MakeProblem = Callable[..., DescribedTarget]
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
EMPTY_RUN = "void run(const float*, float*, void*) {}\n"
