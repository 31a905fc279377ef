"""A judge of a reference that a test writes down in a line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass

HEAD = "import torch\nfrom torch import nn\ndef get_init_inputs():\n    return []\n"
MODEL = "class Model(nn.Module):\n    def forward(self, {args}):\n        {body}\n"
INPUTS = "def get_inputs():\n    return [{inputs}]\n"


def reference(args: str, body: str, inputs: str) -> str:
    return HEAD + MODEL.format(args=args, body=body) + INPUTS.format(inputs=inputs)


@contextmanager
def judging(
    source: str,
    tmp_path: Path,
    tolerance: str = "fp32",
    memory_bytes: int | None = None,
    call_timeout_s: float = 30.0,
    *,
    has_candidates: bool = True,
) -> Iterator[JudgeProcess]:
    device = detect_device("cpu")
    device = replace(device, memory_bytes=memory_bytes or device.memory_bytes)
    problem = Target(
        name="p",
        reference_source=source,
        interface=Interface.C,
        tolerance=PrecisionClass(tolerance),
        device=device,
        call_timeout_s=call_timeout_s,
    )
    judge = JudgeProcess(problem, os.urandom(16), tmp_path, has_candidates=has_candidates)
    try:
        yield judge
    finally:
        judge.close()
