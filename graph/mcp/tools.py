"""The tools that an agent drives a search with.

A method is one tool: its signature and docstring are what a client is shown, its record is what it answers. Bad input is
an InputError, which `graph/mcp/server.py` makes an answer of one line. None blocks for longer than it says.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.fastmcp import Context
from mcp.types import ToolAnnotations
from pydantic import Field

from ridgeline.graph.library.run import open_run
from ridgeline.graph.mcp.answers import (
    Answered,
    BestKernel,
    NextRequest,
    Package,
    Problem,
    ProblemList,
    RunList,
    RunStatus,
    Stopping,
    Verdict,
)
from ridgeline.graph.mcp.children import Children
from ridgeline.graph.mcp.config import ServerConfig
from ridgeline.graph.mcp.judging import Judging
from ridgeline.graph.mcp.mailbox import content_of, waiting_request
from ridgeline.graph.mcp.runs import find, newest_runs, uri_of
from ridgeline.graph.mcp.starting import Limits, named_problem, new_run_dir, options_of
from ridgeline.graph.mcp.watching import Watching, found_in
from ridgeline.graph.session.answering import give_answer
from ridgeline.graph.session.argument_words import ARGUMENTS, MAX_ROUNDS
from ridgeline.graph.session.arguments import whole_source
from ridgeline.graph.session.stopping import ask_to_stop
from ridgeline.problems.limits import MOST
from ridgeline.problems.numbers import NoBool
from ridgeline.problems.spec import ProblemSpec, load_problem, shipped_problems
from ridgeline.tools.errors import InputError
from ridgeline.tools.records.vocabulary import RunState

LONGEST_WAIT_S = 300
_READS = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
_SEARCHES = ToolAnnotations(readOnlyHint=False, destructiveHint=False, openWorldHint=True)  # models are asked
_WRITES = ToolAnnotations(readOnlyHint=False, destructiveHint=False, openWorldHint=False)

Run = Annotated[str, Field(description="the run: its absolute folder, or its name in the server's folder of runs")]
Count = Annotated[int, Field(ge=1, le=MOST), NoBool] | None
ProblemWord = Annotated[
    str, Field(description="absolute path of a problem.yaml or of its folder, or a name of list_problems")
]
Device = Annotated[str, Field(description=ARGUMENTS["device"])]
# A text that may be left out is "", never None: of the text of any other type FastMCP reads JSON where it finds some.
Ctx = Context[Any, Any, Any]


class Tools:
    """The tools of one server."""

    def __init__(self, config: ServerConfig) -> None:
        """Take what the server was told."""
        self._config = config
        self._children = Children(config.program)
        self._watching = Watching(config.runs_dir, self._children)
        self._judging = Judging(config.engine)

    def all(self) -> list[tuple[Any, ToolAnnotations]]:
        """Return every tool, with what a client may tell its user of it."""
        searches = (self.start_search, self.resume_search)
        writes = (self.stop, self.answer, self.ship, self.evaluate_kernel)
        reads = (self.list_problems, self.list_runs, self.status, self.wait, self.best, self.next_request)
        noted = ((searches, _SEARCHES), (writes, _WRITES), (reads, _READS))
        return [(each, annotations) for tools, annotations in noted for each in tools]

    async def list_problems(self) -> ProblemList:
        """List the problems that ship with Ridgeline. One of your own is a problem.yaml: `ridgeline new` makes it."""
        return await asyncio.to_thread(_problems, self._config)

    async def list_runs(self) -> RunList:
        """List the newest runs of the server's folder with their states, also those begun by hand or by another server."""
        return await asyncio.to_thread(newest_runs, self._config.runs_dir)

    async def start_search(
        self,
        *,
        problem: ProblemWord,
        ctx: Ctx,
        device: Device = "cpu",
        models: Annotated[
            list[str] | None,
            Field(description=f"{ARGUMENTS['models']}; `mailbox`: you answer by next_request and answer"),
        ] = None,
        rounds: Annotated[Count, Field(description=ARGUMENTS["rounds"])] = None,
        ideas: Annotated[Count, Field(description=ARGUMENTS["ideas"])] = None,
        implementations: Annotated[Count, Field(description=ARGUMENTS["implementations"])] = None,
        budget: Annotated[Limits | None, Field(description=ARGUMENTS["budget"])] = None,
        run: Annotated[
            str, Field(description="the new run's name, or an absolute folder; default PROBLEM-TIME-PROCESS")
        ] = "",
        park: Annotated[bool, Field(description=ARGUMENTS["park"])] = False,
    ) -> RunStatus:
        """Begin a search for a faster kernel and return its run at once; the search goes on by itself.

        It is a process of its own (`ridgeline run`): it goes on when this client or server ends, until it is over or is
        stopped. Follow it with wait and status. Runs the problem's reference.py as the user.
        """
        spec = await asyncio.to_thread(named_problem, problem)
        run_dir = await asyncio.to_thread(new_run_dir, self._config.runs_dir, spec, run)
        shape = {"rounds": rounds, "ideas": ideas, "implementations": implementations}
        options = options_of(*(models or ()), park=park, budget=budget, run_dir=str(run_dir), device=device, **shape)
        await self._children.start(run_dir, ["run", str(spec.path), *options], ctx.report_progress)
        return await self._watching.status(run_dir)

    async def resume_search(
        self,
        *,
        run: Run,
        ctx: Ctx,
        rounds: Annotated[Count, Field(description=MAX_ROUNDS)] = None,
        budget: Annotated[Limits | None, Field(description=f"{ARGUMENTS['budget']}; replaces single limits")] = None,
        park: Annotated[bool, Field(description=ARGUMENTS["park"])] = False,
    ) -> RunStatus:
        """Go on with a search that was stopped, parked or killed, or whose budget was spent; nothing stored is repeated."""
        run_dir = await asyncio.to_thread(find, self._config.runs_dir, run)
        options = options_of(park=park, budget=budget, resume=str(run_dir), rounds=rounds)
        await self._children.start(run_dir, ["run", *options], ctx.report_progress)
        return await self._watching.status(run_dir)

    async def status(self, run: Run) -> RunStatus:
        """Say how far a run is: state, round, best kernel so far, requests that wait for an answer, cost."""
        return await self._watching.status_of(run)

    async def wait(
        self,
        *,
        run: Run,
        ctx: Ctx,
        seconds: Annotated[int, NoBool, Field(ge=1, le=LONGEST_WAIT_S, description="how long to wait at most")] = 30,
        seen: Annotated[
            str, Field(description="`seen` of the status that you know: returns once the run differs from that")
        ] = "",
    ) -> RunStatus:
        """Wait until a search ends, finishes a round, finds a better kernel or asks for an answer; then say how far it is.

        Returns after `seconds` at the latest. Without `seen` it returns at once where a request waits for an answer or
        no process searches. Meanwhile progress is notified.
        """
        return await self._watching.wait(run, seconds, seen, ctx.report_progress)

    async def best(
        self,
        *,
        run: Run,
        with_source: Annotated[bool, Field(description="return the source too")] = False,
    ) -> BestKernel:
        """Return the best kernel so far: its speedup over eager PyTorch, whether it is certified, where its source lies."""
        found = await self._watching.find(run)
        return await asyncio.to_thread(_best, found, with_source=with_source)

    async def stop(self, run: Run) -> Stopping:
        """Ask a search to stop after the steps in flight, which may take minutes; it can be resumed exactly there."""
        found = await asyncio.to_thread(find, self._config.runs_dir, run)
        await asyncio.to_thread(ask_to_stop, found)
        return Stopping(run=str(found), says="stops after the steps in flight; wait tells when, resume_search goes on")

    async def next_request(
        self,
        *,
        run: Run,
        request_id: Annotated[str, Field(description="one of `waiting`; default the oldest")] = "",
        with_prompt: Annotated[bool, Field(description="false: read the file prompt_path instead")] = True,
    ) -> NextRequest:
        """Return a request of a search with the model `mailbox`: for a round's ideas, or for one kernel.

        The prompt holds all that an answer needs. Without a request that waits it says what the search does.
        """
        found = await self._watching.find(run)
        status = await self._watching.status(found)
        request = None
        if request_id or status.waiting:
            request = await asyncio.to_thread(waiting_request, found, request_id, has_prompt=with_prompt)
        says = "answer it" if request else f"no request waits: {status.says}; last event: {status.last_event}"
        return NextRequest(run=str(found), request=request, waiting=status.waiting, state=status.state, says=says)

    async def answer(
        self,
        *,
        run: Run,
        request_id: Annotated[str, Field(description="the request's id")],
        text: Annotated[
            str,
            Field(description="what a model would reply: the JSON, one fenced code block, or SEARCH/REPLACE blocks"),
        ] = "",
        reply: Annotated[dict[str, Any] | None, Field(description="the object of the request's schema")] = None,
        source: Annotated[str, Field(description="a kernel's source itself")] = "",
        file: Annotated[str, Field(description="absolute path of a file with it: .md, .json, .cpp, .cu or .py")] = "",
    ) -> Answered:
        """Answer a request, by one of text, reply, source and file. The first answer counts; a refusal says what to mend."""
        content, suffix = await asyncio.to_thread(content_of, text=text, reply=reply, source=source, file=file)
        found = await self._watching.find(run)
        answered, _ = await asyncio.to_thread(give_answer, found, request_id, content, suffix)
        return _answered(answered, await self._watching.status(found))

    async def evaluate_kernel(
        self,
        *,
        problem: ProblemWord,
        ctx: Ctx,
        source: Annotated[str, Field(description="the kernel's source")] = "",
        file: Annotated[str, Field(description="or the absolute path of its file")] = "",
        device: Device = "cpu",
    ) -> Verdict:
        """Judge one kernel without a search: compile, verify, time. Takes a minute or several; notifies progress.

        The kernel runs in the sandbox, the problem's reference.py as the server's user. Cancelling the call ends its processes.
        """
        spec = await asyncio.to_thread(named_problem, problem)
        kernel = _kernel(source, file)
        return await self._judging.judge(spec, kernel, device, ctx.report_progress)

    async def ship(
        self,
        *,
        run: Run,
        out: Annotated[str, Field(description="absolute path of the folder to write; it must not exist")],
        name: Annotated[str, Field(description="the package's name in Python; default PROBLEM_kernel")] = "",
        gradients: Annotated[Literal["none", "reference"], Field(description="what a backward pass does")] = "none",
        uncertified: Annotated[bool, Field(description="ship a kernel without a certificate, labelled so")] = False,
    ) -> Package:
        """Write a run's winner as a Python package that needs PyTorch and a compiler, and nothing of Ridgeline.

        Runs the reference once, outside of any sandbox; the kernel is neither built nor run.
        """
        found = await asyncio.to_thread(find, self._config.runs_dir, run)
        if not Path(out).is_absolute():
            raise InputError(f"out {out}: give an absolute path")
        return await asyncio.to_thread(_ship, found, out, name, gradients, takes_uncertified=uncertified)


def _problems(config: ServerConfig) -> ProblemList:
    loaded = [(name, load_problem(path)) for name, path in sorted(shipped_problems().items())]
    return ProblemList(problems=[_problem(name, spec, config) for name, spec in loaded])


def _problem(name: str, spec: ProblemSpec, config: ServerConfig) -> Problem:
    known = config.keyless.get(name, ())
    return Problem(
        name=name,
        path=str(spec.path),
        interface=spec.interface,
        targets=list(spec.targets),
        tolerance=spec.tolerance,
        keyless=[kind for kind in spec.targets if kind in known],
        seed_kernels=[stem for kind in spec.targets for stem, _ in spec.seed_sources(kind)],
    )


def _kernel(source: str, file: str) -> str | Path:
    """Return the kernel as the library takes it: a source has a line break."""
    if bool(source) == bool(file):
        raise InputError("evaluate_kernel: give either source or file")
    if source:
        if not source.strip():
            raise InputError("source: is empty; give a kernel's source")
        return whole_source(source)
    path = Path(file)
    if not path.is_absolute():
        raise InputError(f"file {file}: give an absolute path")
    return path


def _answered(request_id: str, status: RunStatus) -> Answered:
    if status.waiting:
        next_step = "answer the others too"
    else:
        is_going_on = status.is_running
        next_step = (
            "wait: the search goes on" if is_going_on else "no process searches: resume_search takes the answers up"
        )
    same = {name: getattr(status, name) for name in ("run", "waiting", "is_running", "seen")}
    return Answered(id=request_id, next_step=next_step, **same)


def _best(run: Path, *, with_source: bool) -> BestKernel:
    opened = open_run(run)
    best, kernel = found_in(opened), opened.best
    path = run / opened.result["best"]["source_path"] if kernel else None
    is_written = path is not None and path.is_file()
    parts = ["report", *(["certificate"] if opened.certificate else []), *(["source"] if kernel else [])]
    return BestKernel(
        run=str(run),
        state=opened.state,
        best=best,
        language=kernel.language if kernel else None,
        source_path=str(path) if is_written else None,
        source=kernel.source if kernel and with_source else None,
        resources=[uri_of(run, part) for part in parts],
        next_step=_after(opened.state, is_certified=opened.is_certified, has_best=kernel is not None),
    )


def _after(state: str, *, is_certified: bool, has_best: bool) -> str:
    if is_certified:
        return "ship writes it as a package; read the source first: outside of Ridgeline no sandbox is around it"
    if state == RunState.NO_GAIN:
        return "over: no kernel was certified as faster; resume_search with more rounds goes on"
    if has_best:
        return "not certified: the search certifies its winner when it is over; let it go on (wait, resume_search)"
    return "no kernel was right yet: wait, or resume_search"


def _ship(run: Path, out: str, name: str, gradients: str, *, takes_uncertified: bool) -> Package:
    from ridgeline.graph.shipping.ship import ShipRequest, ship

    warnings: list[str] = []
    request = ShipRequest(
        run=run, out=Path(out), name=name or None, gradients=gradients, takes_uncertified=takes_uncertified
    )
    shipped = ship(request, on_warning=warnings.append)
    return Package(
        out=str(shipped.out),
        name=shipped.name,
        kernel=shipped.winner.best.candidate.id,
        certified=shipped.winner.is_certified,
        warnings=warnings,
        next_step=f"read the kernel, then: pip install {shipped.out}; python -m {shipped.name} compares it here",
    )
