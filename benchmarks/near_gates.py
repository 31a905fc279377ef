"""How often verifications of one kernel agree: kernels near a gate, each verified again under fresh secrets.

    PYTHONPATH=src python benchmarks/near_gates.py [KERNEL …] [--device cuda] [--verifications 50]

The first verdict is a search's. Each further one draws secrets of its own; `share` is how many of these agree with the
first one, in their status and in their precision class. The kernels lie in `near_gates/`: Winograd's convolutions
F(2x2, 3x3) and F(4x4, 3x3), a softmax with a polynomial for its exponential, a layer norm in one pass, a product of sums
of two bf16 numbers, and Strassen's product with four levels, and with five, whose error is the gate itself. On a GPU it is
an attention in fp16 that a language model wrote, on Hopper's tensor cores. Each entry is written as it ends, beside those
that the file holds already.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from kernel import built, described, kernel_of
from result import merge_result, provenance

from ridgeline.tools.engine import VerifyTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import DescribedTarget, Device, Target
from ridgeline.tools.records.results import Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Purpose

FOLDER = Path(__file__).parent / "near_gates"
SUFFIXES = {DeviceKind.CPU: ".cpp", DeviceKind.CUDA: ".cu"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NearGate:
    """One kernel: its reference, and its source in parts."""

    reference: str
    parts: tuple[str, ...]
    device: DeviceKind = DeviceKind.CPU
    tolerance: PrecisionClass = PrecisionClass.FP32

    def target(self, name: str, device: Device) -> Target:
        """Return its problem, not yet described."""
        source = (FOLDER / f"{self.reference}.py").read_text()
        return Target(
            name=name,
            reference_source=source,
            interface=Interface.C,
            tolerance=self.tolerance,
            device=device,
        )

    def candidate(self, problem: Target) -> Candidate:
        """Return it as a candidate for its problem."""
        source = "".join((FOLDER / part).with_suffix(SUFFIXES[self.device]).read_text() for part in self.parts)
        return kernel_of(problem, source, name=problem.name)


KERNELS = {
    "winograd_2": NearGate(reference="convolution", parts=("winograd_2", "winograd_body")),
    "winograd_4": NearGate(reference="convolution", parts=("winograd_4", "winograd_body")),
    "fast_exp": NearGate(reference="softmax", parts=("fast_exp",)),
    "one_pass": NearGate(reference="layer_norm", parts=("one_pass",)),
    "split_bf16": NearGate(reference="product", parts=("split_bf16",)),
    "strassen_4": NearGate(reference="product", parts=("levels_4", "strassen")),
    "strassen_5": NearGate(reference="product", parts=("levels_5", "strassen")),
    "attention": NearGate(
        reference="attention", parts=("attention",), device=DeviceKind.CUDA, tolerance=PrecisionClass.FP16
    ),
}


async def verdicts(name: str, engine: LocalEngine, device: Device, number: int) -> tuple[Verdict, list[Verdict]]:
    """Return a search's verdict on a kernel, and those of as many verifications under secrets of their own."""
    kernel = KERNELS[name]
    problem = await described(engine, kernel.target(name, device))
    candidate = kernel.candidate(problem)
    build = await built(engine, problem, candidate)

    async def verified(problem: DescribedTarget, own_secrets: int, step: str) -> Verdict:
        return await engine.submit(
            VerifyTask(
                problem=problem,
                candidate=candidate,
                build=build,
                purpose=Purpose.SEARCH,
                own_secrets=own_secrets,
                step=step,
            )
        )

    first = await verified(problem, 0, "")
    return first, [await verified(problem, 1, f"again {i}") for i in range(number)]


def agreement(first: Verdict, others: Sequence[Verdict]) -> dict[str, Any]:
    """Return the share of verdicts that agree with the first one, and what all of them said."""
    agree = sum((v.status, v.precision_class) == (first.status, first.precision_class) for v in others)
    margins = sorted(v.margin or 0.0 for v in others)
    return {
        "first": {"status": first.status, "margin": first.margin, "secrets": first.draws, "reason": first.reason},
        "verifications": len(others),
        "agree": agree,
        "share": agree / len(others),
        "statuses": dict(Counter(v.status.value for v in others)),
        "margin": {"smallest": margins[0], "median": median(margins), "largest": margins[-1]},
        "judged_again": sum(v.draws > 1 for v in others),
        "verify_s": {
            "judged_once": median([v.verify_s for v in others if v.draws == 1] or [0.0]),
            "judged_again": median([v.verify_s for v in others if v.draws > 1] or [0.0]),
        },
    }


async def measure(names: Sequence[str], device: Device, number: int, folder: Path) -> None:
    """Verify each kernel, and write its entry."""
    for name in names:
        engine = LocalEngine(cache_dir=folder, log=folder / "engine.log")
        try:
            first, others = await verdicts(name, engine, device, number)
        finally:
            await engine.aclose()
        entry = agreement(first, others)
        print(name, entry)
        merge_result(f"near-gates-{device.kind}", {name: {**entry, "measured": provenance()}}, device=device)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", default=[], help="default: all of the device's")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--verifications", type=int, default=50)
    args = parser.parse_args()
    device = detect_device(args.device)
    names = args.kernels or [name for name, kernel in KERNELS.items() if kernel.device is device.kind]
    with tempfile.TemporaryDirectory(prefix="ridgeline-near-gates-") as folder:
        Path(folder).chmod(0o755)  # confined code may be another user
        asyncio.run(measure(names, device, args.verifications, Path(folder)))


if __name__ == "__main__":
    main()
