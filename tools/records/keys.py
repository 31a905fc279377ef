"""Ids of what a search tries, and keys under which measurements are stored: equal keys mean one measurement."""

from __future__ import annotations

import hashlib
import json

from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.vocabulary import (
    Purpose,
)

JUDGE_VERSION = 7
"""Part of every evaluation's key: raise it whenever the judge would decide or time a kernel differently."""

_COMPARED_PREFIX = 16
"""Characters of each evaluation's key in a comparison's key: 64 bits tell the builds of one search apart."""


SEED_PREFIX = "seed-"


def seed_id(stem: str) -> str:
    """Return the candidate id of a seed kernel by its file's name: "seed-naive"."""
    return f"{SEED_PREFIX}{stem}"


def branch_id(idea_id: str, variation: int) -> str:
    """Return the id of one implementation of an idea: "r2i3v0"."""
    return f"{idea_id}v{variation}"


def attempt_id(idea_id: str, variation: int, attempt: int) -> str:
    """Return the candidate id of one attempt at an implementation: "r2i3v0a1"."""
    return f"{branch_id(idea_id, variation)}a{attempt}"


def mended_id(attempt: str, number: int) -> str:
    """Return the candidate id of what was made of an attempt without a call, counted from 1: "r2i3v0a1f1"."""
    return f"{attempt}f{number}"


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


def step_key(evaluation_key: str, step: str) -> str:
    """Return the key of one of several measurements of a kernel for one purpose; without a step, the evaluation's."""
    return f"{evaluation_key}:{step}" if step else evaluation_key


def comparison_key(first_id: str, second_id: str, *evaluation_keys: str, purpose: Purpose = Purpose.CERTIFY) -> str:
    """Return the key of a comparison, whose `ratio` is first_ms / second_ms.

    `evaluation_keys` name the two builds and the judge of the measurement.
    """
    parts = [first_id, second_id, "+".join(key[:_COMPARED_PREFIX] for key in evaluation_keys)]
    return ":".join(parts if purpose is Purpose.CERTIFY else [*parts, purpose])


def compared_ids(key: str) -> tuple[str, str]:
    """Return the ids of the two candidates in a comparison's key."""
    first, second, *_ = key.split(":")
    return first, second


def compared_purpose(key: str) -> Purpose:
    """Return the purpose of a comparison, by its key."""
    _, _, _, *purpose = key.split(":")
    return Purpose(purpose[0]) if purpose else Purpose.CERTIFY
