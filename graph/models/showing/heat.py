"""The places where a source computes: each line's arithmetic by the loops around it, macros and called functions included.

Loops are told by the indentation, as people and models write them. Nothing is compiled, and a trip count that is no number
counts as many.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from ridgeline.graph.models.showing.source_parts import CALLED

A_FEW = 16
"""Up to so many trips a loop counts as A_SHORT_LOOP: transposes and tails are made of such, and seldom matter."""
A_SHORT_LOOP, A_LOOP = 2.0, 6.0
"""Times that a line in a loop counts."""
MOST_HEAT = 1e12
MOST_MACROS = 200
DEEPEST_CALL = 40
HEAD_WITHIN = 3
"""Lines within which the head of a loop counts as standing just before what is shown of it."""
_WEIGHTS = (
    (re.compile(r"fmadd|fnmadd|fma(?:f|2)?\b|hfma|mma|dot|\bdp\w*_|ex2|exp"), 1.0),
    (re.compile(r"[+\-*]=(?!=)|_(?:add|sub|mul|max|min)_p[sdh]"), 0.5),
    (re.compile(r"\w \* \w"), 0.05),  # most of these are indices
)
_LOOP = re.compile(r"(?:for|while)\b|do\s*\{")
_TRIPS = re.compile(r"for\s*\([^;]{0,80};[^;]{0,80}?[<>]=?\s*+(\d{1,9}+)\s*+;|\bin range\((\d{1,9})\)")
_MACRO = re.compile(r"\s*#\s*define\s+(\w+)(?:\(([^)]*)\))?(.*)", re.DOTALL)
_USED = re.compile(r"\b(\w++)\s*(?:<[^;{}()]{0,80}>\s*)?(?:\(\s*(\w+)?|(?=\s|$))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The lines of one function: the arithmetic of each, the times that it counts, and the functions that it calls."""

    weights: tuple[float, ...]
    times: tuple[float, ...]
    calls: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """The arithmetic of one function over all its calls."""

    own: float  # without the functions that it calls
    lines: tuple[float, ...]  # of each of its lines, with them


def heats_of(functions: Mapping[str, Sequence[str]], source: Sequence[str]) -> dict[str, Heat]:
    """Return by name where a source's functions compute, given the lines of each and all of its lines."""
    macros = _macros(source)
    bodies = {name: _body(name, lines, functions, macros) for name, lines in functions.items()}
    called = _times_called(bodies)
    whole: dict[str, float] = {}
    for name in bodies:
        _whole(name, bodies, whole, ())
    found = {}
    for name, body in bodies.items():
        own = sum(weight * times for weight, times in zip(body.weights, body.times, strict=True))
        lines = tuple(
            min((weight + sum(whole[each] for each in calls)) * times, MOST_HEAT)
            for weight, times, calls in zip(body.weights, body.times, body.calls, strict=True)
        )
        found[name] = Heat(own=min(own * called[name], MOST_HEAT), lines=lines)
    return found


def hottest_window(lines: Sequence[str], heats: Sequence[float], most_chars: int) -> tuple[int, int]:
    """Return the first line and the one after the last of the neighbours that compute most, within `most_chars`.

    Of several as hot ones they are the longest. Where they begin in a loop whose head stands just before, they begin there.
    """
    best, place = (-1.0, 0), (0, 0)
    start, chars, heat = 0, 0, 0.0
    for end, line in enumerate(lines, 1):
        chars, heat = chars + len(line) + 1, heat + heats[end - 1]
        while chars > most_chars and start < end:
            chars, heat = chars - len(lines[start]) - 1, heat - heats[start]
            start += 1
        if start < end and (round(heat, 6), end - start) > best:
            best, place = (round(heat, 6), end - start), (start, end)
    start, end = place
    before = range(start - 1, max(-1, start - HEAD_WITHIN - 1), -1)
    start = next((n for n in before if _LOOP.match(lines[n].lstrip())), start)
    chars = sum(len(line) + 1 for line in lines[start:end])
    while end > start and chars > most_chars:
        end -= 1
        chars -= len(lines[end]) + 1
    return start, end


def _body(own: str, lines: Sequence[str], names: Container[str], macros: Mapping[str, float]) -> Body:
    loops: list[tuple[int, float]] = []
    weights, times, calls = [], [], []
    is_macro = False
    for line in lines:
        text = line.lstrip()
        was_macro, is_macro = is_macro, (is_macro or text.startswith("#")) and line.endswith("\\")
        is_hidden = was_macro or text.startswith("#")  # a macro counts where it is used
        indent = len(line) - len(text)
        while text and loops and indent <= loops[-1][0] and not is_hidden:
            loops.pop()
        is_loop = bool(_LOOP.match(text)) and not is_hidden
        weights.append(0.0 if is_hidden or is_loop else weight_of(line, macros))
        found = () if is_hidden else tuple(name for name in CALLED.findall(line) if name in names and name != own)
        calls.append(found)
        factor = 1.0
        for _, each in loops:
            factor *= each
        times.append(factor)
        if is_loop:
            trips = _TRIPS.search(text)
            few = trips is not None and int(trips[1] or trips[2]) <= A_FEW
            loops.append((indent, A_SHORT_LOOP if few else A_LOOP))
    return Body(weights=tuple(weights), times=tuple(times), calls=tuple(calls))


def weight_of(text: str, macros: Mapping[str, float]) -> float:
    """Return the arithmetic of a text, that of the macros which it names included."""
    own = sum(weight * len(pattern.findall(text)) for pattern, weight in _WEIGHTS)
    if not macros:
        return own
    used = [(name, argument) for name, argument in _USED.findall(text) if name in macros]
    return own + sum(macros[name] * (macros.get(of, 1.0) if f"{name}()" in macros else 1.0) for name, of in used)


def _macros(source: Sequence[str]) -> dict[str, float]:
    """Return the arithmetic of each macro, by its name.

    One that applies another, which it is given, has under "NAME()" how often: `#define ALL(F) F(0) F(1) F(2)`.
    """
    texts: dict[str, tuple[str, str]] = {}
    for line in "\n".join(source).replace("\\\n", " ").split("\n"):
        if len(texts) < MOST_MACROS and line.lstrip().startswith("#") and (found := _MACRO.match(line)):
            texts.setdefault(found[1], ((found[2] or "").split(",")[0].strip(), found[3]))
    macros: dict[str, float] = {}
    for name, (given, text) in texts.items():
        applied = len(re.findall(rf"\b{re.escape(given)}\s*\(", text)) if given else 0
        if applied:
            macros |= {name: float(applied), f"{name}()": 1.0}
    for _ in range(3):  # a macro may use another, which may use a third
        for name, (_, text) in texts.items():
            if f"{name}()" not in macros:
                macros[name] = min(weight_of(text, {k: v for k, v in macros.items() if k != name}), MOST_HEAT)
    return macros


def _times_called(bodies: Mapping[str, Body]) -> dict[str, float]:
    """Return for each function the times that it counts by the loops around its calls, and around those of its callers."""
    called = dict.fromkeys(bodies, 1.0)
    for _ in range(8):  # as long as chains of calls are
        sums = dict.fromkeys(bodies, 0.0)
        for name, body in bodies.items():
            for times, calls in zip(body.times, body.calls, strict=True):
                for each in calls:
                    sums[each] += called[name] * times
        called = {name: min(times, MOST_HEAT) or 1.0 for name, times in sums.items()}
    return called


def _whole(name: str, bodies: Mapping[str, Body], found: dict[str, float], above: tuple[str, ...]) -> float:
    """Return what one call of a function computes, with the functions that it calls; 0 of one that calls itself."""
    if name in found:
        return found[name]
    if name in above or len(above) > DEEPEST_CALL:
        return 0.0
    body = bodies[name]
    heat = 0.0
    for weight, times, calls in zip(body.weights, body.times, body.calls, strict=True):
        heat += (weight + sum(_whole(each, bodies, found, (*above, name)) for each in calls)) * times
    found[name] = min(heat, MOST_HEAT)
    return found[name]
