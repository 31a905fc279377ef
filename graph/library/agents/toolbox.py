"""The four steps of a kernel's life as tools for an agent that writes kernels itself, on an engine that stays open."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from langchain_core.tools import StructuredTool

from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.library.agents.call import mistakes_in, telling_model
from ridgeline.graph.search.judging.given_kernels import given_kernel
from ridgeline.graph.session import machine
from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.problem import ProblemName, find_problem
from ridgeline.tools.engine import DescribeTask
from ridgeline.tools.errors import InputError
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.printable import encodable
from ridgeline.tools.records.vocabulary import Origin
from ridgeline.tools.toolbox import make_source_toolbox

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from pydantic import BaseModel

    from ridgeline.tools.engine import Engine


@contextlib.asynccontextmanager
async def open_toolbox(
    problem: ProblemName,
    *,
    device: str = "cpu",
    archive: Path | str | None = None,
    engine: Engine | None = None,
) -> AsyncIterator[list[BaseTool]]:
    """Give compile_kernel, verify_kernel, benchmark_kernel and profile_kernel for one problem, to be awaited in this loop.

    The first takes a whole `source` and returns a `candidate_id`, which the others take. Sources, logs and measurements are
    kept in the file `archive` and are not measured again when it is opened again; without one they go with the block.
    `engine` replaces the local one and is not closed. A mistake and a failure of the machine come back as a message of
    status "error".

    Raises:
        InputError: invalid input; one line says how to fix it.
        EngineError: the machine failed while the problem was described.
    """
    given: Path | None = checked("archive", archive)
    spec = await asyncio.to_thread(find_problem, problem)
    target = await asyncio.to_thread(machine.target_of, spec, device)
    async with contextlib.AsyncExitStack() as stack:
        if engine is None:
            await asyncio.to_thread(machine.check_machine, device)
            engine = await stack.enter_async_context(machine.open_engine(device))
        file = given or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ridgeline-"))) / "kernels.sqlite"
        store = await run_whole(_open_archive, file, stack)
        with machine.users_reference(spec, target.device.kind.value):
            described = target.described(await engine.submit(DescribeTask(problem=target)))

        def keep(source: str) -> str:
            name = hashlib.sha256(source.encode()).hexdigest()[:12]
            store.add_candidate(given_kernel(name, source, target, origin=Origin.FILE))
            return name

        yield [_telling_errors(tool) for tool in make_source_toolbox(engine, store, described, keep)]


def _open_archive(file: Path, stack: contextlib.AsyncExitStack) -> Archive:
    """Return the archive in a file; the stack closes it, also where this task was cancelled meanwhile."""
    return stack.enter_context(Archive.open(file))


def _telling_errors(tool: BaseTool) -> BaseTool:
    if not isinstance(tool, StructuredTool) or tool.coroutine is None:
        return tool
    arguments = cast("type[BaseModel]", tool.get_input_schema())
    return tool.model_copy(
        update={
            "coroutine": telling_model(_of_whole_texts(tool.coroutine)),
            "handle_tool_error": True,
            "handle_validation_error": mistakes_in(arguments),
        }
    )


def _of_whole_texts(work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return the function that refuses half of a pair of surrogates, as a model's JSON may hold and no archive takes."""

    @functools.wraps(work)
    async def called(**given: Any) -> Any:
        for name, value in given.items():
            if isinstance(value, str) and encodable(value) != value:
                raise InputError(f"{name}: half of a pair of unicode surrogates stands alone; send whole characters")
        return await work(**given)

    return called
