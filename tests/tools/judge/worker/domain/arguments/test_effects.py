"""Every argument matters: what hides behind small values gets a trial, what never shows or never changes is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.domain.arguments.effects import Effects
from ridgeline.tools.judge.worker.domain.domain import Domain
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import SCALARS
from ridgeline.tools.records.vocabulary import PrecisionClass

SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {names}):
        return {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
X = "torch.randn(32, 64)"
WEIGHT = "self.w = nn.Parameter(torch.randn(64, 64) / 8)"


class Judged:
    """What is known of a reference before any candidate is there."""

    def __init__(self, names: str, inputs: str, body: str, init: str = "pass") -> None:
        reference = Reference(SOURCE.format(names=names, inputs=inputs, body=body, init=init))
        self.source = SecretSource(reference, b"secret")
        parameters = {n: t.detach().clone() for n, t in reference.named_tensors().items()}
        reference.bind(parameters)
        memory: Any = SimpleNamespace(
            parameters=parameters, inputs=[reference.draw_inputs(0)], n_sets=4, device=Cpu()
        )  # no process to share memory with
        self.book = CaseBook(reference, self.source, memory, budget_bytes=1 << 24)
        self.domain = Domain(self.book, reference, self.source, memory)
        self.examiner = Examiner(self.book, self.domain.names, memory, reference, PrecisionClass.FP32)
        effects = Effects(self.book, self.source, reference, self.examiner)
        found = effects.find(self.domain.names, self.domain.name_of, self.domain.scalar_names)
        self.without_effect, self.constant_outputs = found.without, found.constant_outputs
        self.weights_show = found.weights_show


@pytest.mark.parametrize(
    ("names", "inputs", "body", "init"),
    [
        ("x", X, "torch.softmax(x, -1)", "pass"),
        ("x", X, "self.ln(x)", "self.ln = nn.LayerNorm(64)"),
        ("x", X, "F.gelu(x)", "pass"),
        ("x", X, "self.layer(x)", "self.layer = nn.Linear(64, 64)"),
        ("q, k, v, mask", ", ".join(["torch.randn(2, 16, 8)"] * 3) + ", torch.ones(16, 16).tril().bool()",
         "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)", "pass"),
        ("ids", "torch.randint(100, (4, 16))", "self.table(ids)", "self.table = nn.Embedding(100, 8)"),
        ("x", "torch.randn(2, 4, 8, 8)", "self.bn(x)", "self.bn = nn.BatchNorm2d(4)"),
    ],
    ids=["softmax", "layer norm", "gelu", "matmul", "attention", "embedding", "batch norm"],
)  # fmt: skip
def test_an_ordinary_reference_gets_no_label(names: str, inputs: str, body: str, init: str) -> None:
    judged = Judged(names, inputs, body, init)
    found = (judged.domain.skipped, judged.domain.not_varied, judged.without_effect, judged.constant_outputs)
    assert found == ({}, {}, {}, {})


@pytest.mark.parametrize("scale", ["torch.full((64,), 1e-6)", "torch.zeros(())"], ids=["layer scale", "residual gain"])
def test_what_is_behind_a_small_parameter_is_of_order_one_in_a_trial(scale: str) -> None:
    init = f"{WEIGHT}; self.scale = nn.Parameter({scale})"
    judged = Judged("x", X, "F.gelu(x) + self.scale * 1e-3 * torch.tanh(x @ self.w)", init)
    branch = judged.source.weights.of_order_one("order_one")["scale"]
    assert float(branch.abs().mean()) > 0.1
    assert judged.without_effect == {}
    assert {"alone_x", "alone_w", "alone_scale"} <= set(judged.domain.names)


def test_a_branch_that_no_parameter_can_raise_is_named() -> None:
    judged = Judged("x", X, "F.gelu(x) + 1e-9 * torch.tanh(x @ self.w)", WEIGHT)
    assert list(judged.without_effect) == ["w"]


def test_an_argument_that_is_never_read_is_named() -> None:
    judged = Judged("x, y", f"{X}, {X}", "F.gelu(x) * self.w", "self.w = nn.Parameter(torch.ones(64))")
    assert list(judged.without_effect) == ["y"]


def test_an_argument_that_hides_in_one_of_several_outputs_is_named_with_it() -> None:
    """Each output is the work that was asked for: that another one shows the argument says nothing of this one."""
    judged = Judged("x", X, "F.gelu(x) @ self.w, torch.tanh(self.w) + 1e-9 * (x.T @ torch.tanh(x))", WEIGHT)
    second = judged.examiner.names[1]
    reason = f"other values in its place alone change {second} by less than the gate"
    assert judged.without_effect == {"x": reason}


def test_a_parameter_does_not_pass_for_itself_after_a_small_step() -> None:
    judged = Judged("x", X, "F.gelu(x) @ self.w, self.w + 2e-8 * (x.T @ torch.tanh(x))", WEIGHT)
    case = judged.book.case("nominal_0")
    product, stepped = (e.values.float() for e in case.expected)
    assert judged.examiner.passed_by((product, stepped), case) == (True, True)
    assert judged.examiner.passed_by((product, case.parameters["w"]), case) == (True, False)


@pytest.mark.parametrize(
    ("body", "init", "weights_show"),
    [
        ("torch.argmax(torch.softmax(x * self.w.exp(), -1), -1)", "self.w = nn.Parameter(torch.tensor(2.0))", False),
        ("F.gelu(x) @ self.w", WEIGHT, True),
        ("F.gelu(x)", "pass", True),
    ],
)
def test_it_is_known_whether_other_weights_show(body: str, init: str, weights_show: bool) -> None:
    assert Judged("x", X, body, init).weights_show is weights_show


def test_an_output_that_does_not_depend_on_an_argument_hides_nothing() -> None:
    assert Judged("x", X, "F.gelu(x) @ self.w, self.w * 2", WEIGHT).without_effect == {}


@pytest.mark.parametrize(
    ("flag", "is_constant"), [("x.abs().max() < 1e6", True), ("x.max() < 5", False), ("(x * 2).sum()", False)]
)
def test_one_of_several_outputs_that_no_trial_changes_is_named(flag: str, is_constant: bool) -> None:
    judged = Judged("x", X, f"F.gelu(x) @ self.w, {flag}", WEIGHT)
    assert list(judged.constant_outputs) == ([judged.examiner.names[1]] if is_constant else [])


def test_an_alone_trial_changes_one_argument() -> None:
    judged = Judged("x", X, "F.gelu(x) @ self.w", WEIGHT)
    base, alone = judged.book.case(judged.book.changes.alone_base), judged.book.case("alone_w")
    assert torch.equal(base.inputs[0], alone.inputs[0])
    assert not torch.equal(base.parameters["w"], alone.parameters["w"])


def test_many_arguments_share_the_trials_in_which_they_change_alone() -> None:
    layers = "self.layers = nn.Sequential(*[nn.Linear(64, 64) for _ in range(5)])"
    judged = Judged("x", X, "self.layers(x)", layers)
    changed = [c for chosen in judged.book.changes.alone.values() for c in chosen]
    assert len(judged.book.changes.alone) == 6 and sorted(map(str, changed)) == sorted(map(str, judged.source.changing))


def test_an_index_buffer_is_permuted_and_a_small_number_stays_in_its_range() -> None:
    init = 'self.register_buffer("index", torch.randperm(64)); self.register_buffer("times", torch.tensor(3))'
    weights = Judged("x", X, "F.gelu(x)[:, self.index] * self.times", init).source.weights
    drawn = [weights.random(str(i)) for i in range(12)]
    assert all(sorted(v["index"].tolist()) == list(range(64)) for v in drawn)
    assert len({tuple(v["index"].tolist()) for v in drawn}) == 12
    assert {int(v["times"]) for v in drawn} == {1, 2, 3}


def test_one_slice_of_a_permutation_is_two_elements() -> None:
    init = 'self.register_buffer("index", torch.randperm(64))'
    weights = Judged("x", X, "F.gelu(x)[:, self.index]", init).source.weights
    before = weights.random("a")
    after = weights.with_slices(before, "b")["index"]
    assert int((after != before["index"]).sum()) == 2 and sorted(after.tolist()) == list(range(64))


def test_whole_numbers_that_the_reference_refuses_stay_and_are_named() -> None:
    init = 'self.register_buffer("size", torch.tensor(64)); self.register_buffer("index", torch.randperm(64))'
    judged = Judged("x", X, "F.gelu(x).view(32, int(self.size))[:, self.index]", init)
    assert list(judged.domain.not_varied) == ["size"]
    assert {int(judged.source.weights.random(str(i))["size"]) for i in range(8)} == {64}
    assert "index" in judged.source.weights.varied


def test_a_mask_in_a_buffer_stays_and_is_named() -> None:
    judged = Judged("x", X, "F.gelu(x) * self.mask", 'self.register_buffer("mask", torch.ones(32, 64).tril())')
    assert list(judged.domain.not_varied) == ["mask"]


def test_whole_numbers_that_get_inputs_always_gives_are_named_with_what_to_do() -> None:
    judged = Judged("x, pos", f"{X}, torch.arange(64)", "F.gelu(x) * pos.float()")
    why = judged.domain.not_varied["pos"]
    assert "get_inputs() gives the same" in why and "a kernel that ignores them passes; draw them there" in why


def test_floating_scalars_have_other_values_in_a_trial_and_whole_ones_are_named() -> None:
    judged = Judged("x, slope, times, flag", f"{X}, 0.5, 3, True", "F.leaky_relu(x, slope) * times")
    slope, times, flag = judged.book.changes.scalars[SCALARS]
    assert (slope != 0.5, times, flag) == (True, 3, True)
    assert set(judged.domain.not_varied) == {"times", "flag"} and "scalars" in judged.domain.names
    expected = judged.book.case("scalars")
    given = F.leaky_relu(expected.inputs[0].double(), slope) * 3
    assert torch.allclose(given, expected.expected[0].values)


def test_a_scalar_that_the_reference_refuses_stays_and_one_that_is_never_read_is_named() -> None:
    body = "F.interpolate(x[None], scale_factor=size) * (gain if p < 2 else p)"
    judged = Judged("x, size, gain, p", f"{X}, 2.0, 0.5, 0.1", body)
    assert list(judged.domain.not_varied) == ["size"]
    assert judged.book.changes.scalars[SCALARS][0] == 2.0 and judged.book.changes.scalars[SCALARS][1] != 0.5
    assert judged.without_effect == {"p": judged.without_effect["p"]}


def test_a_small_scalar_is_of_order_one() -> None:
    judged = Judged("x, eps", f"{X}, 1e-6", "F.gelu(x) + eps * torch.tanh(x * 3)")
    assert judged.book.changes.scalars[SCALARS][0] >= 0.5 and judged.without_effect == {}


def test_what_a_module_cannot_be_given_is_named() -> None:
    reference = Reference(SOURCE.format(names="x, s", inputs=f"{X}, 0.5", body="F.gelu(x) * s", init="pass"))
    source = SecretSource(reference, b"secret")
    memory: Any = SimpleNamespace(parameters={}, inputs=[reference.draw_inputs(0)], n_sets=4, device=Cpu())
    book = CaseBook(reference, source, memory, budget_bytes=1 << 24)
    domain = Domain(book, reference, source, memory, varies_scalars=False)
    assert list(domain.not_varied) == ["s"] and "scalars" not in domain.names
