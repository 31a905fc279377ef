"""Keys under which measurements are stored: equal keys mean that two measurements are one."""

from __future__ import annotations

import hashlib
import json

from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.vocabulary import (
    Purpose,
)

JUDGE_VERSION = 3
"""Part of every evaluation's key: raise it whenever the judge would decide or time a kernel differently."""


def problem_key(problem: DescribedTarget) -> str:
    """Return the hash of what makes two measurements of one kernel comparable: the problem, the device, torch."""
    device = problem.device
    torch_version = problem.description.torch_version
    parts = [
        problem.reference_source,
        problem.interface,
        problem.tolerance,
        problem.call_timeout_s,
        [device.kind.value, device.name, device.arch, device.cores, device.driver],
        torch_version,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def evaluation_key(build_key: str, problem: DescribedTarget, purpose: Purpose) -> str:
    """Return the key of one candidate's evaluation: its build, the problem, the judge's version and the purpose.

    `build_key` covers source, header, flags, toolchain and architecture.
    """
    parts = [build_key, problem_key(problem), JUDGE_VERSION, purpose.value]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
