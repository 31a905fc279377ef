"""What every mode of the judge needs is there before a reference runs in one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from ridgeline.tools.judge.worker import dispatch_modes
from ridgeline.tools.judge.worker.dispatch_modes import Marked, TorchDispatchMode, noticed, operation_name, run_in

WITHIN_A_MODE = """
import sys
import torch
from ridgeline.tools.judge.worker.grading.cases.vector_signs import VectorSigns
known = set(sys.modules)
with VectorSigns(()):
    torch.ones(2) + 1
print(*(name for name in sys.modules if name not in known and name.startswith("torch._dynamo")))
"""


def test_the_first_run_in_a_mode_imports_nothing_of_dynamo() -> None:
    done = subprocess.run([sys.executable, "-c", WITHIN_A_MODE], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_every_mode_is_of_the_class_that_is_ready() -> None:
    worker = Path(dispatch_modes.__file__).parent
    of_torch = [path.name for path in worker.rglob("*.py") if "from torch.utils._python_dispatch" in path.read_text()]
    assert of_torch == ["dispatch_modes.py"]


class Names(TorchDispatchMode):
    """Notes the operations of a run, and whether any has gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.has_gradients = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(operation_name(func))
        self.has_gradients = self.has_gradients or torch.is_grad_enabled()
        return func(*args, **(kwargs or {}))


def test_a_mode_notes_the_operations_of_a_run_and_of_nothing_after_it() -> None:
    x = torch.ones(2, requires_grad=True)
    seen = noticed(lambda: (x + 1) * 2, Names())
    assert (x - 1).requires_grad
    assert (seen.names, seen.has_gradients) == (["add", "mul"], False)


def test_what_a_run_gives_comes_back_without_gradients() -> None:
    x, seen = torch.ones(2, requires_grad=True), Names()
    assert not run_in(seen, lambda: x + 1).requires_grad and seen.names == ["add"]


def test_a_mark_is_of_all_views_of_memory_and_stays_where_an_operation_is_given_it() -> None:
    marked, first, other = Marked(), torch.ones(4), torch.ones(4)
    marked.note(first, (other,), is_marked=True)
    assert first[1:3] in marked and other not in marked
    marked.note(first, (other, first[:2]), is_marked=False)
    assert first in marked, "written in part"
    marked.note(first, (other,), is_marked=False)
    assert first not in marked, "another tensor's memory before"
