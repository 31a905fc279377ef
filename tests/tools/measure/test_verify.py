"""Verification with real builds in a real sandbox: arguments of every kind, interface torch."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from tests.tools.conftest import exp_problem, without_tensors
from tests.tools.measure.answering import Answering
from tests.tools.measure.bench import RELU_REFERENCE, Bench

from ridgeline.tools.judge.replies import Beyond, Different, Graded, Missing
from ridgeline.tools.measure.verify import Verification, verify_candidate
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import Interface, Label, PrecisionClass, ReasonCode, Status
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.process import RunnerProcess

pytestmark = [pytest.mark.long, pytest.mark.sandboxed, pytest.mark.usefixtures("warm_judge")]
REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(48))
    def forward(self, xs, scale, flag):
        first = (xs[0] * scale + xs[1].t()) * self.gain
        return first, (xs[0] > 0).any(1), torch.arange(len(xs[0])) * int(flag)
def get_inputs():
    return [[torch.randn(40, 48), torch.randn(48, 40)], 0.25, True]
def get_init_inputs():
    return []
"""
KERNEL = """
void run(const float* xs_0, const float* xs_1, double scale, bool flag, const float* gain, float* out_0, bool* out_1,
         int64_t* out_2, void* workspace) {
    float* row = static_cast<float*>(workspace);
    for (int64_t i = 0; i < 40; ++i) {
        bool any = false;
        for (int64_t j = 0; j < 48; ++j) {
            row[j] = xs_0[i * 48 + j] * float(scale) + xs_1[j * 40 + i];
            out_0[i * 48 + j] = row[j] * gain[j];
            any |= xs_0[i * 48 + j] > 0;
        }
        out_1[i] = ANY;
        out_2[i] = flag ? i : 0;
    }
}
extern "C" size_t workspace_bytes() { return 48 * sizeof(float); }
"""
ROUNDED_RELU = """
#include <cstring>
void run(const float* x, float* out, void*) {
    for (int64_t i = 0; i < X_NUMEL; ++i) {
        uint32_t bits;
        memcpy(&bits, &x[i], 4);
        bits = (bits + 0x8000u) & 0xFFFF0000u;
        float v;
        memcpy(&v, &bits, 4);
        out[i] = v > 0 ? v : 0;
    }
}
"""


@pytest.fixture(scope="module")
def bench(folder: Path) -> Iterator[Bench]:
    bench = Bench(folder, REFERENCE)
    yield bench
    bench.evaluator.close()


def test_verify_accepts_lists_scalars_strides_workspace_and_several_outputs(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="ridgeline.tools.runner.pool")
    verdict = bench.verify(KERNEL.replace("ANY", "any"), extra_trials=2, own_secrets=2)
    assert verdict.status is Status.OK, verdict
    assert verdict.precision_class is PrecisionClass.FP32, "a sum and a product, each rounded"
    first, second = ([t.name for t in verdict.trials if t.draw == draw] for draw in (0, 1))
    assert first == [*second, "extra_0", "extra_1"] and verdict.draws == 2
    assert 0 < verdict.load_s < verdict.verify_s
    assert [record.args[-1] for record in caplog.records if record.name.endswith("runner.pool")] == ["VerifyTask"]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("out_0[i * 48 + j] = -row[j] * gain[j]", " are wrong; those have the wrong sign;"),
        ("out_0[i * 48 + j] = 0.5f * row[j] * gain[j]", "; those are 0.5 x the expected values;"),
        ("out_0[i * 48 + j] = j < 45 ? row[j] * gain[j] : 0", ", at the last 3 of 48 on axis 1; each of those is 0;"),
        (
            "out_0[i * 48 + j] = (j % 47 ? 1 : 3) * row[j] * gain[j]",
            ", at the borders (2 of 48) on axis 1; those are 3 x",
        ),
        (
            "out_0[i * 48 + j] = (j & 1 ? 1 : 2) * row[j] * gain[j]",
            ", at every 2nd index from 0 on axis 1; those are 2 x",
        ),
        ("out_0[j * 40 + i] = row[j] * gain[j]", "; the values are right and the last two axes are exchanged;"),
        ("out_0[i * 48 + j] = row[j]", "; the factor depends on the index of axis 1 alone: a scale?;"),
        (
            "static float calls = 0; out_0[i * 48 + j] = row[j] * gain[j] + (calls += 1)",
            "; another call on the same inputs gives other values: a race, or memory that was not written;",
        ),
    ],
)
def test_a_fault_is_told_by_where_and_how_values_are_wrong(bench: Bench, written: str, words: str) -> None:
    verdict = bench.verify(KERNEL.replace("ANY", "any").replace("out_0[i * 48 + j] = row[j] * gain[j]", written))
    assert (verdict.status, verdict.reason_code) == (Status.WRONG, ReasonCode.WRONG_VALUES)
    assert words in verdict.reason


def test_verify_wants_bools_exact(bench: Bench) -> None:
    verdict = bench.verify(KERNEL.replace("ANY", "i == 7 ? !any : any"))
    assert (verdict.status, verdict.reason_code) == (Status.WRONG, ReasonCode.WRONG_VALUES)
    assert "out_1" in verdict.reason


def test_crfm_tolerance_passes_low_precision_and_names_its_class(folder: Path) -> None:
    reference = RELU_REFERENCE.replace("torch.relu(x) + 1", "torch.relu(x)")
    bench = Bench(folder, reference, tolerance="crfm")
    try:
        verdict = bench.verify(ROUNDED_RELU)
    finally:
        bench.evaluator.close()
    assert verdict.status is Status.OK, verdict
    assert verdict.precision_class is PrecisionClass.BF16
    assert Label.REDUCED_PRECISION in verdict.labels


def test_scalars_that_are_no_plain_numbers_reach_the_kernel(folder: Path) -> None:
    reference = (
        "import torch\nfrom torch import nn\nclass Model(nn.Module):\n"
        "    def forward(self, x, low, high, twice):\n"
        "        y = torch.clamp(x, low, high)\n        return y * 2 if twice else y\n"
        "def get_inputs():\n    return [torch.randn(64, 64), -float('inf'), float('inf'), True]\n"
    )
    bench = Bench(folder, reference)
    try:
        verdict = bench.verify(
            "void run(const float* x, double low, double high, bool twice, float* out, void*) {\n"
            "  for (int64_t i = 0; i < X_NUMEL; ++i) {\n"
            "    float v = x[i] < low ? (float)low : x[i] > high ? (float)high : x[i];\n"
            "    out[i] = twice ? 2 * v : v;\n  }\n}\n"
        )
    finally:
        bench.evaluator.close()
    assert verdict.status is Status.OK, verdict


@pytest.mark.slow  # a torch build; tests/cheats/test_torch_form.py has one for every day
def test_torch_interface_passes_honest_calls_and_rejects_a_view(folder: Path) -> None:
    bench = Bench(folder, RELU_REFERENCE, interface="torch")
    try:  # one source for both, since a torch build takes a minute: honest for six calls, then a view of its input
        verdict = bench.verify(
            "#include <torch/extension.h>\nstatic int calls = 0;\n"
            "torch::Tensor forward(torch::Tensor x) { return ++calls > 6 ? x : torch::relu(x).add_(1); }"
        )
    finally:
        bench.evaluator.close()
    assert (verdict.status, verdict.reason_code) == (Status.WRONG, ReasonCode.OUTPUT_ALIASES_INPUT), verdict
    assert [t.name for t in verdict.trials if t.passed] == ["nominal_0", "nominal_1", "tweaked_0"]


UNLOADABLE = "/build/kernel.so: undefined symbol: _Z7forwardN2at6TensorE"


@pytest.mark.parametrize(
    ("interface", "reason"),
    [
        (Interface.TORCH, "it has to be `torch::Tensor forward(torch::Tensor x)`"),
        (Interface.MODULE, UNLOADABLE),  # its own extension lacks a function of its own
    ],
)
def test_a_library_that_lacks_forward_is_explained_by_its_own_interface(interface: Interface, reason: str) -> None:
    judge: Any = Answering(n_sets=3)
    judge.problem = replace(without_tensors(), description=exp_problem().description)

    def start() -> RunnerProcess:
        raise RunnerFailure(ReasonCode.LOAD_FAILED, UNLOADABLE)

    verdict = verify_candidate(judge, start, tolerance=PrecisionClass.FP32, interface=interface)
    assert verdict.reason_code is ReasonCode.LOAD_FAILED
    assert verdict.reason.endswith(reason)


IN_PLACE_REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        x.mul_(2)
        return {"sum": x.sum(1), "positive": x > 0}
def get_inputs():
    return [torch.randn(64, 32)]
"""
IN_PLACE_KERNEL = """
void run(const float* x, float* out_0, bool* out_1, float* x_after, void*) {
  for (int64_t i = 0; i < 64; ++i) {
    out_0[i] = 0;
    for (int64_t j = i * 32; j < i * 32 + 32; ++j) {
      x_after[j] = FACTOR * x[j];
      out_0[i] += 2 * x[j];
      out_1[j] = x[j] > 0;
    }
  }
}
"""


@pytest.mark.slow
def test_what_becomes_of_a_written_input_is_an_output_of_a_kernel(folder: Path) -> None:
    bench = Bench(folder, IN_PLACE_REFERENCE)
    try:
        honest = bench.verify(IN_PLACE_KERNEL.replace("FACTOR", "2"))
        lazy = bench.verify(IN_PLACE_KERNEL.replace("FACTOR", "1"))
    finally:
        bench.evaluator.close()
    assert honest.status is Status.OK, honest
    assert (lazy.status, lazy.reason_code) == (Status.WRONG, ReasonCode.WRONG_VALUES)
    assert "x_after" in lazy.reason


def test_a_call_on_what_it_differs_from_comes_right_before_each_trial_that_differs_in_little() -> None:
    names = ("nominal_0", "nominal_1", "tweaked_0", "tweaked_1", "order_one", "alone_x", "alone_gain", "shifted")
    asked: list[tuple[str, bool]] = []
    judge: Any = Answering(n_sets=12)
    judge.prepare = lambda request: asked.append((request.trial, request.is_examined))
    verification = Verification(judge, MagicMock(), PrecisionClass.FP32)
    verification._both_runs = lambda name: asked.append((name, True))  # type: ignore[func-returns-value, method-assign]
    verification._look_at_threads = lambda: None  # type: ignore[method-assign]
    assert verification._run_trials(names) is None
    unexamined = {"tweaked_1": "nominal_1", "alone_gain": "order_one"}
    assert asked == [each for name in names for each in ((unexamined.get(name), False), (name, True)) if each[0]]


def test_addresses_do_not_tell_a_trial_from_a_timed_call() -> None:
    names = ("nominal_0", "nominal_1", "tweaked_0", "alone_x", "shifted", "outliers", "integers")
    used = set()
    for _ in range(200):  # each draws four of the twelve at least: one is never drawn in (2/3)^200
        verification = Verification(Answering(n_sets=12), None, PrecisionClass.FP32)  # type: ignore[arg-type]
        sets = {}
        for name in names:
            verification._set = sets[name] = verification._set_of(name)
        assert sets["nominal_1"] == sets["tweaked_0"] == sets["alone_x"]
        assert len({sets[n] for n in ("nominal_0", "nominal_1", "shifted", "outliers")}) == 4
        assert sets["integers"] in {sets[n] for n in names[:-1]}
        used |= set(sets.values())
    assert used == set(range(12))


def _verification_with_scalars() -> tuple[Verification, list[tuple[str, Any]]]:
    """Return one whose trial `scalars` has other ones, and what was asked of judge and runner, in order."""
    done: list[tuple[str, Any]] = []
    judge, runner = Answering(n_sets=3), MagicMock()
    judge.problem.trials, judge.problem.scalars = ("nominal_0", "scalars"), {"scalars": (2.0,)}  # type: ignore[attr-defined]
    judge.problem.description = MagicMock()  # type: ignore[attr-defined]
    judge.problem.description.signature.given_scalars = (1.0,)  # type: ignore[attr-defined]
    judge.prepare = lambda request: done.append((request.trial, request.is_examined))  # type: ignore[attr-defined]
    runner.set_scalars = lambda values: done.append(("scalars are", values))
    verification = Verification(judge, runner, PrecisionClass.FP32)  # type: ignore[arg-type]
    verification._call = lambda: done.append(("call", None))  # type: ignore[method-assign]
    return verification, done


def test_a_sanitizer_meets_the_scalars_of_each_trial_and_no_case_is_made_for_it() -> None:
    verification, done = _verification_with_scalars()
    verification.run_unjudged()
    first = [("nominal_0", False), ("call", None)]
    assert done == [*first, ("scalars are", (2.0,)), ("scalars", False), ("call", None), ("scalars are", (1.0,))]


def test_other_scalars_come_after_a_call_with_the_usual_ones_on_the_same_contents() -> None:
    verification, done = _verification_with_scalars()
    verification._both_runs = lambda name: done.append(("graded", name))  # type: ignore[func-returns-value, method-assign]
    verification._look_at_threads = lambda: None  # type: ignore[method-assign]
    verification._run_trials(("nominal_0", "scalars"))
    assert done == [("graded", "nominal_0"), ("scalars", False), ("call", None), ("graded", "scalars")]


def test_a_scalar_that_is_written_into_the_source_is_named(bench: Bench) -> None:
    verdict = bench.verify(KERNEL.replace("ANY", "any").replace("float(scale)", "0.25f"))
    assert verdict.status is Status.WRONG
    assert verdict.reason.endswith("; `scale` had another value than in get_inputs()"), verdict


@pytest.mark.parametrize("second", ["missing", "beyond", "different"])
def test_a_trial_whose_second_run_fails_has_not_passed(second: str) -> None:
    verification, _ = _verification_with_scalars()
    judge: Any = verification._judge
    trial = Trial(name="nominal_0", rel_error=1e-7, gate=1e-5, passed=True)
    graded = Graded(trial=trial, measured=PrecisionClass.FP32)
    replies = {
        "missing": Missing(output="out", count=1, total=64, first=0, width=64),
        "beyond": Beyond(output="out", count=1, first=0),
        "different": Different(difference=1e-4, graded=graded),
    }
    judge.poison = lambda _request: None
    judge.examine_repeat = lambda _: replies[second]
    verification._trials = [trial]
    verification._background_work = lambda: None  # type: ignore[method-assign]
    assert verification._second_run("nominal_0") is not None
    assert [each.passed for each in verification._trials] == [False]
