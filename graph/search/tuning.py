"""Tunables that a kernel declares, and the seeded order in which their values are tried.

The sampler draws at random first and then moves one or two values of the best point so far: on grids of a few dozen to
a few thousand points with noisy times it needs no model of the surface, has no state but the results, and so resumes
exactly. Successive halving was the other choice; a measurement here cannot be made cheaper by a fraction, so there is
no first rung to halve from.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin

DECLARATION = re.compile(r"//[ \t]*tune:[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*([^\n]+)")
RANDOM_SHARE = 0.4
"""Part of the trials drawn at random before local moves begin."""
PATIENCE = 8
"""Trials without a gain of MIN_GAIN after which a kernel's sweep ends."""
MIN_GAIN = 1.01
MAX_VALUES = 32

Point = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunable:
    """One declared name with its values and the one written in the source."""

    name: str
    values: tuple[str, ...]
    current: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A measured point; `speedup` None means that it failed."""

    point: Point
    speedup: float | None


def root_id(candidate: Candidate) -> str:
    """Return the id of the kernel that a tuned candidate was made from, or its own.

    An id is never taken apart for this: a user's seed may be called float4.
    """
    return candidate.parent_id or candidate.id if candidate.origin is Origin.TUNE else candidate.id


def _definition(name: str) -> re.Pattern[str]:
    """Return the pattern of the one line that defines `name`: a constexpr or const with `=`, or a #define."""
    return re.compile(
        rf"^(?P<head>[ \t]*(?:#[ \t]*define[ \t]+{name}[ \t]+|[^\n/]*\bconst(?:expr)?\b[^\n=;/]*\b{name}[ \t]*=[ \t]*))"
        rf"(?P<value>[^\s;/][^;\n/]*?)(?P<tail>[ \t]*(?:;[^\n]*|//[^\n]*)?)$",
        re.MULTILINE,
    )


def parse_tunables(source: str) -> tuple[Tunable, ...]:
    """Return the tunables of a source; a declaration without exactly one definition, or of one value, is ignored."""
    found: dict[str, Tunable] = {}
    for name, listed in DECLARATION.findall(source):
        definitions = list(_definition(name).finditer(source))
        values = tuple(dict.fromkeys(v.strip() for v in listed.split("|") if v.strip()))[:MAX_VALUES]
        if len(definitions) != 1 or name in found:
            continue
        current = definitions[0]["value"].strip()
        if len(set(values) | {current}) > 1:
            found[name] = Tunable(name=name, values=values, current=current)
    return tuple(found.values())


def with_values(source: str, point: Point) -> str:
    """Return the source with the definitions of `point`'s names replaced by its values."""
    for name, value in point.items():
        source = _definition(name).sub(lambda m, v=value: f"{m['head']}{v}{m['tail']}", source, count=1)  # type: ignore[misc]
    return source


def default_point(tunables: Sequence[Tunable]) -> dict[str, str]:
    """Return the values written in the source."""
    return {t.name: t.current for t in tunables}


def next_points(
    tunables: Sequence[Tunable],
    trials: Sequence[Trial],
    default_speedup: float,
    *,
    rng_seed: int,
    planned: int,
    count: int,
) -> list[dict[str, str]]:
    """Return up to `count` new points to build side by side; fewer, or none, when few are left or PATIENCE is used up.

    A function of its arguments only, so a resumed sweep continues where it was. `planned` is the most trials that the
    kernel may get; RANDOM_SHARE of them are drawn at random.
    """
    if _is_stale(trials, default_speedup):
        return []
    default = default_point(tunables)
    tried: list[Point] = [default, *(t.point for t in trials)]
    best = max([(default_speedup, default), *((t.speedup or 0.0, dict(t.point)) for t in trials)], key=lambda p: p[0])[
        1
    ]
    found: list[dict[str, str]] = []
    for number in range(len(trials), len(trials) + count):
        rng = random.Random(f"{rng_seed}:{number}")
        is_local = number >= max(2, int(RANDOM_SHARE * planned))
        draws = (_moved(best, tunables, rng) if is_local else _drawn(tunables, rng) for _ in range(64))
        point = next((p for p in draws if p not in tried), None) or _first_untried(tunables, tried)
        if point is None:
            break
        found.append(point)
        tried.append(point)
    return found


def _is_stale(trials: Sequence[Trial], default_speedup: float) -> bool:
    best, since = default_speedup, 0
    for trial in trials:
        if trial.speedup is not None and trial.speedup > MIN_GAIN * best:
            best, since = trial.speedup, 0
        else:
            since += 1
    return since >= PATIENCE


def _drawn(tunables: Sequence[Tunable], rng: random.Random) -> dict[str, str]:
    return {t.name: rng.choice(t.values) for t in tunables}


def _moved(best: Point, tunables: Sequence[Tunable], rng: random.Random) -> dict[str, str]:
    """Return `best` with one or two of its values moved to a neighbour in the declared order."""
    point = dict(best)
    for tunable in rng.sample(list(tunables), min(len(tunables), rng.choice((1, 1, 2)))):
        values = tunable.values
        if point[tunable.name] not in values:
            point[tunable.name] = rng.choice(values)
            continue
        place = values.index(point[tunable.name]) + rng.choice((-1, 1))
        point[tunable.name] = values[min(max(place, 0), len(values) - 1)]
    return point


def _first_untried(tunables: Sequence[Tunable], tried: Sequence[Point]) -> dict[str, str] | None:
    """Return the first point of the grid in declared order that was not tried; bounded, since `tried` is short."""
    point = [0] * len(tunables)
    for _ in range(len(tried) + 1):
        values = {t.name: t.values[i] for t, i in zip(tunables, point, strict=True)}
        if values not in tried:
            return values
        for axis, tunable in enumerate(tunables):
            point[axis] = (point[axis] + 1) % len(tunable.values)
            if point[axis]:
                break
        else:
            return None
    return None
