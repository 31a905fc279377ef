"""The loops of a shared object's x86-64 code, read from objdump's listing; the object is never loaded."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(\S+)\s*(.*)$")
_SOURCE_LINE = re.compile(r"(\S++)(?: \(discriminator \d++\))?+")
_LINE_NUMBER = re.compile(r"\d{1,9}")
_KERNEL = "kernel.cpp"  # the file name of every candidate: see tools/build/interfaces.py
_PREFIXES = {"notrack", "lock", "rep", "repz", "bnd", "data16", "cs", "addr32"}
_ARITHMETIC = re.compile(
    r"^v?(?:fn?m(?:add|sub)(?:addsub)?\d*|add|sub|mul|div|sqrt|max|min|rsqrt14|rcp14)(ps|pd|ss|sd|ph|sh)$"
)
_STREAMING = re.compile(r"^v?movnt(?:ps|pd|dq|i|q)$")
_CRT = {
    "_init",
    "_fini",
    "deregister_tm_clones",
    "register_tm_clones",
    "__do_global_dtors_aux",
    "frame_dummy",
    "_start",
}
_MATH = re.compile(
    r"^(?:exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|tan|sincos|asin|acos|atan|atan2|sinh|cosh|tanh|erf|erfc|pow|cbrt|"
    r"hypot|fmod|tgamma|lgamma|floor|ceil|round|rint|nearbyint|trunc|fmax|fmin|sqrt)f?$"
)
WIDTH_BITS = {"zmm": 512, "ymm": 256, "xmm": 128}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of the listing."""

    address: int
    mnemonic: str
    operands: str
    line: int = 0  # of the candidate's source; 0: of another file, or unknown

    @property
    def jump_target(self) -> int | None:
        """Return the address a jump within the function leads to, or None."""
        if not self.mnemonic.startswith("j"):
            return None
        target = re.match(r"([0-9a-f]+) <", self.operands)
        return int(target[1], 16) if target else None

    @property
    def callee(self) -> str:
        """Return the called function's name, or ""."""
        name = re.search(r"<([^>@+]+)", self.operands) if self.mnemonic in ("call", "callq") else None
        return name[1] if name else ""

    @property
    def arithmetic_bits(self) -> int:
        """Return the register width of a floating-point operation (32 or 64 for a scalar one); 0 for anything else."""
        match = _ARITHMETIC.match(self.mnemonic)
        if match is None:
            return 0
        if match[1] in ("ss", "sh"):
            return 32
        if match[1] == "sd":
            return 64
        return max((bits for name, bits in WIDTH_BITS.items() if f"%{name}" in self.operands), default=0)

    @property
    def touches_stack(self) -> bool:
        """Return whether a vector register is spilled to or reloaded from the stack."""
        is_vector_move = re.match(r"^v?mov(?:aps|ups|ss|sd|apd|upd|dqa|dqu)\w*$", self.mnemonic)
        return bool(is_vector_move) and bool(re.search(r"\(%r[sb]p\)", self.operands))

    @property
    def stores_vector(self) -> bool:
        """Return whether a packed register is stored to memory that is not the stack, in the ordinary way."""
        return (
            bool(re.match(r"^v?mov(?:aps|ups|apd|upd|dqa|dqu)\w*$", self.mnemonic))
            and self.operands.rstrip("}k01234567{").endswith(")")
            and not self.touches_stack
        )


_DIVISION = re.compile(r"^v?(div|sqrt)[ps][sd]$")
SELDOM = 16
"""Floating-point operations to one division from which on it costs little: it starts every 10 cycles or so, and they take as
many. A rule, not a measurement."""


@dataclass(slots=True, kw_only=True)
class LoopFacts:
    """Counts over the innermost loops of all functions."""

    loops: int = 0  # innermost loops with floating-point work
    scalar_loops: int = 0  # of these, the ones without any packed operation
    arithmetic: dict[int, int] = field(default_factory=dict)  # width in bits -> instructions
    vector_math: dict[str, int] = field(default_factory=dict)  # libmvec calls: "_ZGVeN16v_expf"
    scalar_math: dict[str, int] = field(default_factory=dict)  # libm calls, one element each: "expf"
    streaming_stores: int = 0  # anywhere in the code
    plain_vector_stores: int = 0
    gathers: int = 0
    spills: int = 0  # vector registers moved to or from the stack, except around calls
    divisions: int = 0  # of loops where one operation in SELDOM or more is one: the reciprocal of a whole row is none
    uses_openmp: bool = False
    scalar_lines: list[set[int]] = field(default_factory=list)  # of the source: of each loop without a packed operation
    packed_lines: set[int] = field(default_factory=set)  # of all loops with one

    @property
    def widest_bits(self) -> int:
        """Return the widest packed arithmetic in a loop; 0 without any."""
        return max((bits for bits in self.arithmetic if bits >= 128), default=0)

    @property
    def never_packed(self) -> tuple[int, ...]:
        """Return the first line of each loop that is scalar and no remainder of a packed one; none without line tables."""
        return tuple(sorted({min(lines) for lines in self.scalar_lines if lines and not lines & self.packed_lines}))

    def share_of(self, bits: int) -> float:
        """Return the part of the loops' floating-point instructions that have this width."""
        total = sum(self.arithmetic.values())
        return self.arithmetic.get(bits, 0) / total if total else 0.0


def read_listing(listing: str) -> LoopFacts:
    """Return the facts of `objdump -d --no-show-raw-insn` of an x86-64 shared object; with `-l` of its lines too."""
    facts = LoopFacts()
    for name, code in _functions(listing):
        if name.removesuffix("@plt") in _CRT or name.endswith("@plt"):
            continue
        facts.uses_openmp |= any(i.callee.startswith("GOMP_parallel") for i in code)
        facts.streaming_stores += sum(bool(_STREAMING.match(i.mnemonic)) for i in code)
        for loop in _innermost_loops(code):
            _add_loop(facts, loop)
    return facts


def _functions(listing: str) -> Iterator[tuple[str, list[Instruction]]]:
    name, code, source_line = "", list[Instruction](), 0
    for line in listing.splitlines():
        if header := _FUNCTION.match(line):
            if code:
                yield name, code
            name, code, source_line = header[1], [], 0
        elif instruction := _parse(line, source_line):
            code.append(instruction)
        elif (place := _source_place(line)) is not None:
            source_line = place
    if code:
        yield name, code


def _source_place(line: str) -> int | None:
    """Return the line of the candidate's source that a line of the listing names, 0 of another file's; else None."""
    found = _SOURCE_LINE.fullmatch(line)
    path, colon, number = found[1].rpartition(":") if found else ("", "", "")
    if not (path and colon and _LINE_NUMBER.fullmatch(number)):
        return None
    return int(number) if path.rpartition("/")[2] == _KERNEL else 0


def _parse(line: str, source_line: int) -> Instruction | None:
    match = _INSTRUCTION.match(line)
    if match is None:
        return None
    mnemonic, operands = match[2], match[3].split("#")[0].strip()
    while mnemonic in _PREFIXES and operands:
        mnemonic, _, operands = operands.partition(" ")
        operands = operands.strip()
    return Instruction(int(match[1], 16), mnemonic, operands, source_line)


def _innermost_loops(code: list[Instruction]) -> list[list[Instruction]]:
    """Return the bodies of loops that hold no other loop: from a backward jump's target to the jump.

    Of bodies that overlap in part the first is returned.
    """
    jumps = ((i.jump_target, i.address) for i in code)
    spans = {(target, end) for target, end in jumps if target is not None and code[0].address <= target <= end}
    addresses = [i.address for i in code]
    bodies: list[list[Instruction]] = []
    latest = -1  # start of any span that has ended: a later end with an earlier start holds that one
    covered = -1
    for start, end in sorted(spans, key=lambda span: (span[1], -span[0])):
        is_innermost, latest = start > latest, max(latest, start)
        if is_innermost and start > covered:
            bodies.append(code[bisect_left(addresses, start) : bisect_right(addresses, end)])
            covered = end
    return bodies


def _lines(loop: list[Instruction]) -> set[int]:
    """Return the source lines of a loop's floating-point work."""
    return {i.line for i in loop if i.line and (i.arithmetic_bits or _MATH.match(i.callee))}


def _add_loop(facts: LoopFacts, loop: list[Instruction]) -> None:
    widths = [i.arithmetic_bits for i in loop if i.arithmetic_bits]
    calls = [i.callee for i in loop if i.callee]
    math = [c for c in calls if _MATH.match(c) or c.startswith("_ZGV")]
    if widths or math:
        is_packed = any(w >= 128 for w in widths)
        facts.loops += 1
        facts.scalar_loops += not is_packed
        if is_packed:
            facts.packed_lines |= _lines(loop)
        else:
            facts.scalar_lines.append(_lines(loop))
    for width in widths:
        facts.arithmetic[width] = facts.arithmetic.get(width, 0) + 1
    for name in math:
        counts = facts.vector_math if name.startswith("_ZGV") else facts.scalar_math
        counts[name] = counts.get(name, 0) + 1
    facts.plain_vector_stores += sum(i.stores_vector for i in loop)
    facts.gathers += sum("gather" in i.mnemonic for i in loop)
    divisions = sum(bool(_DIVISION.match(i.mnemonic)) for i in loop)
    if divisions * SELDOM >= len(widths):
        facts.divisions += divisions
    if not calls:  # a call clobbers every vector register, so moves around it are the call's cost, named as such
        facts.spills += sum(i.touches_stack for i in loop)
