"""Several kernels as one source: a compiler reads the headers that they share once, which is most of a small one's build."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ridgeline.tools.build.flags import requested_flags
from ridgeline.tools.build.interfaces import entry_declaration, problem_header
from ridgeline.tools.records.problem import Signature
from ridgeline.tools.records.vocabulary import DeviceKind

ENTRIES = ("run", "workspace_bytes", "ridgeline_call", "ridgeline_error")
"""What each kernel's own header declares or defines without mangling, so under a name of its own here."""
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"][^>"\n]+[>"]).*$', re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_GUARD = "RIDGELINE_PROBLEM_H"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A kernel of interface `c` and what `problem.h` is made of for it."""

    name: str  # an identifier, by which the compiler's messages name it too
    signature: Signature
    source: str


def symbol(part: str, entry: str) -> str:
    """Return the name that an entry of a part has in the unit's library."""
    return f"{part}_{entry}"


def units(parts: Iterable[Part], kind: DeviceKind) -> list[tuple[Part, ...]]:
    """Return the parts in groups that ask for the same flags and headers: none is given what only another asks for."""
    groups: dict[tuple[tuple[str, ...], ...], list[Part]] = {}
    for part in parts:
        asked = (requested_flags(part.source), tuple(_included(_text(part, kind))))
        groups.setdefault(asked, []).append(part)
    return [tuple(group) for group in groups.values()]


def one_unit(parts: Sequence[Part], kind: DeviceKind) -> str:
    """Return a source that holds the parts, each behind its own `problem.h` in a namespace of its own.

    Its own `run`, which does nothing, is for the header of the first part's problem, with which it is to be built. The
    parts are one of the groups of `units`.
    """
    texts = [_text(part, kind) for part in parts]
    shared = [f"#include {name}" for name in _included(texts[0])]
    own = f"{entry_declaration(parts[0].signature, kind)} {{}}"
    return "\n".join([*shared, *map(_enclosed, parts, texts), own]) + "\n"


def _text(part: Part, kind: DeviceKind) -> str:
    """Return a part behind its header, which nvcc is not to warn of: where it is a file, its constants may go unused."""
    header = problem_header(part.signature, kind)
    if kind is DeviceKind.CUDA:
        header = f"#pragma nv_diagnostic push\n#pragma nv_diag_suppress 177\n{header}#pragma nv_diagnostic pop\n"
    return f'{header}#line 1 "{part.name}"\n{part.source}'


def _included(text: str) -> list[str]:
    return [name for name in dict.fromkeys(_INCLUDE.findall(text)) if name != '"problem.h"']


def _enclosed(part: Part, text: str) -> str:
    renamed = [f"#define {entry} {symbol(part.name, entry)}" for entry in ENTRIES]
    macros = {*ENTRIES, *_DEFINE.findall(text)} - {_GUARD}
    ended = [f"#undef {macro}" for macro in sorted(macros)]
    lines = [f"#undef {_GUARD}", *renamed, f"namespace {part.name} {{", _INCLUDE.sub("", text), "}", *ended]
    return "\n".join(lines)
