"""Outputs read in the memory of a process: every output of a set at its own place, and nothing where nothing can be read."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.tools.conftest import without_tensors

from ridgeline.tools.judge.process import LoadedProblem, SharedRegion
from ridgeline.tools.judge.replies import Place
from ridgeline.tools.records.problem import ArgSpec
from ridgeline.tools.records.vocabulary import ReasonCode, Role
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.left_outputs import LeftOutputs, UnreadableMemory
from ridgeline.tools.runner.output_homes import GLIMPSE_BYTES, OutputHomes

ROWS, LARGE = 3, 400_000


def place(
    name: str, role: Role, *, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, stride: int
) -> Place:
    spec = ArgSpec(name=name, role=role, shape=shape, strides=strides)
    return Place(spec=spec, region=int(role is Role.OUTPUT), offset=offset, set_stride=stride)


PLACES = (
    place("x", Role.INPUT, shape=(4,), strides=(1,), offset=0, stride=4096),
    place("out_0", Role.OUTPUT, shape=(2, ROWS), strides=(1, 2), offset=0, stride=64),
    place("out_1", Role.OUTPUT, shape=(LARGE,), strides=(1,), offset=4096, stride=2 << 20),
)
CHILD = f"""
import array, signal
small = [array.array("f", [10 * i + j for j in range({2 * ROWS})]) for i in range(2)]
large = [array.array("f", range(i, i + {LARGE})) for i in range(2)]
notes = array.array("Q", [a.buffer_info()[0] for pair in zip(small, large) for a in pair])
notes.extend([{1 << 62}, notes[1], notes[0], (1 << 64) - 8, 16, notes[1]])
print(notes.buffer_info()[0], flush=True)
signal.pause()
"""


@pytest.fixture
def problem() -> Iterator[LoadedProblem]:
    descriptor = os.memfd_create("outputs", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, 16 << 20)
    region = SharedRegion(fd=descriptor, size_bytes=16 << 20, writable=True)
    yield replace(without_tensors(), n_sets=5, regions=(region, region), places=PLACES)
    os.close(descriptor)


@pytest.fixture
def left(problem: LoadedProblem) -> Iterator[LeftOutputs]:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        left = LeftOutputs(process.pid, int(process.stdout.readline()), problem)
        yield left
        left.close()
        process.kill()


def floats(problem: LoadedProblem, offset: int, count: int) -> tuple[float, ...]:
    return struct.unpack(f"{count}f", os.pread(problem.regions[1].fd, 4 * count, offset))


def test_every_output_of_a_set_is_read_whole_into_its_place(left: LeftOutputs, problem: LoadedProblem) -> None:
    left.bring((1,), (1,))
    assert floats(problem, 64, 2 * ROWS) == tuple(range(10, 10 + 2 * ROWS))
    assert floats(problem, 4096 + (2 << 20), LARGE) == tuple(range(1, 1 + LARGE))
    assert set(floats(problem, 0, 2 * ROWS)) == {0.0}  # another set's stay as they are
    left.bring((0,), (0,))
    assert floats(problem, 0, 2 * ROWS) == tuple(range(2 * ROWS))


def test_what_has_been_read_is_changed_where_it_lies_and_others_of_the_block_too(left: LeftOutputs) -> None:
    before = {(index, share): left.glimpse(index, share) for index in (0, 1) for share in (0.0, 0.49)}
    left.bring((1,), (1, 0))
    after = {(index, share): left.glimpse(index, share) for index in (0, 1) for share in (0.0, 0.49)}
    assert all(after[each] != before[each] for each in before)
    changed = struct.unpack(f"{2 * ROWS}f", after[1, 0.0])
    assert all(2.0 < value < 1e5 for value in changed)  # ordinary numbers: what takes no longer to work with


def test_an_output_that_no_caller_could_change_is_the_candidates_fault(
    left: LeftOutputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left, "_has_written", lambda address, data: False)
    with pytest.raises(RunnerFailure, match="lay nowhere where a caller could change it") as raised:
        left.bring((1,), (1, 0))
    assert raised.value.finding.code is ReasonCode.TIMED_OUTPUT_WRONG


def test_calls_that_returned_the_same_memory_are_the_candidates_fault(left: LeftOutputs) -> None:
    left._own.is_told = True  # the child maps no memory of the judge's
    with pytest.raises(RunnerFailure, match="the timed outputs of sets 0 and 2 share memory") as raised:
        left.bring((0,), (0, 2))
    assert raised.value.finding.code is ReasonCode.STALE_OUTPUT


def test_a_glimpse_is_a_part_of_what_lies_in_an_output_now(left: LeftOutputs) -> None:
    small, large = (
        struct.pack(f"{2 * ROWS}f", *range(10, 10 + 2 * ROWS)),
        struct.pack(f"{LARGE}f", *range(1, 1 + LARGE)),
    )
    assert left.glimpse(1, 0.0) == left.glimpse(1, 0.49) == small
    found = {share: left.glimpse(1, share) for share in (0.5, 0.7, 0.99)}
    assert all(len(part) == GLIMPSE_BYTES and part in large for part in found.values())
    assert len(set(found.values())) == 3


@pytest.mark.parametrize(("set_index", "share"), [(2, 0.0), (3, 0.9), (4, 0.0)])
def test_a_glimpse_of_nothing_is_empty(left: LeftOutputs, set_index: int, share: float) -> None:
    assert left.glimpse(set_index, share) == b""


@pytest.mark.parametrize("set_index", [2, 3, 4])
def test_an_output_that_lies_nowhere_is_the_candidates_fault(left: LeftOutputs, set_index: int) -> None:
    with pytest.raises(RunnerFailure, match=f"the output of set {set_index} lay nowhere") as raised:
        left.bring((set_index,), (set_index,))
    assert raised.value.finding.code is ReasonCode.TIMED_OUTPUT_WRONG


def test_a_process_that_may_not_be_read_is_told(problem: LoadedProblem) -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        notes = int(process.stdout.readline())
        with pytest.raises(UnreadableMemory):
            LeftOutputs(process.pid, notes + (1 << 45), problem)
        process.kill()
        process.wait()
        with pytest.raises(UnreadableMemory):
            LeftOutputs(process.pid, notes, problem)


FRESH = CHILD.replace(
    "notes = ",
    f"""import ctypes, mmap
fresh = mmap.mmap(-1, {4 * LARGE}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
large[1] = (ctypes.c_float * {LARGE}).from_buffer(fresh)
large[1][{LARGE // 2}] = 1.0
large[1].buffer_info = lambda: (ctypes.addressof(large[1]), {LARGE})
notes = """,
)


def test_an_output_of_fresh_memory_that_nobody_wrote_is_the_candidates_fault(problem: LoadedProblem) -> None:
    with subprocess.Popen([sys.executable, "-c", FRESH], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        left = LeftOutputs(process.pid, int(process.stdout.readline()), problem)
        left.bring((0,), (0, 1))  # which changes a page of the other set at most
        words = r"3(89|90) pages of output 1 of set 1 had not been written: fresh memory reads as zeros"
        with pytest.raises(RunnerFailure, match=words) as raised:
            left.bring((1,), (0, 1))
        left.close()
        process.kill()
    assert raised.value.finding.code is ReasonCode.TIMED_OUTPUT_WRONG


def test_outputs_in_the_judges_memory_are_glimpsed_there(problem: LoadedProblem) -> None:
    values = struct.pack(f"{2 * ROWS}f", *range(2 * ROWS))
    os.pwrite(problem.regions[1].fd, values, 2 * 64)
    homes = OutputHomes.of(problem)
    assert homes.glimpse(2, 0.3) == values
    assert homes.glimpse(1, 0.3) == bytes(len(values))
    assert homes.glimpse(1, 1.0) == bytes(GLIMPSE_BYTES)
