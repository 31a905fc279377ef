"""Tunables that a kernel declares, and the seeded order in which their values are tried.

The sampler draws at random first and then moves one or two values of the best point so far: on grids of a few dozen to
a few thousand points with noisy times it needs no model of the surface, has no state but the results, and so resumes
exactly. Successive halving was the other choice; a measurement here cannot be made cheaper by a fraction, so there is
no first rung to halve from.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin

DECLARATION = re.compile(r"//[ \t]*tune:[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*([^\n]+)")
RANDOM_SHARE = 0.4
"""Part of the trials drawn at random before local moves begin."""
PATIENCE = 8
"""Trials without a gain of MIN_GAIN after which a kernel's sweep ends."""
MIN_GAIN = 1.01
FAR_BEHIND = 0.7
"""Part of the fastest kernel's speed below which a kernel is not swept: its constants would have to gain 1.43 times to catch
up, in trials that the kernels ahead of it need. A rule, not a measurement."""
MAX_VALUES = 32
MAX_TUNABLES = 32
_MACRO = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+")
_ASSIGNED = re.compile(r"\b(\w+)[ \t]*+=[ \t]*+")
_CONSTANT = re.compile(r"\bconst(?:expr)?\b")
_VALUE = re.compile(r"[^\s;/][^;/]*")

Point = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunable:
    """One declared name with its values and the one written in the source."""

    name: str
    values: tuple[str, ...]
    current: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    """A measured point; `speedup` None means that it failed."""

    point: Point
    speedup: float | None


def root_id(candidate: Candidate) -> str:
    """Return the id of the kernel that a tuned candidate was made from, or its own.

    An id is never taken apart for this: a user's seed may be called float4.
    """
    return candidate.parent_id or candidate.id if candidate.origin is Origin.TUNE else candidate.id


@dataclass(frozen=True, slots=True)
class _Definition:
    """Place of a defined value in the source, the first character and the one after the last."""

    name: str
    start: int
    end: int


def _definitions(source: str) -> dict[str, list[_Definition]]:
    """Return the definitions of each name that a constexpr or const with `=`, or a #define, gives a value on its line.

    The time grows with the length of the source and no faster, whatever it holds.
    """
    found: dict[str, list[_Definition]] = {}
    begin = 0
    for line in source.split("\n"):
        if "const" in line or "define" in line:  # each definition has one of them, few lines do
            for definition in _line_definitions(line, begin):
                found.setdefault(definition.name, []).append(definition)
        begin += len(line) + 1
    return found


def _line_definitions(line: str, begin: int) -> Iterator[_Definition]:
    if macro := _MACRO.match(line):
        yield from _valued(macro[1], line, macro.end(), begin)
        return
    last = 0  # where the statement before ended, or its value began
    for assigned in _ASSIGNED.finditer(line.partition("/")[0]):
        statement = max(last, line.rfind(";", last, assigned.start()) + 1)
        last = assigned.end()
        if _CONSTANT.search(line, statement, assigned.start()):
            yield from _valued(assigned[1], line, assigned.end(), begin)


def _valued(name: str, line: str, start: int, begin: int) -> Iterator[_Definition]:
    """Yield the definition whose value starts at `start`, unless none does: it ends at a `;`, a comment or the line."""
    value = _VALUE.match(line, start)
    if value is None or (line.startswith("/", value.end()) and not line.startswith("//", value.end())):
        return
    yield _Definition(name, begin + start, begin + start + len(value[0].rstrip()))


def parse_tunables(source: str) -> tuple[Tunable, ...]:
    """Return the first MAX_TUNABLES tunables of a source.

    A declaration without exactly one definition, or of one value, is ignored.
    """
    definitions = _definitions(source)
    found: dict[str, Tunable] = {}
    for name, listed in DECLARATION.findall(source):
        places = definitions.get(name, [])
        if len(places) != 1 or name in found:
            continue
        values = tuple(dict.fromkeys(v.strip() for v in listed.split("|") if v.strip()))[:MAX_VALUES]
        current = source[places[0].start : places[0].end]
        if len(set(values) | {current}) > 1:
            found[name] = Tunable(name=name, values=values, current=current)
        if len(found) == MAX_TUNABLES:
            break
    return tuple(found.values())


def with_values(source: str, point: Point) -> str:
    """Return the source with the definitions of `point`'s names replaced by its values."""
    definitions = _definitions(source)
    places = sorted((d for name in point for d in definitions.get(name, [])[:1]), key=lambda d: d.start, reverse=True)
    for place in places:
        source = source[: place.start] + point[place.name] + source[place.end :]
    return source


def likely_points(source: str, tunables: Sequence[Tunable], others: Iterable[str]) -> Iterator[str]:
    """Yield those of other texts that begin and end as the source does around its tunables: no other is a point of it."""
    definitions = _definitions(source)
    places = sorted((d for t in tunables for d in definitions[t.name]), key=lambda d: d.start)
    head, tail = (source[: places[0].start], source[places[-1].end :]) if places else (source, "")
    return (other for other in others if other.startswith(head) and other.endswith(tail))


def point_of(source: str, tunables: Sequence[Tunable], other: str) -> dict[str, str] | None:
    """Return the point of `source` that has the text of `other`; None where no values of the tunables make it that."""
    definitions = _definitions(other)
    places = {t.name: definitions.get(t.name, []) for t in tunables}
    if any(len(listed) != 1 for listed in places.values()):
        return None
    point = {name: other[place.start : place.end] for name, (place,) in places.items()}
    return point if with_values(source, point) == other else None


def default_point(tunables: Sequence[Tunable]) -> dict[str, str]:
    """Return the values written in the source."""
    return {t.name: t.current for t in tunables}


def shared_trials(trials: int, speeds: Sequence[float]) -> list[int]:
    """Return how many trials each kernel gets, by its speed: in proportion to its promise, none below FAR_BEHIND.

    The promise of a kernel falls from 1 at the fastest one's speed to 0 at FAR_BEHIND of it. The fastest gets what rounding
    leaves.
    """
    fastest = max(speeds, default=0.0)
    if fastest <= 0:
        return [0] * len(speeds)
    promises = [max(0.0, speed / fastest - FAR_BEHIND) / (1 - FAR_BEHIND) for speed in speeds]
    shares = [int(trials * promise / sum(promises)) for promise in promises]
    shares[speeds.index(fastest)] += trials - sum(shares)
    return shares


def next_points(
    tunables: Sequence[Tunable],
    trials: Sequence[MeasuredPoint],
    default_speedup: float,
    *,
    rng_seed: int,
    planned: int,
    count: int,
    elsewhere: Sequence[Point] = (),
) -> list[dict[str, str]]:
    """Return up to `count` new points to build side by side; fewer, or none, when few are left or PATIENCE is used up.

    A function of its arguments only, so a resumed sweep continues where it was. `planned` is the most trials that the
    kernel may get; RANDOM_SHARE of them are drawn at random. Points `elsewhere` are other kernels, and are not chosen.
    """
    if _has_stalled(trials, default_speedup):
        return []
    default = default_point(tunables)
    tried: list[Point] = [default, *elsewhere, *(t.point for t in trials)]
    measured = [(default_speedup, default), *((t.speedup or 0.0, dict(t.point)) for t in trials)]
    _, best = max(measured, key=lambda each: each[0])
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


def _has_stalled(trials: Sequence[MeasuredPoint], default_speedup: float) -> bool:
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
