"""Ids of what a search tries, and keys under which measurements are stored: equal keys mean one measurement."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Self

from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.vocabulary import Purpose

JUDGE_VERSION = 43
"""Part of every evaluation's key: raise it whenever the judge would decide or time a kernel differently."""

_COMPARED_PREFIX = 16
"""Characters of each evaluation's key in a comparison's key: 64 bits tell the builds of one search apart."""

SEED_PREFIX = "seed-"
_LONGEST_NAME = 60
_UNNAMED = re.compile(r"[^\w.-]")

REPAIRS_GLOB = "*a[1-9]*:write*"
"""SQLite's pattern of the calls that ask for a repair."""

AGAIN = ":again"
"""Of the id of a call that repeats one whose reply could not be used."""

_NUMBER = r"[0-9]{1,9}"
_CALL = re.compile(
    rf"r(?P<round>{_NUMBER})(?:i(?P<idea>{_NUMBER})v(?P<variation>{_NUMBER})a(?P<attempt>{_NUMBER}):write"
    rf"|:ideate:(?P<place>{_NUMBER}))(?P<further>(?::.*)?)"
)
_MADE_OF = re.compile(r"((r\d+i\d+v\d+)a\d+)(?:f\d+)?(?:t\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallId:
    """A model call's id in its parts: "r2:ideate:0:more" asks for ideas, "r2i3v0a1:write:again" for a kernel."""

    round: int
    place: int | None = None  # of the model that is asked for ideas; None: the call asks for a kernel
    idea: int = 0  # of the round; this and the next two of a call for a kernel alone
    variation: int = 0
    attempt: int = 0  # 0; a repair counts from 1
    further: str = ""  # ":more", ":instead", ":again", ":part2", or several of them: see `again_id`, `part_id`

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the parts of an id; None for a text that is no id of a search's call."""
        found = _CALL.fullmatch(text)
        if found is None:
            return None
        numbers = {name: int(value) for name, value in found.groupdict().items() if value and name != "further"}
        return cls(**numbers, further=found["further"])

    def __str__(self) -> str:
        """Return the id."""
        asked = f"{self.candidate_id}:write" if self.place is None else f"r{self.round}:ideate:{self.place}"
        return f"{asked}{self.further}"

    @property
    def asks_for_ideas(self) -> bool:
        """Say whether the call asks for ideas; else for a kernel."""
        return self.place is not None

    @property
    def idea_id(self) -> str:
        """Return the id of the kernel's idea."""
        return idea_id(self.round, self.idea)

    @property
    def branch_id(self) -> str:
        """Return the id of the kernel's branch."""
        return branch_id(self.idea_id, self.variation)

    @property
    def candidate_id(self) -> str:
        """Return the id of the kernel."""
        return attempt_id(self.idea_id, self.variation, self.attempt)

    @property
    def order(self) -> tuple[int, ...]:
        """Return by what calls are sorted: a round's ideas before its kernels, then as numbered."""
        last = len(self.further)
        if self.place is not None:
            return (self.round, 0, self.place, 0, 0, last)
        return (self.round, 1, self.idea, self.variation, self.attempt, last)


def again_id(call_id: str) -> str:
    """Return the id of the call that repeats one whose reply could not be used."""
    return f"{call_id}{AGAIN}"


def part_id(call_id: str, part: int) -> str:
    """Return the id of the call for a further part of a reply that was cut off, counted from 2."""
    return f"{call_id}:part{part}"


def write_id(candidate_id: str) -> str:
    """Return the id of the call for a kernel."""
    return f"{candidate_id}:write"


def idea_id(round_: int, number: int) -> str:
    """Return the id of an idea: "r2i3"."""
    return f"r{round_}i{number}"


def seed_name(stem: str) -> str:
    """Return a file's name as a seed's: at most 60 letters, digits, `_`, `.` and `-`, each other character as `_`."""
    return _UNNAMED.sub("_", stem[:_LONGEST_NAME]) or "_"


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


def attempt_of(candidate_id: str) -> str | None:
    """Return the attempt that a candidate was made of, tuned or mended; None for one that no model's idea led to."""
    found = _MADE_OF.fullmatch(candidate_id)
    return found[1] if found else None


def branch_of(candidate_id: str) -> str | None:
    """Return the branch that a candidate belongs to; None for one that no model's idea led to."""
    found = _MADE_OF.fullmatch(candidate_id)
    return found[2] if found else None


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


OWN_WORK = "own work"
"""The step of a certificate that profiles the winner: see `step_key`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonKey:
    """A comparison's key in its parts; the comparison's `ratio` is first_ms / second_ms."""

    first_id: str
    second_id: str
    evaluations: str  # the beginnings of both evaluations' keys, which name the builds and the judge
    purpose: Purpose = Purpose.CERTIFY

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the parts of a stored key; of an early archive it names the two candidates alone.

        Raises:
            ValueError: the text is no key of a comparison.
        """
        first_id, second_id, *rest = text.split(":")
        evaluations, purpose, *_ = (*rest, "", "")
        return cls(
            first_id=first_id,
            second_id=second_id,
            evaluations=evaluations,
            purpose=Purpose(purpose) if purpose else Purpose.CERTIFY,
        )

    @property
    def ids(self) -> tuple[str, str]:
        """Return both candidates' ids, in the order of the ratio."""
        return self.first_id, self.second_id

    def __str__(self) -> str:
        """Return the key as it is stored; a certificate's names no purpose."""
        parts = [self.first_id, self.second_id, self.evaluations]
        return ":".join(parts if self.purpose is Purpose.CERTIFY else [*parts, self.purpose])


def comparison_key(first_id: str, second_id: str, *evaluation_keys: str, purpose: Purpose = Purpose.CERTIFY) -> str:
    """Return the key of a comparison under two evaluations' keys, as it is stored."""
    evaluations = "+".join(key[:_COMPARED_PREFIX] for key in evaluation_keys)
    return str(ComparisonKey(first_id=first_id, second_id=second_id, evaluations=evaluations, purpose=purpose))
