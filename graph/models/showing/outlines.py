"""Long kernels in brief: an outline, a line for each function; or a source cut to its hottest functions, which says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ridgeline.graph.models.showing.heat import heats_of, hottest_window
from ridgeline.graph.models.showing.shortening import cut_lines, cut_words, first_of, listed
from ridgeline.graph.models.showing.source_parts import CALLED, Part, parts_of
from ridgeline.tools.wording import counted

SENTENCE_SHOWN = 90
"""Characters of the comment before a function."""
MOST_LOOPS = 3
MOST_CALLS = 4
SMALL = 8
"""Lines up to which a function without a loop is only named."""
_COUNT_CHARS = 40
"""Of the line that says how many functions are not named."""
_LEFT_OUT_CHARS = 20
"""Of the line that says how many lines are left out."""
OF_LARGEST_STAGE = 1000.0
"""Times that a line of the largest stage counts."""
FIRST_SHARE = 0.6
"""Of what is left, the most that a function gets that is too long: those that call it and those that it calls get the rest."""
LEAST_CUT = 800
"""Characters of the shortest part of a function that is worth showing."""
NAMES_CHARS = 240
"""Of the line that names the small functions."""
_SENTENCE = re.compile(r".{20,}?\w\)?[.;](?=\s)|.+")
# Nothing that a source repeats is read twice: a part that is read is not given back (`*+`), or has a limit.
_FOR = re.compile(r"\bfor\s*+\([^;\n]{0,200}+;\s*+([^;\n]{0,200}+)\s*+;\s*+([^\n]*+)|\bfor (\w++ in [^:\n]{0,200}+):")
_STEP = re.compile(r"\+=\s*(\w+)")
_STAGE = re.compile(r"\bRIDGELINE_STAGE\(\s*(\w+)\s*\)")
_CONSTANT = re.compile(
    r"^\s*(?:static\s+|inline\s+)*constexpr\s(?:[^\w=({;]++|\w++(?!\s*=))*+(\w++)\s*+=\s*+([^;{]++);"
    r"|^\s*#\s*define\s+(\w+)\s+([^\s/\\].*)"
)
_TUNED = re.compile(r"//\s*tune:\s*\w+\s*=\s*([^\n]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    """A function of a source, or a type."""

    part: Part
    text: str
    stages: tuple[str, ...]
    loops: tuple[str, ...]
    calls: tuple[str, ...]  # of the source's own functions
    heat: tuple[bool, float]  # it is of the largest stage; its arithmetic
    # of its lines, those of the comment too: their arithmetic, that of what they call included
    heats: tuple[float, ...]

    @property
    def lines(self) -> int:
        return self.part.end - self.part.head


@lru_cache(maxsize=64)
def outline(source: str, language: str, most_chars: int, beside: str = "") -> str:
    """Return a source's constants and a line for each function that does work, within `most_chars`; "" where it has none.

    Of what stands alike in the source `beside` only functions' names are told. What does not fit is counted: the functions
    with the least arithmetic are left out first.
    """
    functions = _functions(source, language, "")
    if not functions:
        return ""
    known = {each.text for each in _functions(beside, language, "")}
    alike = [each for each in functions if each.text in known and each.lines > SMALL]
    other = [each for each in functions if each.text not in known]
    own = set(_constants(_outside(beside, language)))
    constants = [word for word in _constants(_outside(source, language)) if word not in own]
    fitting = _fitting(constants, most_chars // 3)
    head = [f"constants: {fitting}"] if fitting else []
    if alike:
        head.append(f"alike in the first kernel: {listed([each.part.name for each in alike], most_chars // 4)}")
    told = [each for each in other if each.lines > SMALL or each.loops or each.stages]
    kept: set[int] = set()
    left = most_chars - sum(len(line) + 1 for line in head) - _COUNT_CHARS
    for each in sorted(told, key=lambda function: function.heat, reverse=True):
        if len(line := _line(each)) < left:
            kept.add(each.part.start)
            left -= len(line) + 1
    rest = len(other) - len(kept)
    shown = [_line(each) for each in told if each.part.start in kept]
    return "\n".join([*head, *shown, *([f"and {counted(rest, 'smaller function')}"] if rest else [])])


@lru_cache(maxsize=64)
def cut_source(source: str, language: str, most_chars: int, largest_stage: str = "") -> str:
    """Return a source whole where it has at most `most_chars`, else with its hottest functions alone.

    Of the others one line stays, as a comment, of small ones the name. Functions of the stage that took most of the
    kernel's time come first, then those with most arithmetic in loops. Of a first one that is too long its head and its
    hottest lines stay.
    """
    if len(source) <= most_chars:
        return source.rstrip("\n")
    functions = _functions(source, language, largest_stage)
    if not functions:
        return cut_lines(source.rstrip("\n"), max(0, most_chars - _LEFT_OUT_CHARS))
    mark = "# …" if language == "py" else "// …"
    outside = _outside(source, language)
    constants = [line for line in outside if _CONSTANT.match(line)]
    if sum(len(line) + 1 for line in constants) > most_chars // 3:
        constants = [f"{mark} {_fitting(_constants(outside), most_chars // 6)}"]
    ordered = _with_callers(sorted(functions, key=lambda function: function.heat, reverse=True))
    names_chars = min(NAMES_CHARS, most_chars // 10)
    left = most_chars - sum(len(line) + 1 for line in constants) - names_chars - len(mark) - 2
    lines: dict[int, str] = {}
    for n, each in enumerate(ordered):
        line = f"{mark} {_line(each)}"[: SENTENCE_SHOWN + 40]
        if _is_worth_a_line(each) and len(line) < left - (most_chars // 2 if n else 0):
            lines[each.part.start] = line
            left -= len(line) + 1
    cut: list[_Function] = []
    for n, each in enumerate(ordered):
        room = left + len(lines[each.part.start]) if each.part.start in lines else left - 1
        share = int(FIRST_SHARE * room)
        if len(each.text) <= room:
            lines[each.part.start] = each.text
        elif each.part.start in lines and (share >= LEAST_CUT or (n == 0 and room > 0)):
            lines[each.part.start] = _cut_function(each, share, mark)
            cut.append(each)
        else:
            continue
        left = room - len(lines[each.part.start])
    if cut:
        lines[cut[0].part.start] = _cut_function(cut[0], len(lines[cut[0].part.start]) + left, mark)
    rest = [each.part.name for each in functions if each.part.start not in lines]
    told = [f"{mark} {listed(rest, names_chars)}"] if rest else []
    return "\n".join([*constants, *(lines[start] for start in sorted(lines)), *told])


def _with_callers(hottest: Sequence[_Function]) -> list[_Function]:
    """Return functions in their order, but behind the first one those that lead to it: the loops from which it is called.

    A function without a loop that nothing calls only starts the work.
    """
    calling: dict[str, list[_Function]] = {}
    for each in hottest:
        for name in each.calls:
            calling.setdefault(name, []).append(each)
    callers = {name: iter(each) for name, each in calling.items()}  # one that is passed over is in the chain, and stays
    last = hottest[0]
    chain = {last.part.start: last}
    while found := next((each for each in callers.get(last.part.name, ()) if each.part.start not in chain), None):
        if not found.loops and found.part.name not in calling:
            break
        chain[found.part.start] = last = found
    return [*chain.values(), *(each for each in hottest if each.part.start not in chain)]


def _is_worth_a_line(function: _Function) -> bool:
    """Say whether a function that is left out has more to tell than its name."""
    return function.lines > SMALL or bool(function.loops or function.stages)


def _cut_function(function: _Function, most_chars: int, mark: str) -> str:
    """Return a function's head and of its body the neighbouring lines that compute most."""
    lines = function.text.splitlines()
    begin = function.part.head - function.part.start
    opened = next((n for n, line in enumerate(lines[begin:], begin) if line.rstrip().endswith(("{", ":"))), begin)
    head, body = lines[begin : opened + 1], lines[opened + 1 :]
    room = most_chars - sum(len(line) + 1 for line in head) - 2 * (len(mark) + _LEFT_OUT_CHARS)
    if room <= 0:
        return cut_lines(function.text, max(0, most_chars - _LEFT_OUT_CHARS))
    start, end = hottest_window(body, function.heats[opened + 1 :], room)
    before = [f"{mark} {counted(start, 'line')}"] if start else []
    after = [f"{mark} {counted(len(body) - end, 'more line')}"] if end < len(body) else []
    return "\n".join([*head, *before, *body[start:end], *after])


def _functions(source: str, language: str, stage: str) -> list[_Function]:
    lines = source.splitlines()
    parts = [part for part in parts_of(source, language) if part.name]
    names = {part.name for part in parts}
    texts = {part.start: "\n".join(lines[part.start : part.end]) for part in parts}
    under = _called_under(stage, texts.values(), names) if stage else set()
    bodies: dict[str, list[str]] = {}  # overloads of a name, whose calls are not told apart, count as one function
    first = []
    for part in parts:
        first.append(len(bodies.setdefault(part.name, [])))
        bodies[part.name] += lines[part.head : part.end]
    heats = heats_of(bodies, lines)
    found = []
    for part, at in zip(parts, first, strict=True):
        text = texts[part.start]
        stages = tuple(dict.fromkeys(_STAGE.findall(text)))
        own = heats[part.name].lines[at : at + part.end - part.head]
        of_lines = _heats(lines[part.head : part.end], own, stage)
        found.append(
            _Function(
                part=part,
                text=text,
                stages=stages,
                loops=_loops(text),
                calls=tuple(name for name in _calls(text, names) if name != part.name),
                heat=(bool(stage) and (stage in stages or part.name in under), heats[part.name].own),
                heats=(*[0.0] * (part.head - part.start), *of_lines),
            )
        )
    return found


def _heats(lines: Sequence[str], heats: Sequence[float], stage: str) -> list[float]:
    """Return the heat of each line of a function; where it marks the largest stage, that of its lines before all others."""
    found = []
    marked = ""
    for line, each in zip(lines, heats, strict=True):
        if mark := _STAGE.search(line):
            marked = mark[1]
        found.append((each + 1) * OF_LARGEST_STAGE if stage and marked == stage else each)
    return found


def _outside(source: str, language: str) -> list[str]:
    """Return the lines of a source that stand in no function."""
    lines = source.splitlines()
    return [line for part in parts_of(source, language) if not part.name for line in lines[part.start : part.end]]


def _called_under(stage: str, texts: Iterable[str], names: set[str]) -> set[str]:
    """Return the functions that are called between the mark of a stage and the next one."""
    found: set[str] = set()
    for text in texts:
        pieces = _STAGE.split(text)
        for name, piece in zip(pieces[1::2], pieces[2::2], strict=True):
            if name == stage:
                found |= set(_calls(piece, names))
    return found


def _loops(text: str) -> tuple[str, ...]:
    found = []
    for condition, step, each in _FOR.findall(text):
        by = _STEP.search(step)
        found.append(each.strip() or condition.rstrip() + (f" by {by[1]}" if by else ""))
    return tuple(dict.fromkeys(found))


def _calls(text: str, names: set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in CALLED.findall(text) if name in names))


def _line(function: _Function) -> str:
    told = [f"{function.part.name}, {counted(function.lines, 'line')}"]
    if sentence := _SENTENCE.match(function.part.comment):
        told.append(cut_words(sentence[0], SENTENCE_SHOWN))
    if function.stages:
        told.append(f"stages {', '.join(function.stages)}")
    if function.loops:
        told.append(f"loops {first_of(function.loops, MOST_LOOPS)}")
    if function.calls:
        told.append(f"calls {first_of(function.calls, MOST_CALLS)}")
    return "; ".join(part.rstrip(".;: ") for part in told)


def _constants(lines: Sequence[str]) -> list[str]:
    found = []
    for line in lines:
        if match := _CONSTANT.match(line):
            name, value = match[1] or match[3], (match[2] or match[4]).partition("//")[0].strip()
            tuned = _TUNED.search(line)
            found.append(f"{name} = {value}" + (f" ({tuned[1].strip()})" if tuned else ""))
    return found


def _fitting(words: Sequence[str], most_chars: int) -> str:
    """Return the words that fit, what is swept first; the others are not counted."""
    kept: set[str] = set()
    left = most_chars
    for word in sorted(words, key=lambda each: not each.endswith(")") or " | " not in each):
        if len(word) <= min(left, 60):
            kept.add(word)
            left -= len(word) + 2
    return ", ".join(word for word in words if word in kept)
