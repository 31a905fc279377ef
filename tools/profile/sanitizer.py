"""compute-sanitizer over a GPU candidate that runs alone, as AddressSanitizer and UBSan check a CPU candidate.

memcheck finds accesses out of bounds and misaligned, racecheck hazards in shared memory, initcheck reads of memory that
nobody wrote, synccheck barriers that not every thread reaches. The candidate's own build is examined, not another.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from ridgeline.tools.errors import EngineError
from ridgeline.tools.profile.under_tool import find_tool, reason_against, watched
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.problem import Signature
from ridgeline.tools.records.results import Verdict
from ridgeline.tools.records.vocabulary import ReasonCode, Status
from ridgeline.tools.sandbox.process import ExitStatus
from ridgeline.tools.sandbox.rules import Confined, temporary_workdir
from ridgeline.tools.sandbox.sandbox import Sandbox

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND_EXIT_CODE = 86
"""compute-sanitizer's exit status for findings, as its options set it; the host never exits with it."""
NOT_INSTALLED = "compute-sanitizer is not installed: install the CUDA toolkit's, or put its folder into PATH"
MOST_FINDINGS = 8
_MOST_READ = 200
"""Most findings that are told apart; the lines are a program's own text."""
_LINE_CHARACTERS = 500
_LINE = re.compile(r"^========= ?(.*)$", re.MULTILINE)
_SUMMARY = re.compile(r"^[A-Z]+ SUMMARY: \d+")
_OFFSET = re.compile(r"\+0x[0-9a-f]+|\b0x[0-9a-f]+ in ")
_FOLDERS = re.compile(r"(?<= )/\S*/")
_FINDINGS = ("Invalid ", "Uninitialized ", "Barrier error", "Error: ", "Program hit ", "Misaligned ", "Leaked ")
_OTHER_MESSAGES = ("Warning: ", "Internal Sanitizer", "Target application", "COMPUTE-SANITIZER", "Unused memory")
_NOT_THE_CANDIDATES = ("Device not supported", "Unable to launch", "No attachable process", "failed to initialize")


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination(Record):
    """The findings of one of compute-sanitizer's tools."""

    tool: str  # "memcheck"
    findings: tuple[str, ...] = ()  # one line each
    skipped: str = ""  # why it did not run to its end; the findings then say nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitizerReport(Record):
    """All four tools; `skipped` is why none of them could run."""

    examinations: tuple[Examination, ...] = ()
    skipped: str = ""

    @property
    def reason(self) -> str:
        """Return the first finding of each tool that has any, "" when none has."""
        return "; ".join(f"{e.tool}: {e.findings[0]}" for e in self.examinations if e.findings)

    @property
    def clean_tools(self) -> tuple[str, ...]:
        """Return the tools that ran to their end and found nothing."""
        return tuple(e.tool for e in self.examinations if not e.findings and not e.skipped)

    def verdict(self, *, sandbox_tier: str, verify_s: float = 0.0) -> Verdict:
        """Return the report as a certificate keeps it: refused as unsupported where no tool could run."""
        if self.skipped:
            verdict = Verdict.failed(Finding(code=ReasonCode.INTERFACE_UNSUPPORTED, reason=self.skipped))
        elif self.reason:
            verdict = Verdict.failed(Finding(code=ReasonCode.CRASHED, reason=self.reason))
        else:
            skipped = "; ".join(f"without {e.tool}: {e.skipped}" for e in self.examinations if e.skipped)
            verdict = Verdict(status=Status.OK, reason=skipped)
        return replace(verdict, reason=verdict.reason[:600], sandbox_tier=sandbox_tier, verify_s=verify_s)


def examine(
    runner: Confined | None,
    *,
    signature: Signature,
    library: Path,
    sandbox: Sandbox,
    tools: tuple[str, ...] = TOOLS,
) -> SanitizerReport:
    """Run a candidate alone under each tool (seconds each; 10 to 100 x slower than the kernel itself).

    `runner` is how the candidate's runner is confined. A tool that cannot work here is skipped and says why.
    """
    found = find_tool("compute-sanitizer")
    if found is None:
        return SanitizerReport(skipped=NOT_INSTALLED)
    reason = reason_against(sandbox, runner)
    if reason or runner is None:
        return SanitizerReport(skipped=f"compute-sanitizer {reason}")
    examinations = []
    for tool in tools:
        with temporary_workdir("ridgeline-sanitizer-") as folder:
            confined = watched(
                runner, found, sanitizer_options(tool), signature=signature, library=library, folder=folder
            )
            examinations.append(_examination(tool, sandbox, confined))
    return _report(tuple(examinations))


def _examination(tool: str, sandbox: Sandbox, confined: Confined) -> Examination:
    try:
        ended, output = sandbox.run(confined)
    except EngineError as error:
        return Examination(tool=tool, skipped=str(error))
    return conclude(tool, ended, output)


def _report(examinations: tuple[Examination, ...]) -> SanitizerReport:
    if all(e.skipped for e in examinations):
        return SanitizerReport(skipped=f"compute-sanitizer: {examinations[0].skipped}")
    return SanitizerReport(examinations=examinations)


def sanitizer_options(tool: str) -> tuple[str, ...]:
    """Return compute-sanitizer's options for one of its tools."""
    options = [
        "--tool",
        tool,
        "--error-exitcode",
        str(FOUND_EXIT_CODE),
        "--print-limit",
        "100",
        "--show-backtrace",
        "no",
    ]
    if tool == "racecheck":
        options += ["--racecheck-report", "analysis"]  # one finding for each pair of lines, not for each address
    return (*options, "--target-processes", "all")


def conclude(tool: str, ended: ExitStatus, output: str) -> Examination:
    """Return the examination that one run of a tool was: findings, none, or why the run does not count."""
    findings = read_findings(output)
    if findings:
        return Examination(tool=tool, findings=findings)
    if not has_summary(output) or not ended.is_success:
        return Examination(tool=tool, skipped=f"{tool} did not finish: {_last_words(output) or ended.message}")
    return Examination(tool=tool)


def has_summary(output: str) -> bool:
    """Say whether the tool came to its end: every tool then prints a summary."""
    return any(_SUMMARY.match(line) for line in _LINE.findall(output))


def read_findings(output: str) -> tuple[str, ...]:
    """Return compute-sanitizer's findings, one line each: what and where; equal ones once, with a count.

    Left out: racecheck's warnings (hazards that change no value), and a tool's messages about itself.
    """
    blocks: list[list[str]] = []
    for line in _LINE.findall(output):
        if line.startswith(_FINDINGS):
            blocks.append([line])
        elif not line.strip() or line.startswith(_OTHER_MESSAGES) or _SUMMARY.match(line):
            blocks.append([])
        elif blocks and blocks[-1]:
            blocks[-1].append(line)
    found = (block for block in blocks if block and not _is_the_tools_own(block))
    counts = Counter(_one_line(block) for block in islice(found, _MOST_READ))
    lines = [what if n == 1 else f"{what} ({n} times)" for what, n in counts.items()]
    return tuple(lines[:MOST_FINDINGS])


def _is_the_tools_own(block: list[str]) -> bool:
    return any(words in block[0] for words in _NOT_THE_CANDIDATES)


def _one_line(block: list[str]) -> str:
    """Join a finding's head with its place and its kind of address, without the threads and addresses, which differ."""
    head = block[0].removeprefix("Error: ")
    parts = [_without_numbers(head) if " access at " in head else head.strip()]
    for line in block[1:]:
        text = line.strip()
        if text.startswith(("at ", "in ", "and Read access", "and Write access", "and Atomic access")):
            parts.append(_without_numbers(text))
        elif "is out of bounds" in text or "is misaligned" in text:
            parts.append("out of bounds" if "bounds" in text else "misaligned")
    return " ".join(dict.fromkeys(parts))[:300]


def _without_numbers(text: str) -> str:
    """Return a place without offsets, parameters and folders: "at void k<(int)4>(float *)+0x10 in /a/b.cu:7"."""
    plain = _FOLDERS.sub("", _without_arguments(_OFFSET.sub("", text[:_LINE_CHARACTERS])))
    return re.sub(r"\s+", " ", plain.replace(" void ", " ")).strip()


def _without_arguments(text: str) -> str:
    """Return a place with `()` for its parameters and those of its template; no expression, whose time would be cubic."""
    closing = text.rfind(")")
    first = text.find("(", 0, closing) if closing > 0 else -1
    if first < 0:
        return text
    opening, template = text.find("<", 0, closing), text.rfind(">(", 0, closing)
    begin = opening if 0 <= opening < min(first, template) else first
    return f"{text[:begin]}(){text[closing + 1 :]}"


def _last_words(output: str) -> str:
    lines = [line.removeprefix("=========").strip() for line in output.splitlines()]
    return next((line for line in reversed(lines) if line), "")[:200]
