"""A program that begins as a copy finds and leaves what it would in a Python of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.warm_python import WarmPython

TELLS = """
import os, sys
sys.stdout.reconfigure(errors="replace")
print(sys.argv[1:], os.environ.get("GIVEN"), os.getcwd(), __name__)
"""


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmPython]:
    warm = WarmPython("decimal")
    yield warm
    warm.close()


@pytest.mark.parametrize("how", ["-c", "-m", "script"])
def test_a_program_has_its_words_its_variables_and_its_folder(warm: WarmPython, tmp_path: Path, how: str) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    words = {"-c": ["-c", TELLS], "-m": ["-m", "tells"], "script": [str(tmp_path / "tells.py")]}[how]
    done = warm.run([*words, "a", "b"], env={**os.environ, "GIVEN": "this"}, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"['a', 'b'] this {tmp_path} __main__\n"), done.stderr
    assert warm.run(["-c", TELLS], env={}, cwd=tmp_path).stdout == f"[] None {tmp_path} __main__\n"


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('no')", 1, "no\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
        ("import atexit, sys; atexit.register(print, 'last', file=sys.stderr)", 0, "last\n"),
    ],
)
def test_it_ends_as_one_of_its_own(warm: WarmPython, tmp_path: Path, program: str, code: int, said: str) -> None:
    done = warm.run(["-c", program], env={}, cwd=tmp_path)
    assert (done.returncode, done.stderr.endswith(said)) == (code, True), done.stderr


def test_the_imports_are_done_and_what_one_program_changes_the_next_does_not_see(
    warm: WarmPython, tmp_path: Path
) -> None:
    program = "import sys; print('decimal' in sys.modules, hasattr(sys, 'changed')); sys.changed = True"
    assert {warm.run(["-c", program], env={}, cwd=tmp_path).stdout for _ in range(2)} == {"True False\n"}


def test_several_run_side_by_side_and_one_that_is_killed_says_so(warm: WarmPython) -> None:
    waits = "import sys, time; print('begun', flush=True); time.sleep(60)"
    first, second = (warm.start(["-c", waits], env={}, stdout=subprocess.PIPE) for _ in range(2))
    with first, second:
        for program in (first, second):
            assert program.stdout is not None and program.stdout.readline() == "begun\n"
            assert program.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            first.wait(0.01)
        first.kill()
        assert first.wait(10) == -signal.SIGKILL
        assert second.poll() is None
        second.send_signal(signal.SIGTERM)
    assert second.returncode == -signal.SIGTERM
