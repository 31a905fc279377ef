"""A limit on code that runs in a process of its own."""

import subprocess
import sys

from ridgeline.tools.engine import TASK_LIMIT_S
from ridgeline.tools.judge.hang_limit import SHORTEST_S, hung_line, reference_limit_s
from ridgeline.tools.judge.process import LOAD_LIMIT_S


def run(body: str) -> subprocess.CompletedProcess[str]:
    program = (
        f"from ridgeline.tools.judge.hang_limit import HangLimit\n"
        f"with HangLimit(seconds=0.5).applied():\n    {body}\nprint('over')\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def test_a_block_within_its_limit_goes_on_and_one_beyond_it_ends_the_process() -> None:
    assert run("pass").stdout == "over\n"
    ended = run("while True: pass")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert hung_line(ended.stderr, "<string>") == "line 3 in <module>"


def test_a_block_inside_a_native_call_that_keeps_the_interpreter_ends_too() -> None:
    ended = run("import ctypes; ctypes.PyDLL(None).sleep(1000)")
    assert hung_line(ended.stderr, "<string>") == "line 3 in <module>"


def test_an_empty_report_is_no_hang_and_one_of_other_files_names_no_line() -> None:
    assert hung_line("", "reference.py") is None
    assert hung_line('\ufffd{"x": 1}\n', "reference.py") is None, "what a reference wrote there"
    assert hung_line('Timeout (0:01:00)!\n  File "other.py", line 3 in f\n', "reference.py") == ""


def test_the_limit_follows_a_long_call_timeout_only() -> None:
    assert (reference_limit_s(5.0), reference_limit_s(100.0)) == (SHORTEST_S, 200.0)


def test_loading_a_problem_ends_as_its_own_failure_before_the_task_does() -> None:
    assert LOAD_LIMIT_S < TASK_LIMIT_S
