"""Ctrl-C during `ridgeline.search`, and what `asearch` and `aevaluate` leave to a running event loop."""

from __future__ import annotations

import inspect
import signal
import subprocess
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.programs import started

import ridgeline
from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.library import evaluation

CHILD = """
import asyncio, contextlib, signal, sys
import ridgeline
import ridgeline.graph.session.machine as machine
import ridgeline.graph.session.beginning as beginning
import ridgeline.graph.session.options as options
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores interrupts
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel


@contextlib.asynccontextmanager
async def opened(*_, **__):
    yield MemoryEngine(delay_s=0.05)


machine.open_engine = opened
beginning.make_models = lambda *_, **__: [ScriptedModel(delay_s=0.02)]
options.check_machine = lambda *_, **__: None


def tell(event):
    if event["event"] == "round_started" or event.get("outcome") == "stopping":
        print(event["event"], flush=True)


def search(**options):
    return ridgeline.search(run_dir="run", on_event=tell, **options)

"""
BLOCKING = """
try:
    search(problem="problem")
except KeyboardInterrupt as error:
    print("interrupted", *error.__notes__)
print("resumed", search(resume=True).state)
"""
IN_A_LOOP = """
async def main():
    print("interrupted", search(problem="problem").state, flush=True)
    await asyncio.sleep(0)


try:
    asyncio.run(main())
except KeyboardInterrupt:
    pass
print("resumed", search(resume=True).state)
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (BLOCKING, "interrupted the search ended in state stopped; go on: search(resume=True, run_dir='run')"),
        (IN_A_LOOP, "interrupted stopped"),
    ],
)
def test_an_interrupt_stops_a_search_which_goes_on_when_it_is_resumed(tmp_path: Path, script: str, said: str) -> None:
    search = {"rounds": 2, "ideas": 2, "implementations": 2, "tune_trials": 0, "stall_rounds": None}
    write_problem(tmp_path / "problem", search=search | {"floor_margin": None})
    code = CHILD + textwrap.dedent(script)
    process = started(code, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    with process:
        assert process.stdout.readline() == "round_started\n"
        process.send_signal(signal.SIGINT)
        lines, errors = process.stdout.read().splitlines(), process.stderr.read()
    assert lines[0] == "stopped", errors
    assert lines[1] == said and lines[-1] == "resumed finished", errors
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert archive.run().state == "finished"


async def test_nothing_that_blocks_is_done_in_the_loops_own_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, threading.Thread] = {}

    def noting(name: str) -> Any:
        done = getattr(evaluation, name)

        def call(*given: Any, **options: Any) -> Any:
            threads[name] = threading.current_thread()
            return done(*given, **options)

        return call

    names = ("find_problem", "target_of", "_sources")
    for name in names:
        monkeypatch.setattr(evaluation, name, noting(name))
    write_problem(tmp_path / "problem")
    await ridgeline.aevaluate(tmp_path / "problem", "// speed 2.0\n", engine=MemoryEngine())
    assert set(threads) == set(names) and threading.current_thread() not in threads.values()


def test_the_twins_take_the_same_arguments() -> None:
    assert inspect.signature(ridgeline.search) == inspect.signature(ridgeline.asearch)
    assert ridgeline.search.__doc__ == ridgeline.asearch.__doc__
    assert inspect.iscoroutinefunction(ridgeline.asearch) and not inspect.iscoroutinefunction(ridgeline.search)
    without = {n: p for n, p in inspect.signature(ridgeline.aevaluate).parameters.items() if n != "engine"}
    assert without == dict(inspect.signature(ridgeline.evaluate).parameters)
