"""The kernel of a benchmark: it is measured once it builds and is accepted."""

from __future__ import annotations

from importlib import import_module

import pytest
from tests.graph.memory_engine import DESCRIPTION, MemoryEngine, target

from ridgeline.tools.records.vocabulary import Status


async def test_a_kernel_s_verdict_follows_its_build() -> None:
    made, engine, problem = import_module("kernel"), MemoryEngine(), target().described(DESCRIPTION)
    kernel = made.kernel_of(problem, "// speed 2\n", name="fast")
    build = await made.built(engine, problem, kernel)
    verdict = await made.verified(engine, problem, kernel, build)
    assert (build.status, verdict.status) == (Status.OK, Status.OK)


@pytest.mark.parametrize(
    ("fails", "words"),
    [("compile", "^slow does not build: expected ';'"), ("verify", "^slow is not accepted: row 3 differs$")],
)
async def test_a_kernel_that_is_refused_ends_the_benchmark_in_one_line(fails: str, words: str) -> None:
    made, engine, problem = import_module("kernel"), MemoryEngine(), target().described(DESCRIPTION)
    kernel = made.kernel_of(problem, f"// fails {fails}\n", name="slow")
    with pytest.raises(SystemExit, match=words):
        await made.verified(engine, problem, kernel, await made.built(engine, problem, kernel))
