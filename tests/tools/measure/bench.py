"""A judge, a compiler and runners for kernels of one reference."""

import asyncio
from pathlib import Path

from tests.candidates import candidate_of

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import CompileTask, DescribeTask, VerifyTask
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.results import Verdict
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Status
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

RELU_REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return []
"""


class Bench:
    """A problem with its evaluator and compiler."""

    def __init__(self, folder: Path, reference: str, interface: str = "c", tolerance: str = "fp32") -> None:
        device, sandbox = detect_device("cpu"), Sandbox(probe_sandbox().tier)
        self.evaluator = Evaluator(device, cache_dir=folder, sandbox=sandbox)
        problem = Target(
            name="p",
            reference_source=reference,
            interface=Interface(interface),
            tolerance=PrecisionClass(tolerance),
            device=device,
        )
        self.problem = problem.described(self.evaluator.describe(DescribeTask(problem=problem)))
        self.compiler = Compiler(sandbox, folder, device)

    def verify(self, source: str, *, sanitized: bool = False, extra_trials: int = 0, own_secrets: int = 0) -> Verdict:
        candidate = candidate_of(source, interface=self.problem.interface)
        task = CompileTask(problem=self.problem, candidate=candidate, sanitized=sanitized)
        [build] = asyncio.run(self.compiler.compile_batch([task]))
        assert build.status is Status.OK, build.log
        return self.evaluator.verify(
            VerifyTask(
                problem=self.problem,
                candidate=candidate,
                build=build,
                sanitized=sanitized,
                extra_trials=extra_trials,
                own_secrets=own_secrets,
            )
        )
