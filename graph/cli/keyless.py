"""The shipped problems for which the offline model composes kernels, so that a search needs no key.

The offline model's answer takes torch and about ten seconds, so keyless.json keeps it. After a change to the offline
model or to the shipped problems, `python -m ridgeline.graph.cli.keyless` renews the file.
"""

from __future__ import annotations

import json
from pathlib import Path

from ridgeline.problems.spec import load_problem, shipped_problems

KEYLESS_PATH = Path(__file__).with_name("keyless.json")


def keyless_targets() -> dict[str, list[str]]:
    """Return the targets, by problem, for which the offline model composes kernels, as keyless.json has them."""
    known: dict[str, list[str]] = json.loads(KEYLESS_PATH.read_text(encoding="utf-8"))
    return known


def ask_offline() -> dict[str, list[str]]:
    """Return the same from the offline model itself: every reference is exported at its sizes, without their memory."""
    from ridgeline.graph.cli.outlined import outline_problem
    from ridgeline.tools.judge.outline_process import OutlineProcess

    covered: dict[str, list[str]] = {}
    with OutlineProcess(with_graphs=True) as outlines:
        for name, path in sorted(shipped_problems().items()):
            spec = load_problem(path)
            covered[name] = [kind for kind in spec.targets if outline_problem(outlines, spec, kind).is_covered]
    return covered


def keyless_text() -> str:
    """Return the text of keyless.json for the offline model as it is now."""
    return json.dumps(ask_offline(), indent=2) + "\n"


if __name__ == "__main__":
    KEYLESS_PATH.write_text(keyless_text(), encoding="utf-8")
