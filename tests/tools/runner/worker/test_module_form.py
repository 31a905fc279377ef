"""Interface `module`: files with `ModelNew`, judged in a real sandbox; builds of their own are in the slow tests."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.candidates import candidate_of

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import BenchmarkTask, CompileTask, DescribeTask, VerifyTask
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.results import Build, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, ReasonCode, Role, Status
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

pytestmark = [pytest.mark.long, pytest.mark.sandboxed]

REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def __init__(self, width, shift):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("table", torch.linspace(0, 1, width), persistent=False)
        self.shift = shift
    def forward(self, x, pair, scale):
        y = self.drop(self.norm(self.lin(x))) + self.table
        pair[0].mul_(scale)
        return {"y": torch.relu(y) + pair[1] + self.shift, "top": (y.argmax(1), pair[1] > 0)}
def get_inputs():
    return [torch.randn(64, 48), [torch.randn(8, 8), torch.randn(64, 48)], 0.5]
def get_init_inputs():
    return [48, 0.25]
"""
HONEST = REFERENCE.replace("class Model(", "class ModelNew(").partition("def get_inputs")[0]
START = "        y = self.drop("
R = ReasonCode
CHEATS = {
    "keeps the weights of its first call": (
        HONEST.replace(
            START,
            "        self.w = getattr(self, 'w', self.lin.weight.clone())\n        self.lin.weight.data = self.w\n"
            + START,
        ),
        R.WRONG_VALUES,
        "nominal_1: ",
    ),
    "packs its weights once": (
        HONEST.replace(
            "        self.norm = ",
            "        self.lin.weight = nn.Parameter(self.lin.weight.flatten())\n        self.norm = ",
        ),
        R.WEIGHTS_MISMATCH,
        "`lin.weight` is float32 (2304,), the reference's float32 (48, 48): convert in forward",
    ),
    "returns one buffer": (
        HONEST.replace(
            'return {"y": torch.relu(y) + pair[1] + self.shift',
            "self.out = getattr(self, 'out', torch.empty(64, 48)).copy_(torch.relu(y) + pair[1] + self.shift)\n"
            '        return {"y": self.out',
        ),
        R.STALE_OUTPUT,
        "the same memory",
    ),
    "returns its input": (
        HONEST.replace('"y": torch.relu(y) + pair[1] + self.shift', '"y": pair[1]'),
        R.OUTPUT_ALIASES_INPUT,
        "view of an input",
    ),
    "writes a parameter": (
        HONEST.replace(START, "        self.lin.weight.mul_(1.0)\n" + START),
        R.INPUT_WRITTEN,
        "`lin_weight`, which is read-only",
    ),
    "works when its result is opened": (
        HONEST.replace(
            "return {", "return type('Lazy', (dict,), {'items': lambda self: self.made.items(), 'made': {"
        ).replace("pair[1] > 0)}", "pair[1] > 0)}})()"),
        R.NOT_A_TENSOR,
        "returned Lazy, not a dict of y, top",
    ),
    "patches torch": (
        HONEST + "torch.relu = torch.nn.functional.relu\n",
        R.STATE_CHANGED,
        "loading the file replaced torch.relu",
    ),
    "does not write its input": (
        HONEST.replace("pair[0].mul_(scale)", "pair[0] * scale"),
        R.WRONG_VALUES,
        "values of pair_0_after differ",
    ),
}


class Bench:
    """The problem with its evaluator and compiler."""

    def __init__(self, folder: Path) -> None:
        device, self.sandbox = detect_device("cpu"), Sandbox(probe_sandbox().tier)
        self.folder = folder
        self.evaluator = Evaluator(device, cache_dir=folder, sandbox=self.sandbox)
        problem = Target(
            name="p",
            reference_source=REFERENCE,
            interface=Interface.MODULE,
            tolerance=PrecisionClass.FP32,
            device=device,
        )
        self.problem = problem.described(self.evaluator.describe(DescribeTask(problem=problem)))
        self.nothing = folder / "nothing.zip"
        with zipfile.ZipFile(self.nothing, "w") as bundle:
            bundle.writestr("index.json", json.dumps({}))

    def build(self, source: str) -> tuple[Candidate, Build]:
        candidate = module_of(source)
        compiler = Compiler(self.sandbox, self.folder, self.problem.device)
        [build] = asyncio.run(compiler.compile_batch([CompileTask(problem=self.problem, candidate=candidate)]))
        return candidate, build

    def verify(self, source: str) -> Verdict:
        """Judge a file that builds nothing, without asking a builder."""
        build = Build(key="none", status=Status.OK, library_path=str(self.nothing))
        return self.judge(module_of(source), build)

    def judge(self, candidate: Candidate, build: Build) -> Verdict:
        return self.evaluator.verify(VerifyTask(problem=self.problem, candidate=candidate, build=build))

    def time(self, candidate: Candidate, build: Build, verdict: Verdict) -> Timing:
        task = BenchmarkTask(problem=self.problem, candidate=candidate, build=build, verdict=verdict)
        return self.evaluator.benchmark(task)


def module_of(source: str) -> Candidate:
    return candidate_of(source, language="py", interface="module")


@pytest.fixture(scope="module")
def bench(warm_judge: None) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="ridgeline-module-", dir="/tmp") as name:
        os.chmod(name, 0o755)  # confined code may become another user
        bench = Bench(Path(name))
        yield bench
        bench.evaluator.close()
        assert list((Path(name) / "tmp").iterdir()) == []  # every runner's own folder is gone


def test_a_written_input_and_each_part_of_a_dict_are_outputs(bench: Bench) -> None:
    outputs = bench.problem.description.signature.with_role(Role.OUTPUT)
    assert [(o.name, o.dtype) for o in outputs] == [
        ("out_0", "float32"),
        ("out_1", "int64"),
        ("out_2", "bool"),
        ("pair_0_after", "float32"),
    ]


def test_an_honest_file_is_accepted_with_the_judges_weights_under_names_of_its_own(bench: Bench) -> None:
    verdict = bench.verify(HONEST.replace("self.lin", "self.linear"))
    assert verdict.status is Status.OK, verdict
    assert [each.name for each in verdict.skipped] == ["not_varied scale"]


@pytest.mark.first_case
@pytest.mark.parametrize("cheat", CHEATS)
def test_a_file_is_rejected_that(bench: Bench, cheat: str) -> None:
    source, code, words = CHEATS[cheat]
    assert source != HONEST
    verdict = bench.verify(source)
    assert verdict.reason_code is code, verdict
    assert words in verdict.reason


def test_an_exception_whose_words_are_no_text_is_told(bench: Bench) -> None:
    verdict = bench.verify(HONEST.replace(START, "        raise ValueError('half \\ud800')\n" + START))
    assert verdict.reason_code is R.CRASHED, verdict
    assert verdict.reason == r"the call of forward raised ValueError: half \ud800"


def test_a_build_that_fails_names_the_line(bench: Bench) -> None:
    _, build = bench.build(HONEST.replace("self.shift = shift", "self.shift = shifts"))
    assert (build.status, build.reason_code) == (Status.COMPILE_ERROR, R.COMPILER_FAILED)
    assert build.reason == "candidate.py:10: error: NameError: name 'shifts' is not defined"


@pytest.mark.thorough
def test_a_file_that_ends_its_builder_is_told_so(bench: Bench) -> None:
    _, build = bench.build("import os\nos._exit(0)\n" + HONEST)
    assert (build.status, build.reason_code) == (Status.COMPILE_ERROR, R.COMPILER_FAILED)
    assert build.reason == "the file ended the process that imports and builds it: exit status 0"


INLINE = '''from torch.utils.cpp_extension import load_inline
SOURCE = """
#include <torch/extension.h>
torch::Tensor relu_add(torch::Tensor y, torch::Tensor other, double shift) {
  return torch::relu(y) + other + shift;
}
"""
'''


@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.timeout(300)
def test_a_file_with_load_inline_is_built_once_and_timed(bench: Bench) -> None:
    loads = "        self.ext = load_inline('relu_ext', SOURCE, functions=['relu_add'], extra_cflags=['-march=i386'])\n"
    source = INLINE + HONEST.replace("        self.shift = shift\n", "        self.shift = shift\n" + loads)
    source = source.replace("torch.relu(y) + pair[1] + self.shift", "self.ext.relu_add(y, pair[1], self.shift)")
    candidate, build = bench.build(source)
    assert build.status is Status.OK, build.log
    assert bench.build(source)[1].cached
    verdict = bench.judge(candidate, build)
    assert verdict.status is Status.OK, verdict
    timing = bench.time(candidate, build, verdict)
    assert timing.status is Status.OK, timing


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_extension_that_does_not_compile_tells_the_compilers_error(bench: Bench) -> None:
    wrong = INLINE.replace("+ shift", "+ shft") + "load_inline('e', SOURCE, functions=['relu_add'])\n" + HONEST
    _, build = bench.build(wrong)
    assert build.reason_code is R.COMPILER_FAILED
    assert "main.cpp:5:" in build.reason
    assert "‘shft’ was not declared" in build.reason


LAZY = (
    HONEST
    + """
import sys
runner = sys.modules["__main__"]
def loop(self):
    start = __import__("time").perf_counter_ns()
    calls = len([*runner.draw_tickets(runner.TICKETS)])
    while __import__("time").perf_counter_ns() - start < calls * 200_000:
        pass
    return calls * 200_000
def answer(self, verb, words, old=runner.Caller.answer):
    if verb == "collect":
        self._kept[int(words[0])] = self._candidate.calls[int(words[0])]()
    return old(self, verb, words)
runner.Caller._loop, runner.Caller.answer = loop, answer
"""
)


@pytest.mark.slow
@pytest.mark.timing
def test_a_file_that_works_only_when_its_output_is_collected_is_not_trusted(bench: Bench) -> None:
    build = Build(key="none", status=Status.OK, library_path=str(bench.nothing))
    candidate = module_of(LAZY)
    verdict = bench.judge(candidate, build)
    assert verdict.status is Status.OK, verdict
    timing = bench.time(candidate, build, verdict)
    assert (timing.status, timing.reason_code) == (Status.UNTRUSTED, R.TIMED_OUTPUT_WRONG), timing
    assert "lay nowhere" in timing.reason


@pytest.mark.slow
def test_the_next_runner_is_started_ahead_and_is_not_another_candidates(bench: Bench) -> None:
    first = bench.verify(HONEST)
    second = bench.verify(HONEST.replace("+ self.shift", "+ self.shift + 1"))
    third = bench.verify(HONEST)
    assert [v.status for v in (first, second, third)] == [Status.OK, Status.WRONG, Status.OK]
