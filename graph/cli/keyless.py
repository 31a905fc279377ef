"""Which shipped problems a search without a key covers, as the offline model itself decides it.

To decide it takes torch and some ten seconds, so the answer lies in keyless.json; `python -m ridgeline.graph.keyless`
renews it after a change to the offline model or to the problems that ship.
"""

from __future__ import annotations

import json
from pathlib import Path

from ridgeline.problems.spec import load_problem, shipped_problems

KEYLESS_PATH = Path(__file__).with_name("keyless.json")
ARCH = "sm_80"
"""The oldest GPU that has the asynchronous copies and bf16 products which the composers use; later ones have more."""


def keyless_targets() -> dict[str, list[str]]:
    """Return the targets, by problem, for which the offline model composes kernels: as it was when it was last asked."""
    known: dict[str, list[str]] = json.loads(KEYLESS_PATH.read_text(encoding="utf-8"))
    return known


def ask_offline() -> dict[str, list[str]]:
    """Return the same, asked now: every reference is exported at its sizes, without their memory."""
    from ridgeline.graph.search.coverage import why_uncovered
    from ridgeline.tools.judge.outline_process import OutlineProcess
    from ridgeline.tools.local.engine import on_device
    from ridgeline.tools.records.problem import Description, Device
    from ridgeline.tools.records.vocabulary import DeviceKind

    covered: dict[str, list[str]] = {}
    with OutlineProcess(with_graphs=True) as outlines:
        for name, path in sorted(shipped_problems().items()):
            spec, covered[name] = load_problem(path), []
            for target in spec.targets:
                kind = DeviceKind(target)
                arch = ARCH if kind is DeviceKind.CUDA else "native"
                device = Device(
                    kind=kind, name=kind.value, arch=arch, uuid="", cores=2, memory_bytes=1 << 33, cache_bytes=1 << 25
                )
                problem = on_device(spec, device)
                found = outlines.outline(problem.reference_source, spec.tolerance)
                if found.signature is None:
                    continue
                description = Description(
                    signature=found.signature,
                    reference_graph=found.reference_graph,
                    compulsory_bytes=0,
                    flops=0,
                    reference_sha256="",
                    torch_version="",
                )
                if why_uncovered(problem.described(description)) is None:
                    covered[name].append(kind.value)
    return covered


def keyless_text() -> str:
    """Return what the offline model says now as the text of the file."""
    return json.dumps(ask_offline(), indent=2) + "\n"


if __name__ == "__main__":
    KEYLESS_PATH.write_text(keyless_text(), encoding="utf-8")
