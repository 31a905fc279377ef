"""A compiler's own fix-its: read from its messages, and applied to the source that it refused, within narrow limits.

g++ (`-fdiagnostics-parseable-fixits`) and clang print one line for each change:
`fix-it:"kernel.cpp":{6:32-6:37}:"tota"`, lines and columns counted from 1, columns in bytes. nvcc's front end has none,
and g++ knows the header of some names only: what a name that is missing lacks is looked up in missing_headers.py then.
Whatever a compiler proposes, the changed source is a candidate like any other, which the judge decides on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ridgeline.tools.build.header import KEYWORDS
from ridgeline.tools.build.missing_headers import header_of
from ridgeline.tools.records.fix_it import FixIt

MOST_FIX_ITS = 8
"""Changes of one source at a time: what needs more is another kernel."""
LONGEST_BYTES = 80
_LINE = re.compile(
    r'fix-it:"(?P<file>(?:[^"\\]|\\.)*)":\{(?P<line>\d{1,7}):(?P<column>\d{1,7})-(?P<end>\d{1,7}):(?P<end_column>\d{1,7})\}'
    r':"(?P<text>(?:[^"\\]|\\.)*)"'
)
_ANY_LINE = re.compile(r"^fix-it:.*\n?", re.MULTILINE)
_MESSAGE = re.compile(r"(?P<file>[^\s:(]+)[:(]\d+[):].*?\b(?P<severity>error|warning|remark): (?P<text>.*)")
_ERROR = re.compile(r"^(?!collect2: ).*?(?:: (?:fatal )?error: |: error\s*: |undefined reference to)", re.MULTILINE)
_INCLUDE = re.compile(r"#include <[A-Za-z][\w./+-]{0,60}>\n")
_PLAIN = re.compile(r"[^\n\r\"'#\\]*")
"""A change within a line; quotes and directives would change how the rest of the source is read."""
_QUOTE = "['\u2018\u2019\"]"
_NOT_MEMBER = re.compile(rf"{_QUOTE}(\w+){_QUOTE} is not a member of {_QUOTE}std{_QUOTE}")
_NO_MEMBER = re.compile(rf"namespace {_QUOTE}std{_QUOTE} has no member {_QUOTE}(\w+){_QUOTE}")
_UNKNOWN = re.compile(
    rf"{_QUOTE}(\w+){_QUOTE} (?:was not declared in this scope|has not been declared|does not name a type)"
    rf"|identifier {_QUOTE}(\w+){_QUOTE} is undefined"
)
_NO_NAMESPACE = re.compile(r'name must be a namespace name|name followed by "::" must be a class or namespace name')
_NAMESPACE = re.compile(r"\b(cooperative_groups|nvcuda|cub)\b")
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"'}


def count_errors(log: str) -> int:
    """Return how many errors a compiler and a linker report."""
    return len(_ERROR.findall(log))


def without_fix_its(log: str) -> str:
    """Return the messages without the lines that are for a program."""
    return _ANY_LINE.sub("", log)


def read_fix_its(log: str, file: str) -> tuple[FixIt, ...]:
    """Return the changes of `file` that the errors in a compiler's messages ask for, in their order, each once."""
    return tuple(dict.fromkeys(_proposals(log, file)))[:MOST_FIX_ITS]


def apply_fix_its(source: str, fix_its: tuple[FixIt, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the changed source and each change in words; the source as it is where no change fits.

    A header that the source includes already is not included again. Of changes that overlap, the first is made. A keyword
    is not put in the place of a name: g++ takes the nearest word that it knows, and `inv` would become `int`. Nor is a name
    that the source only calls put where none is called, nor one that it never calls where one is.
    """
    lines = [line.encode() for line in source.split("\n")]
    words: dict[FixIt, str] = {}
    made: list[FixIt] = []
    for fix in fix_its:
        if any(fix.line == other.line and _overlap(fix, other) for other in made):
            continue
        if told := _in_words(fix, source, lines):
            words[fix] = told
            made.append(fix)
    for fix in sorted(made, key=lambda fix: (fix.line, fix.column), reverse=True):
        line = lines[fix.line - 1]
        lines[fix.line - 1] = line[: fix.column - 1] + fix.text.encode() + line[fix.end_column - 1 :]
    return b"\n".join(lines).decode(), tuple(words.values())


def _proposals(log: str, file: str) -> Iterator[FixIt]:
    """Yield the changes; of an error without any, the #include that its name lacks."""
    lines = log.split("\n")
    starts = [i for i, line in enumerate(lines) if _MESSAGE.match(line)]
    for start, end in pairwise([*starts, len(lines)]):
        message = _MESSAGE.match(lines[start])
        if message is None or message["severity"] != "error":
            continue
        block = lines[start + 1 : end]
        stated = [fix for line in block if (fix := _read_line(line, file)) is not None]
        yield from stated
        if not stated and message["file"] == file and (header := _lacking(message["text"], block[:1], file)):
            yield FixIt(line=1, column=1, end_column=1, text=f"#include <{header}>\n")


def _read_line(line: str, file: str) -> FixIt | None:
    """Return the change that a line states, None for no such line and for one beyond the limits."""
    found = _LINE.fullmatch(line)
    if found is None or found["file"] != file or found["line"] != found["end"]:
        return None
    text = re.sub(r'\\(["\\nt])', lambda escape: _ESCAPES[escape[1]], found["text"])
    fix = FixIt(line=int(found["line"]), column=int(found["column"]), end_column=int(found["end_column"]), text=text)
    if fix.line < 1 or fix.column < 1 or not 0 <= fix.end_column - fix.column <= LONGEST_BYTES:
        return None
    if _INCLUDE.fullmatch(text):
        return fix if fix.column == fix.end_column == 1 else None
    return fix if _PLAIN.fullmatch(text) and len(text.encode()) <= LONGEST_BYTES else None


def _lacking(error: str, quoted: list[str], file: str) -> str:
    """Return the header that the name in an error lacks; nvcc says of a namespace only where it stands."""
    language = file.rpartition(".")[2]
    if found := _NOT_MEMBER.search(error) or _NO_MEMBER.search(error):
        return header_of(f"std::{found[1]}", language)
    if found := _UNKNOWN.search(error):
        return header_of(found[1] or found[2], language)
    if _NO_NAMESPACE.search(error) and (found := _NAMESPACE.search("".join(quoted))):
        return header_of(found[1], language)
    return ""


def _overlap(fix: FixIt, other: FixIt) -> bool:
    """Say whether two changes of a line concern one place; several headers are included at one."""
    if _INCLUDE.fullmatch(fix.text) and _INCLUDE.fullmatch(other.text):
        return fix.text == other.text
    return fix.column <= other.end_column and other.column <= fix.end_column


def _in_words(fix: FixIt, source: str, lines: list[bytes]) -> str:
    """Return what a change does, "" where it is none or its place is not in the source."""
    if fix.line > len(lines) or fix.end_column - 1 > len(lines[fix.line - 1]):
        return ""
    if _INCLUDE.fullmatch(fix.text):
        has_it = re.search(rf"^[ \t]*{re.escape(fix.text.strip())}", source, re.MULTILINE)
        return "" if has_it else f"line {fix.line}: {fix.text.strip()} is inserted"
    try:
        old = lines[fix.line - 1][fix.column - 1 : fix.end_column - 1].decode()
        lines[fix.line - 1][: fix.column - 1].decode()
    except UnicodeDecodeError:  # its columns are none of this source
        return ""
    if old == fix.text or not _PLAIN.fullmatch(old) or (_is_name(old) and fix.text.strip() in KEYWORDS):
        return ""
    if _is_name(old) and _is_name(fix.text) and _is_of_other_kind(fix, source, lines):
        return ""
    if not old:
        return f"line {fix.line}: `{fix.text}` is inserted"
    return f"line {fix.line}: `{old}` becomes `{fix.text}`" if fix.text else f"line {fix.line}: `{old}` is removed"


def _is_of_other_kind(fix: FixIt, source: str, lines: list[bytes]) -> bool:
    """Say whether the source calls the new name nowhere and it is to be called, or only calls it and it is not to be."""
    used = {bool(call) for call in re.findall(rf"\b{re.escape(fix.text)}\b(\s*\()?", source)}
    is_called = lines[fix.line - 1][fix.end_column - 1 :].lstrip().startswith(b"(")
    return bool(used) and is_called not in used


def _is_name(text: str) -> bool:
    return text.isidentifier() and text not in KEYWORDS
