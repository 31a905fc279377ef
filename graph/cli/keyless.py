"""The shipped problems for which the offline model composes kernels, so that a search needs no key.

The offline model's answer takes torch and about ten seconds, so keyless.json keeps it. After a change to the offline
model or to the shipped problems, `python -m ridgeline.graph.cli.keyless` renews the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ridgeline.problems.spec import load_problem, shipped_problems

if TYPE_CHECKING:
    from ridgeline.problems.spec import ProblemSpec
    from ridgeline.tools.judge.outline_process import OutlineProcess

KEYLESS_PATH = Path(__file__).with_name("keyless.json")
ARCH = "sm_80"
"""The oldest architecture with the asynchronous copies and the bf16 products that the composers use."""


def keyless_targets() -> dict[str, list[str]]:
    """Return the targets, by problem, for which the offline model composes kernels, as keyless.json has them."""
    known: dict[str, list[str]] = json.loads(KEYLESS_PATH.read_text(encoding="utf-8"))
    return known


def ask_offline() -> dict[str, list[str]]:
    """Return the same from the offline model itself: every reference is exported at its sizes, without their memory."""
    from ridgeline.tools.judge.outline_process import OutlineProcess

    covered: dict[str, list[str]] = {}
    with OutlineProcess(with_graphs=True) as outlines:
        for name, path in sorted(shipped_problems().items()):
            spec = load_problem(path)
            covered[name] = [target for target in spec.targets if _is_covered(outlines, spec, target)]
    return covered


def _is_covered(outlines: OutlineProcess, spec: ProblemSpec, target: str) -> bool:
    """Say whether the offline model composes kernels for a problem on the oldest device of a kind."""
    from ridgeline.graph.search.coverage import why_uncovered
    from ridgeline.tools.local.engine import on_device
    from ridgeline.tools.records.problem import Device
    from ridgeline.tools.records.vocabulary import DeviceKind

    kind = DeviceKind(target)
    arch = ARCH if kind is DeviceKind.CUDA else "native"
    device = Device(kind=kind, name=kind.value, arch=arch, uuid="", cores=2, memory_bytes=1 << 33, cache_bytes=1 << 25)
    problem = on_device(spec, device)
    described = outlines.outline(problem.reference_source, problem.tolerance).description
    return described is not None and why_uncovered(problem.described(described)) is None


def keyless_text() -> str:
    """Return the text of keyless.json for the offline model as it is now."""
    return json.dumps(ask_offline(), indent=2) + "\n"


if __name__ == "__main__":
    KEYLESS_PATH.write_text(keyless_text(), encoding="utf-8")
