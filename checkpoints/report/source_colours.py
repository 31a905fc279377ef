"""C++ and CUDA source as coloured HTML."""

from __future__ import annotations

import re
from html import escape

# Not Pygments: its C++ lexer takes 5 s for 4000 lines of two spaces, growing with their square, and the source is a
# model's. It also takes CUDA for C.
# What has no end is taken to the end: with each beginning tried again the time would grow with the square here too.
_TOKEN = re.compile(
    r"(?P<com>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<str>\"(?:\\.|[^\"\\\n])*+\"?)|(?P<pre>^[ \t]*\#[^\n]*)"
    r"|(?P<key>\b(?:alignas|auto|bool|break|case|char|class|const|constexpr|continue|do|double|else|extern|float|for|if"
    r"|inline|int|long|namespace|return|short|signed|sizeof|static|static_assert|struct|switch|template|typename"
    r"|unsigned|using|void|while|__global__|__device__|__shared__|__restrict__|__launch_bounds__)\b)"
    r"|(?P<num>\b\d[\w.]*\b)",
    re.DOTALL | re.MULTILINE,
)


def line_count(source: str) -> int:
    """Return how many lines a source has, as it is shown."""
    return source.count("\n") + 1


def colour_source(source: str) -> str:
    """Return C++ or CUDA source as HTML with comments, strings, keywords and numbers marked, all of it escaped."""
    parts, end = [], 0
    for token in _TOKEN.finditer(source):
        parts.append(escape(source[end : token.start()]))
        parts.append(f'<i class="{token.lastgroup}">{escape(token[0])}</i>')
        end = token.end()
    return "".join([*parts, escape(source[end:])])
