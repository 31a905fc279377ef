"""A search in the foreground whose reader goes away, in a process of its own with the engine in memory."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.graph import programs
from tests.graph.conftest import write_problem
from tests.warm_python import WarmProgram

from ridgeline.checkpoints.archive import Archive

pytestmark = pytest.mark.long

CHILD = """
import asyncio, contextlib, sys
from pathlib import Path
import ridgeline.graph.session.machine as machine
import ridgeline.graph.session.beginning as beginning
from ridgeline.graph.cli import main
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.tools.errors import StorageError
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel


class Engine(MemoryEngine):
    async def submit(self, task):
        if type(task).__name__ == "BenchmarkTask" and Path("full").exists():
            raise StorageError("archive.sqlite: the disk is full; free some space and try again")
        while type(task).__name__ == "VerifyTask" and task.candidate.id.startswith("r") and not Path("go").exists():
            await asyncio.sleep(0.01)
        return await super().submit(task)


@contextlib.asynccontextmanager
async def opened(*_, **__):
    yield Engine(delay_s=0.02)


class Model(ScriptedModel):
    async def propose(self, request):
        if Path("silent").exists():
            raise ModelUnavailable("scripted did not answer: HTTP 503")
        return await super().propose(request)


machine.open_engine = opened
beginning.make_models = lambda *_, **__: [Model(delay_s=0.02)]
sys.exit(main())
"""


def started(cwd: Path, *words: str) -> WarmProgram:
    return programs.started(CHILD, "run", "--plain", *words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def state_of(run_dir: Path) -> str | None:
    with Archive.open_read_only(run_dir) as archive:
        return archive.run().state


def test_a_reader_that_goes_away_stops_the_search_which_can_be_resumed(tmp_path: Path) -> None:
    search = {"rounds": 2, "ideas": 2, "implementations": 2, "tune_trials": 0, "stall_rounds": None}
    write_problem(tmp_path / "problem", search=search | {"floor_margin": None})
    with started(tmp_path, "problem", "--bank", "none", "--run-dir", "run") as cut:
        assert cut.stdout is not None and cut.stderr is not None
        while not cut.stdout.readline().rstrip().endswith("round 1/2: 2 ideas, 4 branches"):
            assert cut.poll() is None
        cut.stdout.close()
        (tmp_path / "go").touch()  # only now is anything further told
        said = cut.stderr.read()
    assert (cut.returncode, said) == (141, "")
    assert state_of(tmp_path / "run") == "stopped"
    log = (tmp_path / "run" / "run.log").read_text()
    assert "the reader of the output went away: stopped at once" in log
    assert "Traceback" not in log
    with started(tmp_path, "--bank", "none", "--resume", "run") as resumed:
        out, said = resumed.communicate(timeout=60)
    assert (resumed.returncode, said) == (0, "")
    assert "skipped, because it is stored: " in out
    assert state_of(tmp_path / "run") == "finished"


def test_a_search_that_its_provider_ends_says_how_it_goes_on(tmp_path: Path) -> None:
    write_problem(tmp_path / "problem", search={"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 0})
    (tmp_path / "silent").touch()
    (tmp_path / "go").touch()
    with started(tmp_path, "problem", "--bank", "none", "--run-dir", "run") as ended:
        out, said = ended.communicate(timeout=60)
    assert ended.returncode == 69
    assert said == ("ridgeline: no model answers, the search can be resumed later: scripted did not answer: HTTP 503\n")
    assert out.splitlines()[-1].endswith(f"run --resume {tmp_path / 'run'}")
    (tmp_path / "silent").unlink()
    with started(tmp_path, "--bank", "none", "--resume", "run") as resumed:
        out, said = resumed.communicate(timeout=60)
    assert (resumed.returncode, said) == (0, "")


def test_a_search_whose_folder_is_removed_ends_by_name_and_leaves_none(tmp_path: Path) -> None:
    write_problem(tmp_path / "problem", search={"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 0})
    with started(tmp_path, "problem", "--bank", "none", "--run-dir", "run") as ended:
        assert ended.stdout is not None and ended.stderr is not None
        while "round 1/1" not in ended.stdout.readline():
            assert ended.poll() is None
        shutil.rmtree(tmp_path / "run")
        (tmp_path / "go").touch()
        out, said = ended.communicate(timeout=60)
    assert ended.returncode == 69
    assert said.startswith("ridgeline: run/archive.sqlite: was removed, moved away or replaced while it was in use; ")
    assert "result:" not in out and "resume" not in out and not (tmp_path / "run").exists()


def test_a_search_that_a_full_disk_ends_says_how_it_goes_on(tmp_path: Path) -> None:
    write_problem(tmp_path / "problem", search={"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 0})
    (tmp_path / "full").touch()
    with started(tmp_path, "problem", "--bank", "none", "--run-dir", "run") as ended:
        (tmp_path / "go").touch()
        out, said = ended.communicate(timeout=60)
    assert (ended.returncode, said) == (
        69,
        "ridgeline: archive.sqlite: the disk is full; free some space and try again\n",
    )
    last = out.splitlines()[-1]
    assert last.startswith("what had ended is stored; once that is mended, resume: ")
    assert last.endswith(f"run --resume {tmp_path / 'run'}")
    (tmp_path / "full").unlink()
    with started(tmp_path, "--bank", "none", "--resume", "run") as resumed:
        out, said = resumed.communicate(timeout=60)
    assert (resumed.returncode, said) == (0, "")
    assert state_of(tmp_path / "run") in ("finished", "stalled", "no_gain")
