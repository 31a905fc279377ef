"""A compiler's messages for a person or a model: errors first, in their order, without our paths.

Compilers, assemblers, linkers and the dynamic loader tell what happened in prose only: g++ and nvcc have no exit status
for it, and dlopen has no code. This module is the one place that reads their words to explain a failure.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

from ridgeline.tools.machine.architecture import PLACES, place_of
from ridgeline.tools.machine.kills import tells_of_kill
from ridgeline.tools.machine.occupancy import LEAST_SHARED_BYTES, block_shared_bytes
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.vocabulary import ReasonCode

LOG_BYTES = 4000
_READ_BYTES = 64 << 10
"""Most of a log that is read: a source can make a compiler print any amount of any text."""
_LINE_CHARACTERS = 1000
REASON_BYTES = 300
_MOST_NAMES = 3
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ERROR = re.compile(
    r": (fatal |internal compiler )?error[: ]|: (Fatal error|Error): |(nvcc|ptxas) (fatal|error)|^ptxas .*; error\s*:"
    r"|undefined reference|undefined symbol|multiple definition|out of memory",
    re.MULTILINE,
)
NO_MESSAGE = "the compiler failed without a message"
_FILE_LIMIT = re.compile(r"File size limit exceeded|final link failed: File too large")
_CPU_LIMIT = signal.strsignal(signal.SIGXCPU) or "CPU time limit exceeded"
_MEMORY_LIMIT = re.compile(
    r"out of memory|virtual memory exhausted|memory exhausted|Cannot allocate memory|std::bad_alloc"
)
"""What a compiler prints at the limit, which refuses it memory. Whoever is killed met no limit: that is SIGKILL."""
_AFTER_A_KILL = re.compile(r"nvcc fatal |candidate\.py:\d+: error: RuntimeError: Error building extension")
"""Errors of who started a compiler, which say no more than that it failed."""
_LINKER_SUMMARY = "collect2: "  # says only that the linker failed
_LINKER_SAYS = re.compile(r"^(?!.*(: warning: |: in function |: info: ))(\S*ld: \S|\S*\(\.\S+\+0x[0-9a-f]+\): )")
"""A line of ld's own that is no warning: it writes `error` into few of them."""
_TEMPORARY = re.compile(r"\b(?:cc\w{6}|tmpxft_\w+-\d+_\w+(?:\.cudafe1)?)\.(o|cpp|s|ptx)\b")
_PLACE = re.compile(r"\S+?[:(]\d+")
_SEVERITY = re.compile(r"\b(error|Error|warning|Warning|note|remark)\b")
_OTHER_START = re.compile(r"\S*ld:|collect2:|nvcc |ptxas .*(error|fatal)\s*:|In file included")
_OTHER_ENTRY = re.compile(
    r"declaration of .*\b(run|forward)\(|\b(run|forward)\([^)]*\). was declared"
    r'|"(run|forward)" has "C" linkage|return type alone\n.*\b(run|forward)\s*\('  # nvcc
)
"""g++'s and nvcc's errors for a definition that contradicts problem.h's declaration, or the line that they quote."""
_UNDECLARED = re.compile(r"['\u2018](\w+)['\u2019] was not declared in this scope|identifier \"(\w+)\" is undefined")
"""An undeclared name: often an argument or a constant of another problem."""
_INCLUDE = re.compile(r"did you forget to ['\u2018](#include <[^>\s]{1,80}>)['\u2019]")
"""g++'s note on a name of the standard library whose header is not included."""
_LACKING = re.compile(
    r"error\s*: (?:Instruction|Feature|Modifier) '(?P<name>[^']+)' (?:requires \.target (?P<first>sm_\w+) or higher"
    r"|not supported on \.target|cannot be compiled for architecture)"
    r"|error: (?P<attribute>__\w+__) is not supported for this GPU architecture"
)
"""ptxas' and nvcc's errors for what an architecture lacks."""
_STATIC_SHARED = re.compile(r"uses too much shared data \((0x[0-9a-f]{1,16}) bytes, 0x[0-9a-f]+ max\)")
"""ptxas' error for more static shared memory than a block may have."""
_UNLOADABLE = "undefined symbol: _Z7forward"  # C++'s own name of a `forward` begins so, whatever its parameters
_UNMAPPED = re.compile(r"^.*: (cannot map zero-fill pages)$")
"""What dlopen says of a library for whose static arrays there is no memory, behind the library's path."""
_UNDEFINED = re.compile(r"undefined reference to `([^']+)'|undefined symbol:? (\S+)")


def plain_log(raw: bytes, workdir: Path) -> str:
    """Return the compiler's output without colours, with paths of the build folder cut to file names.

    Of a long output the beginning and the end are kept, and of a long line the beginning.
    """
    text = _ANSI.sub("", _shortened(raw).decode("utf-8", errors="replace")).replace("\r", "")
    text = text.replace(f"{workdir}/", "").replace(str(workdir), ".").replace("\0", "")
    text = printable(text, keeps="\n\t")  # an #error may hold a terminal's commands
    lines = (line[:_LINE_CHARACTERS].split(" ") for line in text.split("\n"))
    return "\n".join(" ".join(_without_place(word) for word in words) for words in lines)


def _shortened(raw: bytes) -> bytes:
    """Return the first three quarters of what is read and the last one: a linker's errors come last."""
    if len(raw) <= _READ_BYTES:
        return raw
    head = _READ_BYTES * 3 // 4
    return raw[:head] + b"\n" + raw[head - _READ_BYTES :]


def _without_place(word: str) -> str:
    """Return a word with the name of a temporary file, whose folder is no one's concern, in the kernel's name."""
    found = _TEMPORARY.search(word)
    if found is None:
        return word
    folder = word.find("/", 0, found.start()) if word[: found.start()].endswith("/") else -1
    suffix = "o" if found[1] == "cpp" else found[1]  # nvcc compiles each .cpp of its own to an object
    return f"{word[: found.start() if folder < 0 else folder]}kernel.{suffix}{word[found.end() :]}"


def trim_log(text: str) -> str:
    """Return at most 4 kB of messages: the errors with what belongs to them first, then the rest."""
    blocks = _blocks(text)
    kept = "\n".join(sorted(blocks, key=_rank))
    if len(kept.encode()) <= LOG_BYTES:
        return kept
    marker = "\n… (more messages left out)"
    return kept.encode()[: LOG_BYTES - len(marker.encode())].decode(errors="ignore") + marker


def explain_log(log: str, entry: str, arch: str = "") -> Finding:
    """Return whether the compiler or the linker refused, and the first error in one line.

    `entry` is the declaration of what the source has to define, and is quoted when the source defines another one.
    `arch` is the GPU's architecture: a source that asks for instructions or shared memory beyond it is told so.
    """
    lacking = _explain_instructions(log, arch) or _explain_shared(log, arch)
    if lacking:
        return Finding(code=ReasonCode.COMPILER_FAILED, reason=lacking[:REASON_BYTES])
    missing = _UNDEFINED.search(log)
    if missing:
        return Finding(code=ReasonCode.LINK_FAILED, reason=_explain_missing(missing[1] or missing[2], entry))
    if "collect2:" in log and not re.search(r"^\S+:\d+:\d+: error", log, re.MULTILINE):
        return Finding(code=ReasonCode.LINK_FAILED, reason=_first_error(log) or "the linker failed")
    return Finding(code=ReasonCode.COMPILER_FAILED, reason=_explain_error(log, entry))


def _explain_error(log: str, entry: str) -> str:
    """Return the compiler's first error, with the declaration where the source contradicts it or seems not to know it."""
    first = _first_error(log)
    if first and (lacking := _missing_include(log, first)):
        return f"{first}; write `{lacking}`"
    if first.startswith("binding.h") and "unresolved overloaded function" in first:  # two functions called forward
        return _explain_missing("forward", entry)
    if first and _OTHER_ENTRY.search("\n".join(log[log.index(first) :].splitlines()[:2])):
        return f"{first}; it has to be `{entry}`"
    if _is_undeclared_value(log, first):
        return f"{first}; what there is are the arguments of `{entry}` and problem.h"
    return first or NO_MESSAGE


def _missing_include(log: str, first: str) -> str:
    """Return the #include that the compiler proposes for the first error, "" when it proposes none."""
    rest = log[log.index(first) + len(first) :]
    found = _INCLUDE.search(rest)
    return found[1] if found and not _ERROR.search(rest[: found.start()]) else ""


def explain_unloadable(reason: str, entry: str) -> str:
    """Return why a library that is linked late does not load: `entry` declares the `forward` that the source may lack."""
    return _explain_missing("forward", entry) if _UNLOADABLE in reason else reason


def explain_unmapped(reason: str) -> str:
    """Return why a library does not load, with the remedy where its static arrays find no room; other reasons as they are."""
    found = _UNMAPPED.match(reason)
    return (
        f"{found[1]}: its static arrays are larger than the memory that it may have; make them smaller"
        if found
        else reason
    )


def error_signature(code: ReasonCode, reason: str) -> str:
    """Return what two builds that failed for the same reason have in common: the code and the first error.

    Places and numbers are left out, those in names too. A name stays: an edit that mends one says nothing of another.
    """
    where = _PLACE.match(reason)
    error = reason[where.end() :].lstrip("0123456789:) ") if where else reason
    return f"{code}: {re.sub(r'[0-9]+', '#', ' '.join(error.split()))}"


def _is_undeclared_value(log: str, first: str) -> bool:
    """Say whether the first error is of an undeclared value; a function or a type that is missing is another matter."""
    name = _UNDECLARED.search(first)
    if name is None:
        return False
    quoted = "\n".join(log[log.index(first) + len(first) :].splitlines()[:2])
    return re.search(rf"\b{name[1] or name[2]}\s*(\(|<|::)", quoted) is None


def explain_limit(log: str, *, file_bytes: int, memory_bytes: int) -> Finding | None:
    """Return which limit of a build ended the compiler, and the remedy; None when no limit did."""
    if _FILE_LIMIT.search(log):
        limit = f"a file that it wrote grew beyond the limit of {file_bytes >> 20} MiB"
        remedy = "make the source's tables and static arrays smaller"
    elif _MEMORY_LIMIT.search(log):
        limit = f"it needed more memory than the limit of {memory_bytes >> 20} MiB"
        remedy = "unroll and instantiate less"
    else:
        return None
    return Finding(code=ReasonCode.COMPILER_FAILED, reason=f"the compiler was stopped: {limit}; {remedy}")


def tells_of_error(log: str) -> bool:
    """Say whether a message is an error by itself, and not what a killed program leaves to its parent."""
    told = (line for line in log.splitlines() if _ERROR.search(line))
    return not all(tells_of_kill(line) or _AFTER_A_KILL.match(line) for line in told)


def tells_of_cpu_limit(log: str) -> bool:
    """Say whether a process of the compiler reached its limit of CPU time: g++ reports the end of its own child."""
    return _CPU_LIMIT in log


def _explain_instructions(log: str, arch: str) -> str:
    """Return one line on the instructions in a compiler's messages that `arch` lacks, "" when it lacks none."""
    places: dict[str, list[str]] = {}
    steps: dict[str, str] = {}
    for found in _LACKING.finditer(log):
        name = found["name"] or found["attribute"]
        where, step = place_of(name, found["first"])
        names = places.setdefault(where, [])
        steps[where] = step
        short = name.partition(" ")[0] if name.startswith(tuple(PLACES)) else name
        names += [] if short in names else [short]
    if not places:
        return ""
    where = min(places, key=lambda place: place == "")  # a name without a place is part of an instruction that has one
    names = places[where]
    listed = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
    exist = "these instructions exist" if len(names) > 1 else "this exists"
    return f"{listed}: {exist} {where or 'on other architectures'}; this GPU is {arch}: {steps[where]}"


def _explain_shared(log: str, arch: str) -> str:
    """Return one line on static shared memory beyond its limit, "" without such a complaint of the compiler."""
    found = _STATIC_SHARED.search(log)
    if found is None:
        return ""
    asked, most = int(found[1], 16), block_shared_bytes(arch)
    if asked > most:
        return f"{asked} bytes of shared memory: a block has at most {most} on {arch}: make its tiles smaller"
    return (
        f"{asked} bytes of static shared memory: at most {LEAST_SHARED_BYTES} are static: declare it extern __shared__ "
        f"and allow up to {most} on {arch} by cudaFuncAttributeMaxDynamicSharedMemorySize"
    )


def _rank(block: str) -> int:
    if block.startswith(_LINKER_SUMMARY):
        return 2
    return 0 if _ERROR.search(block) else 1


def _explain_missing(symbol: str, entry: str) -> str:
    name = symbol.partition("(")[0]
    if name in ("run", "forward"):
        return f"the source defines no `{name}` with this problem's parameters; it has to be `{entry}`"
    return f"undefined symbol {symbol}: a kernel is linked with the C++, math and OpenMP libraries only"


def _first_error(log: str) -> str:
    lines = log.splitlines()
    line = next((line for line in lines if _ERROR.search(line)), "")
    if line.startswith(_LINKER_SUMMARY):
        line = next((said for said in lines if _LINKER_SAYS.match(said)), line)
    return line.strip()[:REASON_BYTES]


def _begins_message(line: str) -> bool:
    place = _PLACE.match(line)
    return bool(place and _SEVERITY.search(line, place.end())) or bool(_OTHER_START.match(line))


def _blocks(text: str) -> list[str]:
    """Split the output into messages, each with the source excerpt and notes that follow it."""
    blocks: list[list[str]] = []
    for line in text.splitlines():
        is_note = " note: " in line
        if not blocks or (_begins_message(line) and not is_note):
            blocks.append([])
        if line.strip():
            blocks[-1].append(line)
    return ["\n".join(block) for block in blocks if block]
