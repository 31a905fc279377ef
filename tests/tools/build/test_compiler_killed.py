"""A compiler that is killed: whose failure that is, and who builds again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.tools.build.tasks import EMPTY_RUN, MakeTask

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.build.interfaces import BUILDS, CBuild
from ridgeline.tools.build.recipe import Recipe
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.vocabulary import Interface, ReasonCode, Status

pytestmark = pytest.mark.sandboxed


def scripted(monkeypatch: pytest.MonkeyPatch, script: str, **fields: Any) -> None:
    """Let every build of interface `c` run a script of the shell instead of the compiler."""

    class Scripted(CBuild):
        async def recipe(self, *arguments: Any) -> Recipe:
            return replace(await super().recipe(*arguments), command=("/bin/sh", "-c", script), **fields)

    monkeypatch.setitem(BUILDS, Interface.C, Scripted())


KILLS = [
    "echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1",
    "echo Killed >&2; exit 137",  # nvcc
    "kill -9 $$",  # the driver itself
]


@pytest.mark.parametrize("script", KILLS)
async def test_a_compiler_that_was_killed_is_the_machines_failure(
    compiler: Compiler, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    scripted(monkeypatch, script)
    for _ in range(2):
        with pytest.raises(EngineError, match="^the compiler was killed: by the kernel, .* or by somebody$"):
            await compiler.compile_batch([make_task(EMPTY_RUN)])


async def test_a_build_that_its_own_source_may_have_killed_fails_the_second_time(
    compiler: Compiler, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, "kill -9 $$", runs_source=True)
    with pytest.raises(EngineError, match="the compiler was killed"):
        await compiler.compile_batch([make_task(EMPTY_RUN)])
    (build,) = await compiler.compile_batch([make_task(EMPTY_RUN)])
    assert (build.status, build.reason_code) == (Status.COMPILE_ERROR, ReasonCode.COMPILER_FAILED)
    assert "was killed" in build.reason and "limit" not in build.reason


async def test_a_compiler_that_was_killed_costs_its_neighbour_no_second_build(
    compiler: Compiler, make_task: MakeTask, exp_source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, good = make_task(EMPTY_RUN), make_task(exp_source)

    class Partly(CBuild):
        async def recipe(self, task: Any, *arguments: Any) -> Recipe:
            made = await super().recipe(task, *arguments)
            return replace(made, command=("/bin/sh", "-c", KILLS[0])) if task == killed else made

    with monkeypatch.context() as patch:
        patch.setitem(BUILDS, Interface.C, Partly())
        with pytest.raises(EngineError, match="the compiler was killed"):
            await compiler.compile_batch([killed, good])
    again = await compiler.compile_batch([killed, good])
    assert [(build.status, build.cached) for build in again] == [(Status.OK, False), (Status.OK, True)]
