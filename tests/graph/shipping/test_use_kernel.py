"""`use_kernel.py` of a run folder, with a kernel of the test's own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.shipping.use_kernel import write_use_kernel
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.vocabulary import Interface

from .finished_run import MODULE, NO_INIT_INPUTS, Finished, refute_winner, write_run
from .installing import without_python


def test_a_run_folder_runs_its_winner_against_the_reference(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    command = [sys.executable, str(run / "use_kernel.py")]
    done = subprocess.run(command, cwd=tmp_path, env=without_python(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    assert re.search(r"relative error to the reference in float64: \d\.\de-\d\d \(at most 1e-05\)", done.stdout)
    assert re.search(r"\(each one's median\): \d+\.\d\dx, .*\n(certified|in its search): \d+\.\d\dx \(", done.stdout)


@pytest.mark.parametrize("interface", [Interface.C, Interface.MODULE])
def test_a_reference_without_get_init_inputs_is_run_beside_its_winner(tmp_path: Path, interface: Interface) -> None:
    source = MODULE.replace("(self, cols)", "(self, cols=32)") if interface is Interface.MODULE else ""
    run = write_run(tmp_path / "run", Finished(interface=interface, source=source, reference=NO_INIT_INPUTS))
    done = subprocess.run(
        [sys.executable, str(run / "use_kernel.py")], env=without_python(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr + done.stdout


def test_help_says_what_the_script_does_and_runs_nothing(tmp_path: Path) -> None:
    script = write_run(tmp_path / "run") / "use_kernel.py"
    done = subprocess.run([sys.executable, str(script), "--help"], env=without_python(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "against its reference" in done.stdout and "--any-cpu" in done.stdout and "relative error" not in done.stdout
    assert not (script.parent / "libbest.so").exists()
    done = subprocess.run(
        [sys.executable, str(script), "--anycpu"], env=without_python(), capture_output=True, text=True
    )
    assert done.returncode == 2 and "unrecognized arguments: --anycpu" in done.stderr


@pytest.mark.thorough
def test_on_another_cpu_the_script_runs_only_where_that_is_said(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    script, here = run / "use_kernel.py", detect_device("cpu")
    script.write_text(
        script.read_text().replace(json.dumps([here.name, here.arch]), '["Another CPU", "x86_64-another"]')
    )

    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(script), *words]
        return subprocess.run(command, cwd=tmp_path, env=without_python(), capture_output=True, text=True)

    refused = ran()
    other = f"this CPU ({here.arch}) is not the Another CPU (x86_64-another) that it was certified on"
    assert (refused.returncode, refused.stderr) == (1, f"{other} (--any-cpu runs it all the same)\n")
    assert ran("--any-cpu").returncode == 0


def test_only_a_certified_kernel_is_called_the_winner_and_either_script_is_known_as_an_own_one(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Finished(certified=False))
    first, _, _ = (run / "use_kernel.py").read_text().partition("\n")
    assert first.startswith(
        '"""The fastest kernel of this run, uncertified, against its reference: `python use_kernel.py`'
    )
    assert "winner" not in first
    with Archive.open(run, create=False) as archive:
        refute_winner(archive)
        write_use_kernel(run, archive)
    assert not (run / "use_kernel.py").exists()
    assert (write_run(tmp_path / "other") / "use_kernel.py").read_text().startswith('"""The winner of this run against')


@pytest.mark.parametrize("interface", Interface)
def test_a_python_without_pytorch_is_told_in_one_line_what_to_install(tmp_path: Path, interface: Interface) -> None:
    run = write_run(tmp_path / "run", Finished(interface=interface))
    alone = [sys.executable, "-I", "-S", str(run / "use_kernel.py")]  # without the folder of installed packages
    done = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("No module named 'torch', in ")
    assert done.stderr.endswith(f"{sys.executable} -m pip install torch\n")


def test_a_search_that_ends_without_a_winner_removes_its_own_files_alone(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with Archive.open(run, create=False) as archive:
        refute_winner(archive)
        write_use_kernel(run, archive)
        assert not (run / "use_kernel.py").exists()
        assert not (run / "reference.py").exists()
        for name in ("use_kernel.py", "reference.py"):
            (run / name).write_text("the user's own")
        write_use_kernel(run, archive)
    assert (run / "use_kernel.py").exists()
    assert (run / "reference.py").exists()


@pytest.mark.parametrize("name", ["use_kernel.py", "reference.py"])
def test_a_file_of_the_users_own_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path / "run")
    for each in ("use_kernel.py", "reference.py"):
        (run / each).unlink()
    (run / name).write_text("the user's own")
    with Archive.open(run, create=False) as archive:
        write_use_kernel(run, archive)
    assert [path.name for path in run.glob("*.py") if path.name != "best.py"] == [name]
    assert (run / name).read_text() == "the user's own"
