"""Arguments are as large as the reference stays well conditioned with, where their size does more than scale the output."""

from __future__ import annotations

import itertools
import time

import pytest
import torch
from tests.tools.judge.worker.made import Made, made, made_of

from ridgeline.tools.judge.worker.domain.sizes.sized_trials import SizedTrials
from ridgeline.tools.judge.worker.domain.sizes.trial_sizes import SATURATING
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.records.trial_names import (
    BETWEEN,
    LARGE_BLOCKED,
    LARGE_INPUTS,
    LARGE_MATRICES,
    LARGE_VECTORS,
    LOWERED_MATRICES,
    MOVED,
    MOVED_MATRICES,
    NOMINAL,
    OF_SQUARES,
    QUIET,
    RAISED_MATRICES,
    SIZED,
    SMALL_APART,
    SMALL_INPUTS,
    SMALL_PARAMETERS,
    UNEVEN,
)

MODULE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x):
        {body}


def get_inputs():
    return [torch.randn({shape})]


def get_init_inputs():
    return []
"""
LAYER = "self.layer = nn.Linear(64, 64)"
ROUNDS = 200
FIXED_POINT = f"""z = torch.zeros_like(x)
        for _ in range({ROUNDS}):
            z = torch.tanh(self.layer(z) + x)
        return z"""
NETWORK = (f"{LAYER}; self.last = nn.Linear(64, 8)", "return self.last(torch.tanh(self.layer(x)))")
GATED = """kept = torch.sigmoid(self.gate)
        state = torch.zeros_like(x[0])
        for step in x:
            state = kept * state + (1 - kept) * step
        return state"""


def module(making: str, body: str, shape: str = "32, 64") -> Made:
    return made_of(MODULE.format(made=making, body=body, shape=shape))


def large(found: Made) -> set[str]:
    return {name for name in found.domain.names if name in SIZED and name not in (*BETWEEN, *QUIET, *UNEVEN)}


def test_an_iteration_needs_its_last_rounds_with_large_weights_and_rounding_does_not_decide() -> None:
    found = module(LAYER, FIXED_POINT)

    def rounds(count: int, name: str, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        case = found.book.case(name)
        weight, bias = (case.parameters[f"layer.{n}"].to(dtype) for n in ("weight", "bias"))
        x = case.inputs[0].to(dtype)
        z = torch.zeros_like(x)
        for _ in range(count):
            z = torch.tanh(z @ weight.mT + bias + x)
        return z

    for name, is_seen in (("nominal_0", False), (LARGE_MATRICES, True)):
        expected = found.book.case(name).expected[0]
        assert (compare(rounds(80, name), expected).errors.overall > 1e-4) is is_seen
        assert compare(rounds(ROUNDS, name, torch.float32), expected).errors.overall < 5e-6


def test_gates_of_which_some_forget_nothing_need_every_step() -> None:
    found = module("self.gate = nn.Parameter(torch.zeros(48))", GATED, "512, 48")
    assert LARGE_VECTORS in large(found) and LARGE_MATRICES not in large(found)

    def carried(last: int, name: str) -> torch.Tensor:
        case = found.book.case(name)
        kept, x = torch.sigmoid(case.parameters["gate"].double()), case.inputs[0].double()
        state = torch.zeros_like(x[0])
        for step in x[len(x) - last :]:
            state = kept * state + (1 - kept) * step
        return state

    for name, is_seen in (("nominal_0", False), (LARGE_VECTORS, True)):
        expected = found.book.case(name).expected[0]
        assert (compare(carried(60, name), expected).errors.overall > 1e-4) is is_seen
        assert compare(carried(512, name), expected).errors.overall < 1e-12


def test_rates_of_which_all_are_positive_are_small_in_one_trial() -> None:
    body = """kept = torch.exp(-self.rate)
        state = torch.zeros_like(x[0])
        for step in x:
            state = kept * state + step
        return state"""
    found = module("self.rate = nn.Parameter(torch.linspace(0.6, 1, 48))", body, "512, 48")
    assert SMALL_PARAMETERS in large(found)
    case, usual = found.book.case(SMALL_PARAMETERS), found.book.case("nominal_0")
    rate, x = case.parameters["rate"].double(), case.inputs[0].double()
    assert 0 < float(rate.max()) < float(usual.parameters["rate"].max()) / 8
    state = torch.zeros_like(x[0])
    for step in x[-80:]:
        state = torch.exp(-rate) * state + step
    assert compare(state, case.expected[0]).errors.overall > 1e-2


def test_parameters_of_both_signs_are_not_made_small() -> None:
    assert SMALL_PARAMETERS not in large(module(*NETWORK))


def test_an_iteration_that_an_input_leads_has_that_input_large() -> None:
    body = ("z = torch.zeros_like(x)", f"for _ in range({ROUNDS}):", "    z = torch.tanh(z @ w + x)", "return z")
    found = made("x, w", "torch.randn(32, 64), torch.randn(64, 64) / 16", *body)
    assert large(found) == {LARGE_INPUTS, SMALL_INPUTS, *OF_SQUARES}
    case = found.book.case(LARGE_INPUTS)
    x, w = (t.double() for t in case.inputs)
    z = torch.zeros_like(x)
    for _ in range(20):
        z = torch.tanh(z @ w + x)
    assert compare(z, case.expected[0]).errors.overall > 1e-4


@pytest.mark.parametrize(
    ("making", "body"),
    [
        (LAYER, "return torch.relu(self.layer(x))"),
        ("self.norm = nn.LayerNorm(64)", "return self.norm(x)"),
        ("self.kept = nn.Buffer(torch.rand(64))", "return x * self.kept"),
    ],
)
def test_weights_and_buffers_that_only_scale_the_output_stay(making: str, body: str) -> None:
    assert not large(module(making, body)) - {LARGE_INPUTS, SMALL_INPUTS}


def test_buffers_have_other_sizes_as_parameters_do() -> None:
    found = module("self.kept = nn.Buffer(torch.rand(64) + 1)", "return x / (self.kept + 1)")
    assert {LARGE_VECTORS, SMALL_PARAMETERS, SMALL_APART} <= large(found)
    assert not large(found) & set(MOVED), "a number of one sign is not moved"


def test_a_state_that_small_inputs_drive_needs_every_step() -> None:
    body = """driven = x @ self.drive
        state = torch.zeros_like(driven[0])
        for step in driven:
            state = torch.tanh(step + state @ self.reservoir)
        return state"""
    making = """w = torch.randn(64, 64)
        self.reservoir = nn.Buffer(w * (0.8 / torch.linalg.eigvals(w).abs().max()))
        self.drive = nn.Buffer(torch.rand(16, 64) - 0.5)"""
    found = module(making, body, "160, 8, 16")
    assert {SMALL_INPUTS, LARGE_MATRICES} <= large(found)

    def state_of(last: int, name: str) -> torch.Tensor:
        case = found.book.case(name)
        drive, reservoir = (case.parameters[n].double() for n in ("drive", "reservoir"))
        state = torch.zeros(8, 64, dtype=torch.float64)
        for step in (case.inputs[0].double() @ drive)[-last:]:
            state = torch.tanh(step + state @ reservoir)
        return state

    for name, is_seen in (("nominal_0", False), (SMALL_INPUTS, True)):
        expected = found.book.case(name).expected[0]
        assert (compare(state_of(40, name), expected).errors.overall > 1e-4) is is_seen
        assert compare(state_of(160, name), expected).errors.overall < 1e-12


def test_an_output_of_less_spread_is_told_no_more_sharply_than_the_usual_one() -> None:
    found = made("x", "torch.randn(64, 256)", "return torch.softmax(x, -1)")

    def errors_of(name: str) -> float:
        case = found.book.case(name)
        x = case.inputs[0].double()
        powers = x.exp() * (1 + 5e-6 * torch.sin(1000 * x))
        return compare(powers / powers.sum(-1, keepdim=True), case.expected[0]).errors.overall

    want, usual = (found.book.case(name).expected[0] for name in (SMALL_INPUTS, NOMINAL[0]))
    assert want.spread / want.norm < usual.spread / usual.norm / 4
    assert errors_of(SMALL_INPUTS) < 2 * errors_of(NOMINAL[0]) < 1e-5


def test_weights_that_their_norm_divides_are_moved_and_not_enlarged() -> None:
    body = """step, held = 0.95 * self.weight / self.weight.norm(), x
        for _ in range(96):
            held = step @ held + x
        return held"""
    found = module("self.weight = nn.Parameter(torch.randn(64, 64))", body, "64, 16")
    assert {*MOVED_MATRICES} <= large(found) and LARGE_MATRICES not in large(found)
    for name, is_seen in (("nominal_0", False), (RAISED_MATRICES, True)):
        case = found.book.case(name)
        x, weight = case.inputs[0].double(), case.parameters["weight"].double()
        held = x
        for _ in range(9):
            held = 0.95 * weight / weight.norm() @ held + x
        assert (compare(held, case.expected[0]).errors.overall > 1e-4) is is_seen


def test_a_field_of_logarithms_is_lowered_as_a_whole() -> None:
    found = module(
        "self.field = nn.Parameter(torch.zeros(8, 64))", "return torch.tanh(x) / (4 + torch.exp(self.field))", "8, 64"
    )
    assert {*MOVED_MATRICES} <= large(found)
    lowered = found.book.case(LOWERED_MATRICES).parameters["field"]
    assert float(lowered.max()) < -4
    assert not large(module(LAYER, "return self.layer(x)")) & set(MOVED), "a product's weight scales its output"


def test_large_weights_come_beside_inputs_that_are_alike_from_row_to_row() -> None:
    body = """kept = torch.sigmoid(self.layer(torch.nn.functional.layer_norm(x, (64,))))
        state = torch.zeros_like(x[0])
        for keep, drive in zip(kept, x, strict=True):
            state = keep * state + (1 - keep) * drive
        return state"""
    found = module("self.layer = nn.Linear(64, 64, bias=False)", body, "256, 64")
    assert LARGE_BLOCKED in large(found)
    for name, is_seen in (("nominal_0", False), (LARGE_BLOCKED, True)):
        case = found.book.case(name)
        x, weight = case.inputs[0].double(), case.parameters["layer.weight"].double()
        kept = torch.sigmoid(torch.nn.functional.layer_norm(x, (64,)) @ weight.mT)
        state = torch.zeros_like(x[0])
        for keep, drive in zip(kept[-64:], x[-64:], strict=True):
            state = keep * state + (1 - keep) * drive
        assert (compare(state, case.expected[0]).errors.overall > 1e-4) is is_seen


def test_a_size_just_below_the_one_whose_case_is_refused_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = module(LAYER, FIXED_POINT).source.sizes[LARGE_MATRICES]
    objection_to = SizedTrials.objection_to

    def refused(trials: SizedTrials, case: Case) -> str:
        is_beyond = case.name == LARGE_MATRICES and trials._source.sizes[case.name] > 0.9 * found
        return "beyond" if is_beyond else objection_to(trials, case)

    monkeypatch.setattr(SizedTrials, "objection_to", refused)
    assert 0.8 * found < module(LAYER, FIXED_POINT).source.sizes[LARGE_MATRICES] < found


def test_a_loop_that_larger_weights_keep_from_ending_has_smaller_ones() -> None:
    body = """z = torch.zeros_like(x)
        while True:
            last, z = z, torch.tanh(self.layer(z) + x)
            if float((z - last).abs().max()) < 1e-6:
                return z"""
    assert LARGE_MATRICES in large(found := module(LAYER, body))
    assert 1 < found.source.sizes[LARGE_MATRICES] < 2


@pytest.mark.parametrize(
    "body", ["return x @ x.mT", "return torch.nn.functional.layer_norm(x, (256,))", "return x.sort()[0]"]
)
def test_inputs_that_only_scale_the_output_stay(body: str) -> None:
    assert not large(made("x", "torch.randn(16, 256)", body))


def test_what_the_reference_refuses_is_made_less_large_or_not_at_all() -> None:
    assert not large(made("x", "torch.rand(16, 256)", "return torch.log1p(-x)"))
    found = made("x", "torch.rand(16, 256) / 2", "return torch.log1p(-x)")
    assert large(found) == {LARGE_INPUTS, SMALL_INPUTS} and 1.5 < found.source.sizes[LARGE_INPUTS] < 2


def test_only_floating_inputs_are_large_and_each_trial_has_its_own() -> None:
    found = made("x, i", "torch.randn(16, 256), torch.randint(9, (16, 256))", "return torch.tanh(x) + i")
    contents = found.book.contents
    inputs, _ = contents.of(LARGE_INPUTS)
    assert bool((inputs[1] < 9).all()) and float(inputs[0].std()) > 7
    network = module(*NETWORK)
    of_weights = {LARGE_MATRICES, LARGE_VECTORS, LARGE_BLOCKED, *OF_SQUARES, *MOVED}
    assert large(network) == {LARGE_INPUTS, SMALL_INPUTS, *of_weights}
    usual = network.source.weights.random("nominal_0")
    (_, matrices), (_, vectors) = map(network.book.contents.of, (LARGE_MATRICES, LARGE_VECTORS))
    assert float(matrices["last.weight"].std()) > 4 * float(usual["last.weight"].std())
    assert float(matrices["last.bias"].abs().max()) < 1
    assert float(vectors["last.bias"].abs().max()) == pytest.approx(6, rel=1e-3)
    assert float(vectors["last.weight"].abs().max()) < 1


def test_seven_looks_find_a_size_however_slow_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = dict[str, dict[float, bool]]()
    look = SizedTrials._looked_at

    def noted(self: SizedTrials, trial: str) -> str:
        objection = look(self, trial)
        looks.setdefault(trial, {})[self._source.sizes[trial]] = not objection
        return objection

    monkeypatch.setattr(SizedTrials, "_looked_at", noted)
    seconds = itertools.count(step=100)
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(seconds)))
    large(module(LAYER, FIXED_POINT))
    sizes = looks[LARGE_MATRICES]
    assert all(len(found) <= 7 for trial, found in looks.items() if trial not in SATURATING)
    largest = max(size for size, is_taken in sizes.items() if is_taken)
    refused = min(size for size, is_taken in sizes.items() if not is_taken)
    assert refused / largest == pytest.approx(2 ** (1 / 8)), "one step beyond the largest that is taken"
