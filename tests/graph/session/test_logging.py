"""Ridgeline's log as a library's: silent, the host's levels left alone, one file a run that holds that run alone."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from tests.environments import child_environment
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.run_log import log_to
from ridgeline.graph.session.session import run_search
from ridgeline.tools.machine.logs import logger_of

SETTINGS = {"rounds": 1, "ideas": 2, "implementations": 1, "tune_trials": 0, "floor_margin": None}

logger = logger_of("ridgeline.test")


async def search_in(folder: Path, model: str) -> str:
    """Run a search whose kernels and ideas name its model; returns its log."""
    request = SearchRequest(problem=write_problem(folder / "problem", search=SETTINGS), run_dir=folder / "run")
    await run_search(request, engine=MemoryEngine(delay_s=0.01), models=[ScriptedModel(model, delay_s=0.01)])
    return (folder / "run" / "run.log").read_text()


async def test_two_searches_of_one_process_have_a_log_each(tmp_path: Path) -> None:
    level = logging.getLogger("ridgeline").level
    logs = await asyncio.gather(search_in(tmp_path / "a", "first"), search_in(tmp_path / "b", "second"))
    alone = await search_in(tmp_path / "c", "third")
    assert alone.count(" INFO ") > 4
    assert [log.count(" INFO ") for log in logs] == [alone.count(" INFO ")] * 2
    assert logging.getLogger("ridgeline").level == level == logging.NOTSET


async def test_tasks_and_threads_of_two_runs_write_each_into_its_own_log(tmp_path: Path) -> None:
    both_open = asyncio.Barrier(2)

    async def run(name: str) -> str:
        with log_to(tmp_path / name):
            await both_open.wait()
            await asyncio.gather(asyncio.to_thread(logger.info, "thread of %s", name), asyncio.sleep(0))
            logger.info("task of %s", name)
            await both_open.wait()
        return (tmp_path / name).read_text()

    for name, text in zip("ab", await asyncio.gather(run("a"), run("b")), strict=True):
        assert [line.rpartition(": ")[2] for line in text.splitlines()] == [f"thread of {name}", f"task of {name}"]


def test_a_host_hears_what_its_levels_let_through_and_nothing_changes_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    of_host = logging.getLogger("ridgeline")
    with log_to(tmp_path / "log"):
        logger.info("quiet")
        logger.warning("loud")
        assert of_host.level == logging.NOTSET and not of_host.isEnabledFor(logging.INFO)
        with caplog.at_level(logging.INFO, logger="ridgeline.test"):
            logger.info("asked for")
    logger.info("after the run")
    assert caplog.messages == ["loud", "asked for"]
    assert [r.name for r in caplog.records] == ["ridgeline.test"] * 2
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["quiet", "loud", "asked for"]


def test_a_host_that_turns_logging_off_keeps_the_runs_log(tmp_path: Path) -> None:
    logging.disable(logging.CRITICAL)
    try:
        with log_to(tmp_path / "log"):
            logger.info("written")
    finally:
        logging.disable(logging.NOTSET)
    assert (tmp_path / "log").read_text().endswith("written\n")


def test_a_program_without_logging_sees_nothing() -> None:
    code = "import ridgeline\nfrom ridgeline.tools.machine.logs import logger_of\nlogger_of('ridgeline.x').error('no')"
    environment = child_environment()
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
