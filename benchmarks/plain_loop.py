"""Hold the judge's times of PyTorch against a plain loop of a fresh process, as a user would write one.

    PYTHONPATH=src python benchmarks/plain_loop.py [--device cpu|cuda] [--repeats 5]

The plain loop rotates over as many sets of inputs as the judge has, or as fit beside it, keeps each result until its set
comes again, and has no variable of Ridgeline's in its environment. A second such process says how far two of them agree.
Both and the judge take turns; a ratio is judge / loop, or other loop / loop, within one turn.
`results/plain-loop-KIND.json` holds the medians by size and mode.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from result import write_sizes

from ridgeline.tools.judge.messages import PrepareMode
from ridgeline.tools.judge.set_count import MIN_SETS
from ridgeline.tools.local.problem_session import ProblemSession
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.benchmark import time_alone
from ridgeline.tools.measure.sides import ReferenceInJudge, ReferenceSide
from ridgeline.tools.measure.statistics import StoppingRule
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.problem import Device, Target
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Purpose
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

SIZES = {
    DeviceKind.CPU: ((8, 64), (128, 512), (1024, 1024), (8192, 1024)),
    DeviceKind.CUDA: ((256, 256), (4096, 2048), (16384, 16384), (65536, 32768)),
}
"""Some 20 us, 200 us, 2 ms and 20 ms on 2 cores, on an H200 from some 20 us of launches to 10 ms and more: see `fitted`."""
MODES = (ReferenceMode.EAGER, ReferenceMode.COMPILE)
RULE = StoppingRule(smallest=20, largest=40, time_s=2.0)
LOOP_S = 1.0
REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(cols))
    def forward(self, x):
        return torch.softmax(nn.functional.gelu(x + self.bias), dim=-1)

def get_inputs():
    return [torch.randn({rows}, {cols})]

def get_init_inputs():
    return [{cols}]
"""
LOOP = """
import sys, time
from statistics import median
import torch
names = {}
exec(sys.argv[1], names)
n_sets, mode, device = int(sys.argv[2]), sys.argv[3], sys.argv[4]
model = names["Model"](*names["get_init_inputs"]()).to(device)
call = torch.compile(model, dynamic=False) if mode == "compile" else model
sets = [[each.to(device) for each in names["get_inputs"]()] for _ in range(n_sets)]
results = [None] * n_sets
wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
def block(first, calls):
    began = time.perf_counter()
    for i in range(first, first + calls):
        results[i % n_sets] = call(*sets[i % n_sets])
    wait()
    return (time.perf_counter() - began) / calls
with torch.no_grad():
    block(0, n_sets)
    for line in sys.stdin:
        calls = max(3, min(n_sets, int(0.012 / block(0, 5))))
        ended, times, first = time.perf_counter() + float(line), [], 0
        while time.perf_counter() < ended:
            times.append(block(first, calls))
            first += calls
        print(median(times), flush=True)
"""


class PlainLoop:
    """A fresh process that runs a loop, without any variable of Ridgeline's in its environment."""

    def __init__(self, program: str, *words: object) -> None:
        """Start a program that answers each line of input, seconds, with a line of figures."""
        ours = ("OMP_", "GOMP_", "KMP_", "MALLOC_")
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, words)],
            env={name: value for name, value in os.environ.items() if not name.startswith(ours)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def loop(self, seconds: float) -> list[float]:
        """Return the figures of a loop of so many seconds."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return [float(word) for word in self._process.stdout.readline().split()]

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def fitted(rows: int, cols: int, memory_bytes: int) -> int:
    """Return the rows, halved until a twelfth of the device's memory holds what the judge has of them at least.

    That are MIN_SETS sets of inputs and outputs in float32, and one of either in float64. A judge was seen to take twenty
    sets beside those that it rotates over.
    """
    while 2 * rows * cols * (4 * MIN_SETS + 8) > memory_bytes / 12 and rows > 1:
        rows //= 2
    return rows


def sets_beside(n_sets: int, set_bytes: int, device: Device) -> int:
    """Return how many sets a loop rotates over beside a judge with `n_sets`: as many, if a tenth of the memory holds them."""
    return min(n_sets, max(MIN_SETS, device.memory_bytes // 10 // set_bytes))


def compare(rows: int, cols: int, mode: ReferenceMode, device: Device, repeats: int) -> dict[str, Any]:
    """Return the judge's and the loop's times of one size in one mode, and their ratio, medians over turns."""
    source = REFERENCE.format(rows=rows, cols=cols)
    problem = Target(
        name="plain",
        reference_source=source,
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=device,
    )
    with tempfile.TemporaryDirectory() as folder:
        session = ProblemSession(Path(folder), lambda: Sandbox(probe_sandbox().tier))
        session.open(problem)
        judge = session.judge
        n_sets = sets_beside(judge.problem.n_sets, 2 * rows * cols * 4, device)
        loop, other = (PlainLoop(LOOP, source, n_sets, mode.value, device.kind.value) for _ in range(2))
        try:
            judge.ask(PrepareMode(mode=mode), timeout_s=300)
            side = _side(session, problem, mode)
            turns, settings = [], replace(TimingSettings.for_purpose(Purpose.SEARCH, device.kind), rule=RULE)
            for _ in range(repeats):
                (call_s,), (other_s,) = loop.loop(LOOP_S), other.loop(LOOP_S)
                judge_ms = 1e3 * median(time_alone(side, judge, settings=settings).values)
                turns.append((judge_ms, 1e3 * call_s, 1e3 * other_s))
                judge.stop()  # its threads take no core from the loop
        finally:
            loop.close()
            other.close()
            session.close()
    ratios = [judged / plain for judged, plain, _ in turns]
    others = [other / plain for _, plain, other in turns]
    return {
        "rows": rows,
        "cols": cols,
        "mode": mode.value,
        "n_sets": n_sets,
        "judge_ms": median(judged for judged, _, _ in turns),
        "loop_ms": median(plain for _, plain, _ in turns),
        "ratio": median(ratios),
        "ratios": ratios,
        "loop_ratio": median(others),
        "loop_ratios": others,
    }


def _side(session: ProblemSession, problem: Target, mode: ReferenceMode) -> ReferenceSide:
    """Return the reference as it is timed beside a candidate; a compiled mode in the judge, as for a baseline."""
    if mode is ReferenceMode.EAGER:
        return session.reference(problem.described(session.judge.problem.description), mode)
    return ReferenceInJudge(session.judge, mode)


def main() -> None:
    """Measure every size in every mode."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--eager", action="store_true", help="leave torch.compile out")
    arguments = parser.parse_args()
    device = detect_device(arguments.device)
    found = []
    for most_rows, cols in SIZES[device.kind]:
        rows = fitted(most_rows, cols, device.memory_bytes)
        for mode in MODES[: 1 if arguments.eager else None]:
            found.append(compare(rows, cols, mode, device, arguments.repeats))
            print({name: value for name, value in found[-1].items() if "ratios" not in name}, flush=True)
            write_sizes("plain-loop", found, device)


if __name__ == "__main__":
    main()
