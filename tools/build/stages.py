"""The stages that a source names with RIDGELINE_STAGE, and the builds whose clocks take their time.

The macro is nothing in a build that is judged or timed. In a profile's build `native/stages.h` or `native/stages_cuda.h`
stands in `problem.h`. Their program prints numbers alone: a stage is told by the slot of its name, and names are read
here, in the source.
"""

from __future__ import annotations

import re

from ridgeline.tools.build.flags import profile_flags
from ridgeline.tools.records.vocabulary import DeviceKind, Interface

SLOTS = 1024
"""As in native/stages.h and native/stages_cuda.h."""
MOST_STAGES = 32
WITHOUT_CLOCKS = (
    "// RIDGELINE_STAGE(name): from here to the next one, or to the end of the block, the profile counts the time for\n"
    "// `name`. Nothing in a build that is judged or timed.\n"
    "#define RIDGELINE_STAGE(name)\n"
)
_STAGE = re.compile(r'\bRIDGELINE_STAGE\s*+\(\s*+"?+([\w .:/+-]{1,40}+)"?+\s*+\)')
"""Nothing is given back: the time grows with the length of the source and no faster."""


def stage_names(source: str) -> tuple[str, ...]:
    """Return the stages of a source in order, each once and at most MOST_STAGES.

    A name is read as it is written, up to 40 letters, digits, spaces and `_.:/+-`; quotes around it do not count.
    """
    names = (" ".join(name.split()) for name in _STAGE.findall(source))
    return tuple(dict.fromkeys(name for name in names if name))[:MOST_STAGES]


def slot_of(name: str) -> int:
    """Return the place of a stage in the table: FNV-1a of its name, modulo SLOTS."""
    hashed = 2166136261
    for byte in name.encode():
        hashed = (hashed ^ byte) * 16777619 & 0xFFFFFFFF
    return hashed % SLOTS


def has_profile_build(source: str, kind: DeviceKind, interface: Interface) -> bool:
    """Return whether a profile learns more from a build of its own: the lines of loops, and the clocks of stages.

    A candidate runs alone in the native host, and in no Python runner.
    """
    return not interface.runs_in_python and bool(profile_flags(kind) or stage_names(source))
