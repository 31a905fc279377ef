"""The answers of the tools: short records with absolute paths, whose schemas a client is given."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class FoundKernel(BaseModel):
    """The best kernel of a run, in figures."""

    id: str
    idea: str | None = Field(description="the idea's title; null of a seed kernel")
    speedup: float | None = Field(description="eager PyTorch's time / the kernel's")
    speedup_ci95: list[float] | None = Field(description="its interval, [low, high]")
    speedup_vs_best: float | None = Field(description="over the fastest of PyTorch's configurations")
    median_ms: float | None
    reference_ms: float | None = Field(description="eager PyTorch in the same measurement")
    precision_class: str | None
    certified: bool = Field(description="whether it passed its certificate; only then the figures are proven")


class RunStatus(BaseModel):
    """A run's progress."""

    run: str = Field(description="the run's folder; every tool takes it, and its name too")
    name: str
    problem: str
    device: str
    models: list[str]
    state: str = Field(
        description="starting, running; stopped, waiting, interrupted, budget: resume_search goes on; finished, at_floor, "
        "stalled, no_gain: over; refused: it did not begin, `error` says why"
    )
    is_running: bool = Field(description="whether a process searches now")
    is_resumable: bool
    says: str = Field(description="the state in words")
    rounds_done: int
    rounds: int | None = Field(description="rounds that were asked for")
    candidates: int = Field(description="kernels that models wrote so far")
    best: FoundKernel | None
    waiting: list[str] = Field(description="ids of the requests that wait for an answer: next_request, answer")
    last_event: str = Field(description="the last line of run.log")
    error: str | None = Field(description="why the search's process ended, where it failed")
    tokens: int
    usd: float
    wall_s: float | None
    log: str = Field(description="run.log, a line for each event")
    seen: str = Field(description="give it to wait, which returns once it differs")


class RunEntry(BaseModel):
    """One run of a list."""

    run: str
    name: str
    problem: str
    state: str


class RunList(BaseModel):
    """The runs of the server's folder, newest first."""

    runs_dir: str
    runs: list[RunEntry]
    older: int = Field(description="how many more there are")


class BestKernel(BaseModel):
    """The best kernel of a run, and where it lies."""

    run: str
    state: str
    best: FoundKernel | None = Field(description="null: no kernel was right yet")
    language: str | None = Field(description="cpp, cu or py")
    source_path: str | None = Field(description="the source's file; null until the search ends or is stopped")
    source: str | None = Field(description="the source, where it was asked for")
    resources: list[str] = Field(description="URIs of the report, the certificate and the source")
    next_step: str


class Stopping(BaseModel):
    """A search that was asked to stop."""

    run: str
    says: str


class Request(BaseModel):
    """A request of a search that waits for its answer."""

    id: str
    purpose: str = Field(description="ideas or kernel")
    model: str = Field(description="the mailbox that it is put into")
    asked_at: str
    refused: str = Field(description="what was wrong with the last answer; empty without one")
    prompt: str | None = Field(description="all that an answer needs; null where it was not asked for")
    prompt_path: str = Field(description="a file with the prompt and how to answer")
    schema_: dict[str, Any] = Field(alias="schema", description="JSON schema of the reply")
    language: str = Field(description="of a kernel's source: cpp, cu or py")


class NextRequest(BaseModel):
    """The request to answer next."""

    run: str
    request: Request | None = Field(description="null: none waits; says what the search does")
    waiting: list[str] = Field(description="ids of all requests that wait; they may be answered side by side")
    state: str
    says: str


class Answered(BaseModel):
    """An answer that was taken."""

    run: str
    id: str
    waiting: list[str] = Field(description="ids of the requests that wait now")
    is_running: bool
    seen: str = Field(description="give it to wait")
    next_step: str


class Verdict(BaseModel):
    """One kernel as it was judged and timed; a kernel that fails is an answer too."""

    status: str = Field(description="ok, or how it failed: compile_error, wrong, timeout, untrusted, …")
    reason_code: str
    reason: str
    labels: list[str] = Field(description="cautions on a result that counts")
    speedup: float | None = Field(description="eager PyTorch's time / the kernel's")
    speedup_ci95: list[float] | None
    speedup_vs_best: float | None = Field(description="over the fastest of PyTorch's configurations")
    median_ms: float | None
    reference_ms: float | None
    floor_ms: float | None = Field(description="the roofline's: no kernel is faster")
    precision_class: str | None
    rel_error: float | None
    total_s: float


class Problem(BaseModel):
    """A problem that ships."""

    name: str
    path: str
    interface: str = Field(description="the form of a kernel: c, torch or module")
    targets: list[str]
    tolerance: str
    keyless: list[str] = Field(description="targets for which the model `offline` composes kernels")
    seed_kernels: list[str]


class ProblemList(BaseModel):
    """The problems that ship with Ridgeline."""

    problems: list[Problem]


class Package(BaseModel):
    """A winner that was written as a package."""

    out: str
    name: str = Field(description="the package's name in Python")
    kernel: str
    certified: bool
    warnings: list[str]
    next_step: str
