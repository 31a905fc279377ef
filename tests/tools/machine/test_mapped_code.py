from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ridgeline.tools.machine.mapped_code import ANONYMOUS, mapped_code

MAPS = """\
import ctypes, mmap, os, sys, threading, time
ctypes.CDLL("libz.so.1")
kept = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC) if sys.argv[1] == "anonymous" else None
def wait():
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)
def wait_for_the_first_threads_end():
    while open(f"/proc/self/task/{os.getpid()}/stat").read().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.001)
    wait()
if sys.argv[1] == "without its first thread":
    threading.Thread(target=wait_for_the_first_threads_end).start()
    ctypes.CDLL(None).pthread_exit(None)
wait()
"""


def names_of(paths: frozenset[str]) -> set[str]:
    return {Path(path).name for path in paths}


def mapped_by(word: str) -> frozenset[str] | None:
    with subprocess.Popen(
        [sys.executable, "-c", MAPS, word], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        found = mapped_code(process.pid)
        process.stdin.close()
    return found


def test_libraries_are_named_with_their_folders_and_data_is_not() -> None:
    with mmap.mmap(-1, 4096):
        found = mapped_code(os.getpid())
    assert found is not None
    assert {"libc.so.6"} <= names_of(found)
    assert all(path.startswith("/") for path in found - {ANONYMOUS})


@pytest.mark.parametrize("name", ["a\x0bb\x85c.so", "a[vdso]", "a \x1b[31m\nb.so"])
def test_a_file_of_any_name_is_one_path(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(bytes(4096))
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC):
        found = mapped_code(os.getpid())
    assert found is not None
    assert str(file).replace("\n", "\\012") in found


def test_a_library_opened_while_it_runs_is_named_and_so_is_code_of_no_file() -> None:
    plain, anonymous = mapped_by("plain"), mapped_by("anonymous")
    assert plain is not None
    assert anonymous is not None
    assert any(name.startswith("libz.so") for name in names_of(plain))
    assert anonymous - plain == {"/dev/zero"} or anonymous - plain == {
        ANONYMOUS
    }  # a shared anonymous mapping is of /dev/zero


def test_a_process_whose_first_thread_has_ended_is_read_through_another() -> None:
    found = mapped_by("without its first thread")
    assert found is not None
    assert {"libc.so.6"} <= names_of(found)


def test_what_may_not_be_read_is_unknown() -> None:
    assert mapped_code(2**22 + 1) is None
