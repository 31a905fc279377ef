"""A CPU's vector registers: how many, and of how many bits."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ridgeline.tools.machine.devices import cpu_flags
from ridgeline.tools.records.problem import DeviceFact

VECTOR_REGISTERS = "vector registers"
"""Name of their line in a device's table."""

_REGISTERS = {"avx512f": "32 of 512 bits", "avx": "16 of 256 bits", "sse2": "16 of 128 bits"}
"""Of the first flag that a processor has; from Intel's manual, volume 1, for 64-bit mode."""
_BITS = re.compile(r"of (\d{1,5}) bits")


def vector_registers(flags: Collection[str]) -> str:
    """Return "16 of 256 bits" of a processor's flags, "" of one that has none."""
    return next((text for flag, text in _REGISTERS.items() if flag in flags), "")


def vector_bits(facts: Iterable[DeviceFact] = ()) -> int:
    """Return the width of the vector registers by a CPU's table, which may be another machine's.

    Without such a line in `facts` it is this machine's; 0 without /proc.
    """
    said = next((fact.value for fact in facts if fact.name == VECTOR_REGISTERS), "") or vector_registers(_flags_here())
    found = _BITS.search(said)
    return int(found[1]) if found else 0


def _flags_here() -> tuple[str, ...]:
    try:
        return cpu_flags()
    except OSError:
        return ()
