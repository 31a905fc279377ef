"""One argument alone is larger, and smaller, beside the others, where that does more than scale the output or add to it."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.domain.sizes.test_sized_trials import MODULE
from tests.tools.judge.worker.made import Made, made, made_of

from ridgeline.tools.judge.worker.domain.sizes.uneven_choices import UnevenChoices
from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import LARGE_VECTORS, NOMINAL, SMALL_PARAMETERS, UNEVEN

NOISES = """self.drive = nn.Parameter(torch.rand(48) + 0.5)
        self.noise = nn.Parameter(torch.rand(48) + 0.5)"""
FILTER = """process, measured = self.drive * self.drive, self.noise * self.noise
        state, spread = torch.zeros_like(x[0]), measured
        for step in x:
            spread = spread + process
            gain = spread / (spread + measured)
            state = state + gain * (step - state)
            spread = (1 - gain) * spread
        return state"""
STEPS = 128


def uneven(found: Made) -> list[str]:
    return [name for name in UNEVEN if name in found.domain.names]


def changed(found: Made, trial: str) -> dict[str, float]:
    """Return by which factor each parameter of a trial differs from what is drawn for it."""
    drawn, (_, parameters) = found.book.contents.parameters(trial), found.book.contents.of(trial)
    factors = {n: (t / drawn[n]).flatten() for n, t in parameters.items() if not torch.equal(t, drawn[n])}
    assert all(torch.allclose(f, f[:1], rtol=1e-5) for f in factors.values()), "one factor keeps signs, zeros and order"
    return {n: float(f[0]) for n, f in factors.items()}


@pytest.fixture(scope="module")
def filtered() -> Made:
    return made_of(MODULE.format(made=NOISES, body=FILTER, shape=f"{STEPS}, 48"))


def test_a_filters_gain_settles_late_in_one_of_two_trials(filtered: Made) -> None:
    assert uneven(filtered) == [*UNEVEN]

    def filter_error(name: str, settled: int, dtype: torch.dtype = torch.float64) -> float:
        case = filtered.book.case(name)
        drive, noise = (case.parameters[n].to(dtype) for n in ("drive", "noise"))
        x = case.inputs[0].to(dtype)
        state, spread, gain = torch.zeros_like(x[0]), noise * noise, torch.zeros_like(noise)
        for n, step in enumerate(x):
            if n < settled:
                spread = spread + drive * drive
                gain = spread / (spread + noise * noise)
                spread = (1 - gain) * spread
            state = state + gain * (step - state)
        return compare(state, case.expected[0]).errors.overall

    together = [name for name in (*NOMINAL, LARGE_VECTORS, SMALL_PARAMETERS) if name in filtered.domain.names]
    assert max(filter_error(name, 40) for name in together) < 1e-6
    assert max(filter_error(name, 40) for name in UNEVEN) > 1e-2
    assert all(filter_error(name, STEPS, torch.float32) < 5e-6 for name in UNEVEN)


def test_the_same_argument_is_larger_and_smaller_by_other_draws_another_one(filtered: Made) -> None:
    met = set()
    for secret in (b"a", b"b", b"c", b"d", b"e", b"f"):
        filtered.source.draw_from(secret)
        ((name, factor),), ((other, part),) = (changed(filtered, trial).items() for trial in UNEVEN)
        assert name == other and factor > 2 and part < 1 / 2
        met.add(name)
    filtered.source.draw_from(b"secret")
    assert met == {"drive", "noise"}


@pytest.mark.parametrize(
    ("making", "body"),
    [
        ("self.layer = nn.Linear(64, 64)", "return self.layer(x)"),
        ("self.norm = nn.LayerNorm(64)", "return self.norm(x)"),
        ("self.gate = nn.Parameter(torch.zeros(64))", "return torch.tanh(x * self.gate)"),
        (
            "self.first, self.last = (nn.Linear(64, 64, bias=False) for _ in range(2))",
            "return self.last(torch.relu(self.first(x)))",
        ),
        (
            "self.weight, self.bias = (nn.Parameter(torch.randn(64)) for _ in range(2))",
            "return x * self.weight + self.bias",
        ),
    ],
)
def test_what_scales_the_output_or_adds_to_it_and_what_is_alone_stays(making: str, body: str) -> None:
    assert not uneven(made_of(MODULE.format(made=making, body=body, shape="32, 64")))


def test_a_limit_that_one_argument_alone_meets_far_from_its_usual_size_is_looked_for() -> None:
    making = "; ".join(f"self.{name} = nn.Parameter(torch.randn(16, 16) / 16)" for name in ("one", "other"))
    body = "return x @ (self.one / torch.clamp(torch.linalg.vector_norm(self.one) / 32, min=1)) + x @ self.other"
    assert uneven(made_of(MODULE.format(made=making, body=body, shape="32, 16"))) == [*UNEVEN]


def test_what_could_not_be_doubled_is_left_out_where_others_could() -> None:
    found = made_of(MODULE.format(made=NOISES, body=FILTER, shape="4, 48"))
    choices = UnevenChoices(found.book, found.source, Reference(MODULE.format(made=NOISES, body=FILTER, shape="4, 48")))
    for steps, left in (((5, 48), [1.0]), ((12, 48), [0.25, 1.0]), ((5, 3), [1.0]), ((0, 3), [1.0]), ((0, 0), [])):
        found_steps = iter(steps)
        most = choices.settle(UNEVEN[0], seen=lambda *_: "", steps_of=lambda _, of=found_steps: next(of))
        parts = [part for _, part in found.book.changes.uneven.get(UNEVEN[0], ())]
        assert most == max(steps) and parts == left


def test_inputs_are_larger_alone_where_there_are_not_two_parameters() -> None:
    found = made("a, b", "torch.rand(8, 64) + 0.5, torch.rand(8, 64) + 0.5", "return a / (a + b)")
    assert uneven(found) == [*UNEVEN]
    assert {share for share, _ in found.book.changes.uneven[UNEVEN[0]]} == {(0,), (1,)}
    usual, (larger, _) = found.source.nominal(UNEVEN[0]), found.book.contents.of(UNEVEN[0])
    assert [torch.equal(*pair) for pair in zip(usual, larger, strict=True)].count(False) == 1
