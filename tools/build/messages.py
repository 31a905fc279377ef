"""A compiler's messages for a person or a model: errors first, in their order, without our paths.

Compilers, assemblers and linkers tell what happened in prose only. This module is the one place that reads it.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

from ridgeline.tools.machine.architecture import explain_missing, explain_shared
from ridgeline.tools.records.vocabulary import ReasonCode

LOG_BYTES = 4000
REASON_BYTES = 300
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ERROR = re.compile(
    r": (fatal |internal compiler )?error[: ]|(nvcc|ptxas) (fatal|error)|^ptxas .*; error\s*:"
    r"|undefined reference|undefined symbol|multiple definition|out of memory",
    re.MULTILINE,
)
_FILE_LIMIT = re.compile(r"File size limit exceeded|final link failed: File too large")
_CPU_LIMIT = signal.strsignal(signal.SIGXCPU) or "CPU time limit exceeded"
_MEMORY_LIMIT = re.compile(
    r"out of memory|virtual memory exhausted|memory exhausted|Cannot allocate memory|std::bad_alloc"
    r"|Killed signal terminated program|terminated with signal 9\b"  # by the kernel, which gives no message itself
)
_LINKER_SUMMARY = "collect2: "  # says only that the linker failed
_TEMPORARY = re.compile(r"(?:/\S*/)?\b(?:cc\w{6}|tmpxft_\w+-\d+_\w+(?:\.cudafe1)?)\.(?:o|cpp)\b")
_ASSEMBLY = re.compile(r"(?:/\S*/)?\btmpxft_\w+-\d+_\w+\.ptx\b")
_START = re.compile(
    r"^\S+[:(]\d+\)?[:,]?.*\b(error|warning|note|remark)\b|^\S*ld:|^collect2:|^nvcc "
    r"|^ptxas .*(error|fatal)\s*:|^In file included"
)
_OTHER_ENTRY = re.compile(
    r"declaration of .*\b(run|forward)\(|\b(run|forward)\([^)]*\). was declared"
    r'|"(run|forward)" has "C" linkage|return type alone\n.*\b(run|forward)\s*\('  # nvcc
)
"""g++'s and nvcc's errors for a definition that contradicts problem.h's declaration, or the line that they quote."""
_UNDECLARED = re.compile(r"['\u2018](\w+)['\u2019] was not declared in this scope|identifier \"(\w+)\" is undefined")
"""An undeclared name: often an argument or a constant of another problem."""
_UNLOADABLE = "undefined symbol: _Z7forward"  # C++'s own name of a `forward` begins so, whatever its parameters
_UNDEFINED = re.compile(r"undefined reference to `([^']+)'|undefined symbol:? (\S+)")


def plain_log(raw: bytes, workdir: Path) -> str:
    """Return the compiler's output without colours, with paths of the build folder cut to file names."""
    text = _ANSI.sub("", raw.decode("utf-8", errors="replace")).replace("\r", "")
    text = text.replace(f"{workdir}/", "").replace(str(workdir), ".").replace("\0", "")
    # an #error may hold a terminal's commands
    text = "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)
    return _ASSEMBLY.sub("kernel.ptx", _TEMPORARY.sub("kernel.o", text))


def trim_log(text: str) -> str:
    """Return at most 4 kB of messages: the errors with what belongs to them first, then the rest."""
    blocks = _blocks(text)
    kept = "\n".join(sorted(blocks, key=_rank))
    if len(kept.encode()) <= LOG_BYTES:
        return kept
    marker = "\n… (more messages left out)"
    return kept.encode()[: LOG_BYTES - len(marker.encode())].decode(errors="ignore") + marker


def explain(log: str, entry: str, arch: str = "") -> tuple[ReasonCode, str]:
    """Return whether the compiler or the linker refused, and the first error in one line.

    `entry` is the declaration of what the source has to define, and is quoted when the source defines another one.
    `arch` is the GPU's architecture: a source that asks for instructions or shared memory beyond it is told so.
    """
    lacking = explain_missing(log, arch) or explain_shared(log, arch)
    if lacking:
        return ReasonCode.COMPILER_FAILED, lacking[:REASON_BYTES]
    missing = _UNDEFINED.search(log)
    if missing:
        return ReasonCode.LINK_FAILED, _explain_missing(missing[1] or missing[2], entry)
    if "collect2:" in log and not re.search(r"^\S+:\d+:\d+: error", log, re.MULTILINE):
        return ReasonCode.LINK_FAILED, _first_error(log) or "the linker failed"
    first = _first_error(log)
    if first.startswith("binding.h") and "unresolved overloaded function" in first:  # two functions called forward
        return ReasonCode.COMPILER_FAILED, _explain_missing("forward", entry)
    if first and _OTHER_ENTRY.search("\n".join(log[log.index(first) :].splitlines()[:2])):
        return ReasonCode.COMPILER_FAILED, f"{first}; it has to be `{entry}`"
    if _is_undeclared_value(log, first):
        return ReasonCode.COMPILER_FAILED, f"{first}; what there is are the arguments of `{entry}` and problem.h"
    return ReasonCode.COMPILER_FAILED, first or "the compiler failed without a message"


def explain_unloadable(reason: str, entry: str) -> str:
    """Return why a library of interface `torch` does not load; a missing `forward` shows itself only then."""
    return _explain_missing("forward", entry) if _UNLOADABLE in reason else reason


def _is_undeclared_value(log: str, first: str) -> bool:
    """Say whether the first error is of an undeclared value; a function or a type that is missing is another matter."""
    name = _UNDECLARED.search(first)
    if name is None:
        return False
    quoted = "\n".join(log[log.index(first) + len(first) :].splitlines()[:2])
    return re.search(rf"\b{name[1] or name[2]}\s*(\(|<|::)", quoted) is None


def explain_limit(log: str, *, file_bytes: int, memory_bytes: int) -> str:
    """Return which limit of a build ended the compiler, and the remedy; "" when no limit did."""
    if _FILE_LIMIT.search(log):
        limit = f"a file that it wrote grew beyond the limit of {file_bytes >> 20} MiB"
        return f"the compiler was stopped: {limit}; make the source's tables and static arrays smaller"
    if _MEMORY_LIMIT.search(log):
        limit = f"it needed more memory than the limit of {memory_bytes >> 20} MiB"
        return f"the compiler was stopped: {limit}; unroll and instantiate less"
    return ""


def tells_of_cpu_limit(log: str) -> bool:
    """Say whether a process of the compiler reached its limit of CPU time: g++ reports the end of its own child."""
    return _CPU_LIMIT in log


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
    line = next((line for line in log.splitlines() if _ERROR.search(line)), "")
    return line.strip()[:REASON_BYTES]


def _blocks(text: str) -> list[str]:
    """Split the output into messages, each with the source excerpt and notes that follow it."""
    blocks: list[list[str]] = []
    for line in text.splitlines():
        is_note = " note: " in line
        if not blocks or (_START.match(line) and not is_note):
            blocks.append([])
        if line.strip():
            blocks[-1].append(line)
    return ["\n".join(block) for block in blocks if block]
