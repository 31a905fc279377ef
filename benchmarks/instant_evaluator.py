"""An evaluator that answers every task at once: what is left of a candidate's time is Ridgeline's own.

Speaks the protocol of `ridgeline.tools.evaluator` (JSON lines on stdin and stdout) and measures nothing. The median
that it reports falls with every benchmark, so that a search goes on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from ridgeline.tools.records.baselines import Baseline, Baselines, Floor
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import ArgSpec, Description, Device, Signature
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Comparison, Profile, Timing, Verdict
from ridgeline.tools.records.vocabulary import PrecisionClass, Role, Status

EAGER_MS = 10.0
Body = dict[str, Any]


class InstantEvaluator:
    """Answers as a device would that judges and times in no time."""

    def __init__(self) -> None:
        self._timed = 0

    def describe(self, _body: Body) -> Record:
        """Return one input and one output."""
        names = (("x", Role.INPUT), ("out", Role.OUTPUT))
        args = tuple(ArgSpec(name=name, role=role, shape=(64, 64), strides=(64, 1)) for name, role in names)
        return Description(
            signature=Signature(args=args),
            reference_graph=None,
            compulsory_bytes=2 * 64 * 64 * 4,
            flops=0,
            reference_sha256="0" * 64,
            torch_version="none",
        )

    def baseline(self, body: Body) -> Record:
        """Return an eager time and a floor far below it."""
        eager = Baseline(name=ReferenceMode.EAGER, precision_class=PrecisionClass.FP32, median_ms=EAGER_MS, samples=10)
        floor = Floor(floor_ms=1e-3, compute_floor_ms=0.0, bound="memory", bandwidth_gbps=10.0, gflops=100.0)
        return Baselines(device=Device.from_json(body["problem"]["device"]), entries=(eager,), floor=floor)

    def verify(self, _body: Body) -> Record:
        """Return a pass."""
        return Verdict(status=Status.OK, rel_error=1e-7, precision_class=PrecisionClass.FP32, sandbox_tier="A")

    def benchmark(self, _body: Body) -> Record:
        """Return a time a little below the last one."""
        self._timed += 1
        median_ms = EAGER_MS / (1 + 0.001 * self._timed)
        speedup = EAGER_MS / median_ms
        return Timing(
            status=Status.OK,
            median_ms=median_ms,
            p10_ms=median_ms,
            p90_ms=median_ms,
            samples=10,
            reference_ms=EAGER_MS,
            speedup=speedup,
            speedup_ci95=(speedup, speedup),
        )

    def compare(self, _body: Body) -> Record:
        """Return a small gain."""
        return Comparison(ratio=0.9, ratio_ci95=(0.89, 0.91), first_ms=9.0, second_ms=10.0, blocks=10)

    def profile(self, _body: Body) -> Record:
        """Return nothing to say."""
        return Profile(bound="memory", fraction_of_floor=None, achieved_gbps=None, achieved_gflops=None)


def main() -> None:
    """Answer requests until stdin closes."""
    evaluator = InstantEvaluator()
    answers: dict[str, Callable[[Body], Record]] = {
        "DescribeTask": evaluator.describe,
        "BaselineTask": evaluator.baseline,
        "VerifyTask": evaluator.verify,
        "BenchmarkTask": evaluator.benchmark,
        "CompareTask": evaluator.compare,
        "ProfileTask": evaluator.profile,
    }
    for line in sys.stdin:
        request = json.loads(line)
        result = answers[request["task"]](request["body"])
        print(json.dumps({"id": request["id"], "result": result.to_json()}), flush=True)


if __name__ == "__main__":
    main()
