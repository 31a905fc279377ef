"""What a trial may hold is found out by running the reference: narrower ways are tried, and what stays is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ridgeline.tools.errors import DeviceLostError
from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.grading.cases import TRANSFORMED, CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.timed_sets import Draws, Mixtures
from ridgeline.tools.judge.worker.reference import Reference

N_SETS = 4
SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, {names}):
{body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def made(
    names: str, inputs: str, *body: str, left_out: frozenset[str] = frozenset(), **limits: int
) -> tuple[CaseBook, SecretSource]:
    lines = "\n".join(f"        {line}" for line in body)
    reference = Reference(SOURCE.format(names=names, inputs=inputs, body=lines))
    source = SecretSource(reference, b"secret")
    memory: Any = SimpleNamespace(
        parameters={}, inputs=[reference.draw_inputs(0)], n_sets=N_SETS, device=Cpu()
    )  # no process to share memory with
    return CaseBook(reference, source, memory, left_out=left_out, **({"budget_bytes": 1 << 20} | limits)), source


CAUSAL = "torch.randn(32, 32), torch.ones(32, 32, dtype=torch.bool).tril()"


def test_a_mask_that_may_not_lose_elements_only_gains_some() -> None:
    book, source = made("x, mask", CAUSAL, "return x.masked_fill(~mask, 0.0) / mask.diagonal()[:, None]")
    given, (_, mask) = torch.ones(32, 32, dtype=torch.bool).tril(), source.nominal("a")
    assert bool((mask >= given).all()) and not torch.equal(mask, given)
    assert not book.skipped and set(TRANSFORMED) <= set(book.names)


def test_lengths_whose_zero_is_refused_begin_at_one() -> None:
    body = "kept = torch.arange(16) < lengths[:, None]", "return (x * kept).sum(-1) / lengths"
    book, source = made("x, lengths", "torch.randn(64, 16), torch.full((64,), 16)", *body)
    lengths = source.nominal("a")[1]
    assert (int(lengths.min()) >= 1, int(lengths.max()) <= 16, not book.skipped) == (True, True, True)


def test_an_input_whose_other_values_are_refused_is_kept_and_named() -> None:
    body = "if bool((table != table[0]).any()):", "    raise ValueError('no')", "return x + table + shift"
    inputs = "torch.randn(9), torch.full((9,), 3.0), torch.full((9,), 8.0)"
    book, source = made("x, table, shift", inputs, *body)
    assert list(book.skipped) == ["other table"] and "no" in book.skipped["other table"]
    assert not torch.equal(source.nominal("a")[2], source.given("a")[2])


def test_a_reference_that_refuses_mixtures_gets_a_draw_for_each_set() -> None:
    body = "assert bool((x.sum(-1) - 1).abs().max() < 1e-3)", "return x * 2"
    _, refusing = made("x", "torch.randn(8, 64).softmax(dim=-1)", *body)
    _, taking = made("x", "torch.randn(8, 64).softmax(dim=-1)", body[1])
    assert isinstance(refusing.fill("a", N_SETS), Draws)
    assert isinstance(taking.fill("a", N_SETS), Mixtures)


LOSES = 'raise RuntimeError("CUDA error: device-side assert triggered")'


@pytest.mark.parametrize(
    ("names", "inputs", "bad", "tried", "skipped"),
    [
        (
            "x",
            "torch.rand(64, 16)",
            "bool((x > 1).any())",
            ["shifted", "row_scaled", "outliers"],
            {"shifted", "row_scaled", "outliers"},
        ),
        (
            "x, n, m",
            "torch.rand(64, 16), torch.full((64,), 16), torch.full((64,), 9)",
            "bool((n != 16).any())",
            ["other inputs", "other n, way 0", "other n, way 1"],
            {"other n"},
        ),
        (
            "x, n, m",
            "torch.rand(64, 16), torch.full((64,), 16), torch.full((64,), 16)",
            "bool((n != 16).any()) and bool((m != 16).any())",
            ["other inputs", "other inputs, each accepted alone"],
            {"other n", "other m"},
        ),
    ],
    ids=["a probability", "a length", "two lengths"],
)
def test_what_loses_the_gpu_is_named_and_left_out_the_next_time(
    names, inputs, bad, tried, skipped, monkeypatch
) -> None:
    lost = []

    def settle(_device: Cpu) -> None:  # as CUDA does: every later call fails
        if lost:
            raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(Cpu, "settle", settle)
    monkeypatch.setattr(torch, "lost_for_this_test", lost, raising=False)
    body = (f"if {bad}:", "    torch.lost_for_this_test.append(1)", "    " + LOSES, "return x.sum(-1)")
    left_out: frozenset[str] = frozenset()
    for what in tried:
        with pytest.raises(DeviceLostError, match=f"^{what}$"):
            made(names, inputs, *body, left_out=left_out)
        left_out |= {what}
        lost.clear()
    book, _ = made(names, inputs, *body, left_out=left_out)
    assert set(book.skipped) == skipped
    assert not skipped & set(book.names)


def test_a_failure_that_leaves_the_gpu_answering_is_an_objection_as_any_other() -> None:
    book, _ = made("x", "torch.rand(64, 16)", "if bool((x > 1).any()):", f"    {LOSES}", "return x.sum(-1)")
    assert "device-side assert" in book.skipped["shifted"]


@pytest.mark.parametrize(
    ("limits", "makings"),
    [
        pytest.param({}, 0, id="kept"),
        pytest.param({"budget_bytes": 0, "held_bytes": 1 << 20}, 2, id="held"),
        pytest.param({"budget_bytes": 0}, 6, id="neither"),
    ],
)
def test_a_case_that_is_not_kept_is_held_until_another_is_made(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], makings: int
) -> None:
    book, _ = made("x", "torch.randn(8, 32)", "return 2 * x", **limits)
    names = []
    make = book._make
    monkeypatch.setattr(book, "_make", lambda name: names.append(name) or make(name))
    for name in ("shifted", "integers"):
        inputs = [book.case(name).inputs[0] for _ in range(3)]
        assert all(torch.equal(inputs[0], each) for each in inputs)
    assert len(names) == makings


def test_a_case_that_was_let_go_is_made_again() -> None:
    book, _ = made("x", "torch.randn(8, 32)", "return 2 * x", budget_bytes=0, held_bytes=1 << 20)
    first = book.case("shifted")
    assert book.case("shifted") is first
    book.let_go()
    assert book.case("shifted") is not first


NORM = """
import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))

    def forward(self, x):
        return functional.layer_norm(x.to(torch.float32), (64,), self.weight)  # refuses a weight in float64


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
"""


def test_a_reference_that_refuses_float64_runs_with_the_weights_it_is_given() -> None:
    reference = Reference(NORM)
    (inputs,) = (reference.draw_inputs(0),)
    weight = torch.linspace(-2, 2, 64)
    (found,) = reference.run_double(inputs, {"weight": weight})
    assert torch.allclose(found, torch.nn.functional.layer_norm(inputs[0], (64,), weight))
    assert torch.equal(reference.model.weight, torch.ones(64))


def test_inputs_in_float64_are_judged_with_outliers_too() -> None:
    book, source = made("x", "torch.randn(8, 32, dtype=torch.float64)", "return 2 * x")
    assert "outliers" in book.names and not book.skipped
    assert float(source.outliers("outliers")[0].abs().max()) > 100


def test_draws_of_python_and_numpy_can_be_made_again() -> None:
    inputs = "torch.tensor([[random.random() for _ in range(32)]]), torch.from_numpy(numpy.random.rand(8, 32))"
    source = SOURCE.replace("import torch\n", "import random\nimport numpy\nimport torch\n", 1)
    reference = Reference(source.format(names="x, y", inputs=inputs, body="        return x + y"))
    first, again = reference.draw_inputs(7), reference.draw_inputs(7)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(reference.draw_inputs(8)[1], first[1])
