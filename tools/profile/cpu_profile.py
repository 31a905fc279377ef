"""Findings on a CPU kernel: the instructions in its loops, without running it."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path

from ridgeline.tools.machine.vectors import vector_bits
from ridgeline.tools.profile.cpu_code import LoopFacts, read_listing
from ridgeline.tools.profile.findings import Findings, Specimen
from ridgeline.tools.profile.objdump import objdump
from ridgeline.tools.profile.vendor_code import cpu_work, read_links
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.results import Timing
from ridgeline.tools.sandbox.sandbox import Sandbox
from ridgeline.tools.wording import counted

LARGEST_LISTING_BYTES = 32 << 20
MOST_LINES = 4
LONGEST_QUOTE = 60
_INTRINSIC = re.compile(r"\b_mm(?:256|512)?_\w+\s*\(")


def look_into_loops(specimen: Specimen) -> Findings:
    """Return the findings of the library's disassembly; objdump reads it in the sandbox, and it is never loaded."""
    facts, missing = _loop_facts(specimen.library, specimen.sandbox)
    links, problem = read_links(specimen.library, specimen.sandbox)
    own_work = cpu_work(links, problem, specimen.timing.came_along if specimen.timing else None)
    if facts is None:
        return Findings(notes=tuple(missing), own_work=own_work)
    lines = _scalar_lines(specimen)
    notes = loop_notes(
        facts,
        device=specimen.device,
        is_memory_bound=specimen.is_memory_bound,
        scalar_lines=lines,
        is_by_hand=bool(_INTRINSIC.search(specimen.source)),
    )
    return Findings(notes=tuple(notes), details=_details(facts, specimen.timing), own_work=own_work)


def _scalar_lines(specimen: Specimen) -> tuple[str, ...] | None:
    """Return the lines of scalar loops as "line 12 (`a += x[i];`)"; None without a build that has line tables."""
    if specimen.profile_library is None:
        return None
    facts, _ = _loop_facts(specimen.profile_library, specimen.sandbox, "-l")
    if facts is None or not (facts.packed_lines or facts.scalar_lines):
        return None
    lines = specimen.source.splitlines()
    return tuple(f"line {n}{_quoted(lines[n - 1])}" for n in facts.never_packed if n <= len(lines))


def _quoted(line: str) -> str:
    text = " ".join(line.split())
    short = text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"
    return f" (`{short}`)" if text else ""


def _loop_facts(library: Path, sandbox: Sandbox, *options: str) -> tuple[LoopFacts | None, list[str]]:
    """Return the facts of the innermost loops and no note, or None and why they are unknown."""
    if platform.machine() != "x86_64":
        return None, [f"the instruction mix is read on x86-64 only, not on {platform.machine()}"]
    wanted = ("-d", "--no-show-raw-insn", *options)
    listing, problem = objdump(library, sandbox, *wanted, listing_bytes=LARGEST_LISTING_BYTES)
    return (None, [f"the instruction mix is unknown: {problem}"]) if problem else (read_listing(listing), [])


def loop_notes(
    facts: LoopFacts,
    *,
    device: Device,
    is_memory_bound: bool,
    scalar_lines: Sequence[str] | None = None,
    is_by_hand: bool = False,
) -> list[str]:
    """Return what to change in the code, most rewarding first; `scalar_lines` are where it has scalar loops, None unknown.

    Of a source in intrinsics, `is_by_hand`, the registers' width says nothing that its author did not write.
    """
    notes = [*_math_notes(facts), *_vector_notes(facts, is_by_hand=is_by_hand), *_scalar_notes(facts, scalar_lines)]
    if not facts.uses_openmp and device.cores > 1:
        notes.append(
            f"no OpenMP region: one of {device.cores} cores is used; share the rows with `#pragma omp parallel for`"
        )
    if facts.streaming_stores:
        notes.append(f"{facts.streaming_stores} streaming store instruction(s): outputs bypass the cache")
    elif is_memory_bound and facts.plain_vector_stores:
        notes.append(
            "plain stores only: each output line is read from memory before it is overwritten; for an output that is "
            f"not read again, streaming stores ({_stream_intrinsic()}, then _mm_sfence) save that"
        )
    if facts.gathers:
        notes.append(
            f"{counted(facts.gathers, 'gather instruction')} in loops: strided or indexed loads; make the inner index "
            "contiguous"
        )
    if facts.spills:
        notes.append(
            f"{facts.spills} vector register spill(s) or reload(s) in innermost loops: too many live values; unroll less "
            "or split the loop"
        )
    return notes


def _stream_intrinsic() -> str:
    """Return the widest streaming store that this processor has, with the alignment that it needs."""
    bits = max(vector_bits(), 128)
    return f"_mm{'' if bits == 128 else bits}_stream_ps on {bits // 8}-byte aligned addresses"


def _math_notes(facts: LoopFacts) -> list[str]:
    notes = []
    if facts.scalar_math and not facts.vector_math:
        notes.append(
            f"calls {_names(facts.scalar_math)} once per element: not vectorised; write the function inline as a polynomial "
            "or give the loop `#pragma omp simd` on a plain, non-aliasing index"
        )
    if facts.vector_math:
        notes.append(
            f"calls libm's vector functions {_names(facts.vector_math)}: every vector register is saved around such a call; "
            "an inline polynomial with the accuracy that fp32 needs is usually faster"
        )
    return notes


def _scalar_notes(facts: LoopFacts, lines: Sequence[str] | None) -> list[str]:
    if lines is None:
        if not facts.scalar_loops or not facts.widest_bits:
            return []
        return [
            (
                f"{facts.scalar_loops} of {facts.loops} floating-point loops are scalar: remainders, or second versions for "
                "pointers that might overlap (declare pointers __restrict, make row lengths constexpr multiples of 16)"
            )
        ]
    if not lines:
        return []
    more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
    return [
        (
            f"scalar, in no vector version: {', '.join(lines[:MOST_LINES])}{more}; a dependence from one turn to the next, a "
            "branch, a call or a pointer that might overlap keeps a loop so"
        )
    ]


def _vector_notes(facts: LoopFacts, *, is_by_hand: bool) -> list[str]:
    if not facts.loops:
        return ["no loop with floating-point arithmetic was found in the compiled code"]
    if not facts.widest_bits:
        return [
            "no floating-point loop is vectorised: check for aliasing pointers (__restrict), branches or early exits"
        ]
    share = facts.share_of(facts.widest_bits)
    width = f"vectorised with {facts.widest_bits}-bit registers ({share:.0%} of the loops' floating-point instructions)"
    notes = [] if is_by_hand else [width]
    if facts.widest_bits < 512 <= vector_bits():
        notes.append("this processor has 512-bit registers, which the loops do not use")
    if facts.divisions:
        notes.append(
            f"{facts.divisions} division(s) or square root(s) among few other operations in innermost loops: "
            "where the divisor stays, multiply by its reciprocal, computed before the loop"
        )
    return notes


def _names(counts: dict[str, int]) -> str:
    return ", ".join(sorted(counts))


def _details(facts: LoopFacts, timing: Timing | None) -> dict[str, float]:
    details = {
        "loops": facts.loops,
        "scalar_loops": facts.scalar_loops,
        "widest_vector_bits": facts.widest_bits,
        "widest_vector_share": facts.share_of(facts.widest_bits),
        "scalar_math_calls": sum(facts.scalar_math.values()),
        "vector_math_calls": sum(facts.vector_math.values()),
        "streaming_stores": facts.streaming_stores,
        "plain_vector_stores": facts.plain_vector_stores,
        "gathers": facts.gathers,
        "spills": facts.spills,
        "divisions": facts.divisions,
    }
    if timing and timing.page_faults_per_call is not None:
        details["page_faults_per_call"] = timing.page_faults_per_call
    return {name: float(value) for name, value in details.items()}
