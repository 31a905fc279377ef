"""Results of a timed loop rotate through memory, and a process that has run some blocks grows no more."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.python_env import compute_environment, python_path
from ridgeline.tools.modelnew.held_results import HeldResults

N_SETS = 30
FAULTS = """
import random, resource, torch
from ridgeline.tools.modelnew.held_results import HeldResults
x = torch.rand(256, 1024)
held = HeldResults([x], 30)
draw = random.Random(7)
def block():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    results = held.begin()
    for index in draw.sample(range(30), 12):
        results[index] = torch.relu(x * x + x)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
block()
print(sum(block() for _ in range(60)))
"""


def _faults() -> int:
    environment = compute_environment(detect_device("cpu")) | {"PYTHONPATH": python_path()}
    done = subprocess.run([sys.executable, "-c", FAULTS], env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.thorough
def test_blocks_fault_hardly_a_page_of_a_result_in() -> None:
    # 256 pages of 4 KiB are a result of 1 MiB, and 720 results are made; the heap grows by a dozen of them now and then
    assert _faults() < 720 * 256 / 20


def test_results_of_one_block_are_freed_when_the_next_begins() -> None:
    held = HeldResults([torch.zeros(8)], N_SETS)
    results = held.begin()
    results[3] = torch.ones(8)
    assert held[3] is results[3]
    assert held.begin()[3] is None


@pytest.mark.parametrize("calls", [1, 7, 20])
def test_the_next_blocks_results_lie_elsewhere(calls: int) -> None:
    held = HeldResults([torch.zeros(1 << 18)], N_SETS)
    places = set()
    for _ in range(12):
        results = held.begin()
        for index in range(calls):
            results[index] = torch.zeros(1 << 18)
            places.add(results[index].data_ptr())
    assert len(places) > calls
