"""PyTorch's compiled modes where an engine fails or a search is killed: each is measured once all the same."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.environments import ROOT, child_environment
from tests.graph.mailbox_agent import drop_answers
from tests.graph.scripted_model import ScriptedModel
from tests.graph.search.judging.test_compiled import COMPILED, OneDevice, options

from ridgeline import run_search
from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.tools.engine import NextBaselineTask, Task
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.vocabulary import Purpose


class Killed(OneDevice):
    """A device on which the mode `compile` was killed."""

    async def submit(self, task: Task[Any]) -> Any:
        answer = await super().submit(task)
        if isinstance(task, NextBaselineTask) and task.purpose is not Purpose.CERTIFY:
            killed = {"median_ms": None, "error": "the judge died during prepare_mode", "was_killed": True}
            entries = [dataclasses.replace(e, **killed) if e.name == "compile" else e for e in answer.entries]
            return dataclasses.replace(answer, entries=tuple(entries))
        return answer


async def test_a_mode_that_was_killed_is_measured_again_by_a_resumed_search_alone(tmp_path: Path) -> None:
    asked, model = dataclasses.replace(options(tmp_path), park=True), LaterModel(name="mailbox")
    first, resumed = Killed(), OneDevice()
    result = await run_search(asked, engine=first, models=[model])
    assert (result.state, [name for name in first.order if name in COMPILED]) == ("waiting", COMPILED)
    entries = {entry["name"]: entry for entry in result.report["baselines"]}
    assert entries["compile"]["was_killed"] and not entries["compile_max_autotune"]["was_killed"]
    while result.state == "waiting":
        drop_answers(tmp_path / "run")
        result = await run_search(dataclasses.replace(asked, resume=True), engine=resumed, models=[model])
    assert result.certified
    assert [name for name in resumed.order if name in COMPILED] == ["compile"]
    assert [entry["name"] for entry in result.report["baselines"]] == ["eager", "compile_max_autotune", "compile"]


class Breaks(OneDevice):
    """A device whose first `times` compiled modes end with the engine."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    async def spend(self) -> None:
        if self.left:
            self.left -= 1
            raise EngineError("the judge died")


async def test_engine_that_fails_beside_the_models_is_tried_again_where_the_modes_are_needed(tmp_path: Path) -> None:
    engine = Breaks(1)
    result = await run_search(options(tmp_path), engine=engine, models=[ScriptedModel()])
    assert result.certified
    assert [name for name in engine.order if name in COMPILED] == COMPILED


async def test_engine_that_fails_twice_ends_the_search_which_can_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="the judge died"):
        await run_search(options(tmp_path), engine=Breaks(2), models=[ScriptedModel()])
    resumed = OneDevice()
    result = await run_search(options(tmp_path, resume=True), engine=resumed, models=[ScriptedModel()])
    assert result.certified
    assert [name for name in resumed.order if name in ("eager", *COMPILED)] == COMPILED
    assert [entry["name"] for entry in result.report["baselines"]] == ["eager", *COMPILED]


CHILD = """
import asyncio, sys
from pathlib import Path
from tests.graph.scripted_model import ScriptedModel
from tests.graph.search.judging.test_compiled import OneDevice, options
from ridgeline import run_search

folder = Path(sys.argv[1])
engine = OneDevice(endless=sys.argv[2], log=folder / "order")
asyncio.run(run_search(options(folder), engine=engine, models=[ScriptedModel(delay_s=float(sys.argv[3]))]))
"""


@pytest.mark.first_case
@pytest.mark.parametrize(("mode", "think_s"), [(COMPILED[1], 120.0), (COMPILED[0], 0.0)])
def test_killed_search_measures_each_mode_once_over_both_its_lives(tmp_path: Path, mode: str, think_s: float) -> None:
    """Kill it in its second mode while a model thinks; in another search, in its first while the round's end waits."""
    command = [sys.executable, "-c", CHILD, str(tmp_path), mode, str(think_s)]
    environment = child_environment(ROOT)
    order = tmp_path / "order"
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until:
            if order.exists() and f"begin {mode}\n" in order.read_text():
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.stderr is not None
        assert process.wait() == -signal.SIGKILL, process.stderr.read()
    first = [line.removeprefix("end ") for line in order.read_text().splitlines() if line.startswith("end ")]
    with Archive.open_read_only(tmp_path / "run") as archive:
        baselines = archive.baselines()
    assert baselines is not None and baselines.pending == tuple(COMPILED[COMPILED.index(mode) :])
    engine = OneDevice()
    result = asyncio.run(run_search(options(tmp_path, resume=True), engine=engine, models=[ScriptedModel()]))
    assert result.certified
    assert [name for name in [*first, *engine.order] if name in ("eager", *COMPILED)] == ["eager", *COMPILED]
