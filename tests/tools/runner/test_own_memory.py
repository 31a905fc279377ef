"""Outputs in memory of their own, told from outside of a process: by address, and by what several addresses show."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from tests.tools.conftest import without_tensors

from ridgeline.tools.judge.process import LoadedProblem, SharedRegion
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.own_memory import LeftOutput, OwnMemory

PAGE = 4096
CHILD = """
import ctypes, mmap, signal, sys
libc = ctypes.CDLL(None)
libc.mremap.restype, libc.mremap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
def address(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
def again(first):
    return libc.mremap(first, 0, 4 * 4096, 1)
judges = mmap.mmap(int(sys.argv[1]), 4 * 4096)
shared = mmap.mmap(-1, 4 * 4096, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
own = mmap.mmap(-1, 8 * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
private = mmap.mmap(int(sys.argv[1]), 4 * 4096, flags=mmap.MAP_PRIVATE)
first = address(own)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
repeated = first + 6 * 4096  # two pages that are one and the same
other = int(sys.argv[2])
for place in (0, 1):
    assert libc.mmap(repeated + place * 4096, 4096, 3, mmap.MAP_SHARED | 0x10, other, 0) == repeated + place * 4096
copied = libc.mmap(None, 4096, 3, mmap.MAP_PRIVATE, other, 0)  # shows what is written to those, until it is written itself
judged = address(judges), again(address(judges)), address(private)
print(*judged, address(shared), again(address(shared)), first, repeated, copied)
sys.stdout.flush()
signal.pause()
"""


@dataclass(frozen=True)
class Addresses:
    """Where the child has its memory."""

    judges: int
    judges_again: int
    judges_private: int
    shared: int
    shared_again: int
    own: int
    repeated: int
    copied: int


@pytest.fixture(scope="module")
def problem() -> Iterator[LoadedProblem]:
    descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, 4 * PAGE)
    region = SharedRegion(fd=descriptor, size_bytes=4 * PAGE, writable=False)
    yield replace(without_tensors(), regions=(region,), shared_outputs=((0, 1),))
    os.close(descriptor)


@pytest.fixture(scope="module")
def child(problem: LoadedProblem) -> Iterator[tuple[OwnMemory, Addresses]]:
    judges = problem.regions[0].fd
    other = os.memfd_create("other", os.MFD_CLOEXEC)
    os.ftruncate(other, PAGE)
    command = [sys.executable, "-c", CHILD, str(judges), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=(judges, other)) as process:
        assert process.stdout is not None
        addresses = Addresses(*map(int, process.stdout.readline().split()))
        memory = OwnMemory(process.pid, problem)
        yield memory, addresses
        memory.close()
        process.kill()
    os.close(other)


def output(address: int, *, set_index: int = 0, number: int = 0, pages: float = 1) -> LeftOutput:
    return LeftOutput(set_index, number, address, int(pages * PAGE))


def refused(memory: OwnMemory, outputs: Sequence[LeftOutput]) -> tuple[ReasonCode, str]:
    with pytest.raises(RunnerFailure) as raised:
        memory.expect_own(outputs)
    return raised.value.finding.code, raised.value.finding.reason


def test_outputs_side_by_side_are_each_ones_own(child: tuple[OwnMemory, Addresses]) -> None:
    memory, at = child
    assert memory.is_told
    calls = [output(at.own + i * PAGE // 2, set_index=i, number=0, pages=0.5) for i in range(8)]
    more = [output(at.shared + i * PAGE, set_index=i, number=2) for i in range(4)]
    memory.expect_own([*calls, *more, output(at.own + 4 * PAGE, set_index=9, pages=2)])


@pytest.mark.parametrize("where", ["judges", "judges_again", "judges_private"])
@pytest.mark.parametrize("beyond", [0, 4 * PAGE - 1, -1])
def test_no_output_lies_in_the_judges_memory_whatever_its_address(
    child: tuple[OwnMemory, Addresses], where: str, beyond: int
) -> None:
    memory, at = child
    code, reason = refused(
        memory, [output(at.own, set_index=1), output(getattr(at, where) + beyond, set_index=2, number=3)]
    )
    assert code is ReasonCode.OUTPUT_ALIASES_INPUT
    assert reason.startswith("the timed output 3 of set 2 lies in the judge's memory")


@pytest.mark.parametrize("first", [0, PAGE - 1])
def test_two_outputs_of_a_call_share_no_memory_unless_the_references_do(
    child: tuple[OwnMemory, Addresses], first: int
) -> None:
    memory, at = child
    for one, other in ((at.own, at.own), (at.shared, at.shared_again)):
        memory.expect_own([output(one, number=0), output(other + first, number=1)])
        code, reason = refused(memory, [output(one, number=1), output(other + first, number=2)])
        assert code is ReasonCode.OUTPUT_ALIASES_INPUT
        assert "shares memory with output" in reason
        memory.expect_own([output(one, number=1), output(other + PAGE, number=2)])


def test_a_private_view_of_shared_memory_shares_it(child: tuple[OwnMemory, Addresses]) -> None:
    memory, at = child
    code, _ = refused(memory, [output(at.repeated, number=1), output(at.copied, number=2)])
    assert code is ReasonCode.OUTPUT_ALIASES_INPUT


def test_two_calls_share_no_memory(child: tuple[OwnMemory, Addresses]) -> None:
    memory, at = child
    for one, other in ((at.own, at.own), (at.shared, at.shared_again)):
        code, reason = refused(memory, [output(one, set_index=3, number=0), output(other, set_index=5, number=1)])
        assert code is ReasonCode.STALE_OUTPUT
        assert reason == "the timed outputs of sets 3 and 5 share memory: each call returns new memory"


def test_an_output_whose_rows_are_one_and_the_same_memory_is_no_tensor_of_its_own(
    child: tuple[OwnMemory, Addresses],
) -> None:
    memory, at = child
    memory.expect_own([output(at.repeated)])
    code, reason = refused(memory, [output(at.repeated, pages=2)])
    assert (code, reason) == (
        ReasonCode.OUTPUT_ALIASES_INPUT,
        "the timed output 0 of set 0 shows the same memory at several of its places",
    )


def test_nothing_is_said_where_the_kernel_does_not_tell(problem: LoadedProblem) -> None:
    memory = OwnMemory(os.getpid(), problem)  # which has not mapped the judge's memory
    assert not memory.is_told
    memory.expect_own([output(1 << 20, set_index=0), output(1 << 20, set_index=1)])
    memory.close()
