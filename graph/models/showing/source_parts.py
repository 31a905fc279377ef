"""A kernel's source as its parts: functions, types, macros and what stands between them.

C++, CUDA, and Python with either in its long texts. Nothing is compiled: braces are counted outside comments, texts and
macros. A source whose braces do not close, as where `#if` has two heads of one body, has no parts.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_HIDDEN = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"""|"(?:\\.|[^"\\\n])*+"?|(?<!\w)'(?:\\.|[^'\\\n])*+'?"""
    r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_OPEN_SCOPE = re.compile(r"(?:inline\s+)?namespace\b[^();=]*|extern\s*")
_TYPE = re.compile(r"(?:^|\s)(?:struct|class|union|enum)\s++((?:\w++\s*+)++)")
_CALLED = re.compile(r"(~?\b\w++)\s*+\(")
_NO_NAMES = frozenset(
    {"__attribute__", "__launch_bounds__", "alignas", "declspec", "decltype", "for", "if", "noexcept", "requires"}
    | {"switch", "while"}
)
_PYTHON_HEAD = re.compile(r"(?:async\s+)?(def|class)\s+(\w+)")
_NEXT = re.compile(r"\S")
_LONGEST_HEAD = 2000
"""Characters of a function's head that are read for its name."""
_MOST_NAMELESS = 16
"""Bodies without a name that are read in one statement; one with more is a table."""
LONG_TEXT = re.compile(r'"""|\'\'\'')
"""What begins or ends a text of several lines in Python."""
CALLED = re.compile(r"\b(\w++)\s*+(?:<[^;{}()]{0,80}>\s*+)?\(")
"""The name of what is called, template arguments or none behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Lines of a source that belong together, from `start` to before `end`."""

    name: str  # of a function or a type; "" of what stands between them
    comment: str  # the words before it
    start: int
    head: int  # the first line after the comment
    end: int


def parts_of(source: str, language: str) -> list[Part]:
    """Return the parts of a source in their order: together they are all of its lines; [] where it cannot be told apart."""
    lines = source.splitlines()
    found = list(_python_bodies(lines)) if language == "py" else _bodies(source, 0)
    if not found:
        return []
    parts: list[Part] = []
    at = 0
    for name, head, end in found:
        if head < at:
            continue  # two on one line
        begin = head
        while begin > at and lines[begin - 1].lstrip().startswith(("//", "*", "/*", "@", "#pragma")):
            begin -= 1
        if begin > at:
            parts.append(Part(name="", comment="", start=at, head=at, end=begin))
        parts.append(Part(name=name, comment=_comment(lines[begin:head]), start=begin, head=head, end=end))
        at = end
    if at < len(lines):
        parts.append(Part(name="", comment="", start=at, head=at, end=len(lines)))
    return parts


def _comment(lines: Sequence[str]) -> str:
    words = (line.strip().removesuffix("*/").lstrip("/*! ").strip() for line in lines if "pragma" not in line)
    return " ".join(word for word in words if word and not word.startswith("@"))


_Body = tuple[str, int, int]
"""A name, the first line of its head, the line after its body."""


def _bodies(source: str, offset: int) -> list[_Body]:
    """Return the functions and types of C++ outside others; [] where braces do not close."""
    code = _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), source)
    line_of = functools.partial(bisect.bisect_left, [found.start() for found in re.finditer("\n", source)])
    found: list[_Body] = []
    scopes = 0  # namespaces that are open
    depth = 0
    begin = 0  # of the statement that is read
    nameless = 0  # bodies that it has so far
    opened = 0
    for sign in re.finditer(r"[{};]", code):
        at = sign.start()
        if sign[0] == "{":
            if depth == 0 and not nameless and _OPEN_SCOPE.fullmatch(code[begin:at].strip()):
                scopes, begin = scopes + 1, at + 1
                continue
            opened = at if depth == 0 else opened
            depth += 1
        elif sign[0] == ";":
            begin, nameless = (begin, nameless) if depth else (at + 1, 0)
        elif depth:
            depth -= 1
            if depth == 0:
                nameless += 1
                head = code[max(begin, opened - _LONGEST_HEAD) : opened]
                if name := _name(head) if nameless <= _MOST_NAMELESS else "":
                    first = _NEXT.search(code, begin).start()  # type: ignore[union-attr]  # the body is there
                    found.append((name, offset + line_of(first), offset + line_of(at) + 1))
                    begin, nameless = at + 1, 0
        elif scopes:
            scopes, begin, nameless = scopes - 1, at + 1, 0
        else:
            return []
    return found if depth == 0 else []


def _name(head: str) -> str:
    """Return the name of the function or type whose body follows; "" of an initialiser."""
    if name := _type_name(head.strip()):
        return name
    if "=" in head.partition("(")[0].rpartition(">")[2]:
        return ""
    return next((name for name in _CALLED.findall(head) if name not in _NO_NAMES), "")


def _type_name(head: str) -> str:
    """Return the last of the words after `struct` or the like, before the end of a head or what the type is made of."""
    last_call = head.rfind("(")
    for found in _TYPE.finditer(head):
        if found.end() == len(head) or (head[found.end()] == ":" and found.end() > last_call):
            return found[1].split()[-1]
    return ""


def _python_bodies(lines: Sequence[str]) -> Iterator[_Body]:
    """Yield the functions and classes of a Python file, and those of the C++ in its long texts."""
    at = 0
    while at < len(lines):
        head = _PYTHON_HEAD.match(lines[at])
        ticks = LONG_TEXT.findall(lines[at])
        if head:
            end = at + 1
            while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t)"):
                end += 1
            while end > at + 1 and not lines[end - 1].strip():
                end -= 1
            yield head[2], at, end
            at = end
        elif len(ticks) % 2:
            end = at + 1
            while end < len(lines) and ticks[-1] not in lines[end]:
                end += 1
            yield from _bodies("\n".join(lines[at + 1 : end]), at + 1)
            at = end + 1
        else:
            at += 1
