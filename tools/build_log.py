"""What a person or a model needs of a compiler's messages: the errors, first ones first, without our paths."""

from __future__ import annotations

import re
from pathlib import Path

from ridgeline.tools.records import ReasonCode

LOG_BYTES = 4000
REASON_BYTES = 300
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ERROR = re.compile(
    r": (fatal )?error[: ]|(nvcc|ptxas) (fatal|error)|undefined reference|undefined symbol|multiple definition|out of memory"
)
_LINKER_SUMMARY = "collect2: "  # says only that the linker failed
_TEMPORARY = re.compile(r"(?:/\S*/)?\b(?:cc\w{6}|tmpxft_\w+-\d+_\w+(?:\.cudafe1)?)\.(?:o|cpp)\b")
_START = re.compile(r"^\S+[:(]\d+\)?[:,]?.*\b(error|warning|note|remark)\b|^\S*ld:|^collect2:|^nvcc |^In file included")
_UNDEFINED = re.compile(r"undefined reference to `([^']+)'|undefined symbol:? (\S+)")


def plain_log(raw: bytes, workdir: Path) -> str:
    """Return the compiler's output without colours, with paths of the build folder cut to file names."""
    text = _ANSI.sub("", raw.decode("utf-8", errors="replace")).replace("\r", "")
    text = text.replace(f"{workdir}/", "").replace(str(workdir), ".").replace("\0", "")
    return _TEMPORARY.sub("kernel.o", text)


def trim_log(text: str) -> str:
    """Return at most 4 kB of messages: the errors with what belongs to them first, then the rest."""
    blocks = _blocks(text)
    kept = "\n".join(sorted(blocks, key=_rank))
    if len(kept.encode()) <= LOG_BYTES:
        return kept
    marker = "\n… (more messages left out)"
    return kept.encode()[: LOG_BYTES - len(marker.encode())].decode(errors="ignore") + marker


def explain(log: str) -> tuple[ReasonCode, str]:
    """Return whether the compiler or the linker refused, and the first error in one line."""
    missing = _UNDEFINED.search(log)
    if missing:
        return ReasonCode.LINK_FAILED, _explain_missing(missing[1] or missing[2])
    if "collect2:" in log and not re.search(r"^\S+:\d+:\d+: error", log, re.MULTILINE):
        return ReasonCode.LINK_FAILED, _first_error(log) or "the linker failed"
    return ReasonCode.COMPILER_FAILED, _first_error(log) or "the compiler failed without a message"


def _rank(block: str) -> int:
    if block.startswith(_LINKER_SUMMARY):
        return 2
    return 0 if _ERROR.search(block) else 1


def _explain_missing(symbol: str) -> str:
    if symbol == "run":
        return 'the source does not define `extern "C" void run(…)` with the signature that problem.h declares'
    if symbol.startswith("forward"):
        return "the source does not define `forward` with the signature that problem.h declares"
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
