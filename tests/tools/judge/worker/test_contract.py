"""What the judge finds out of a reference's inputs and state, and what it sends of a `ModelNew`'s making."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.domain.usable import check_usable
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.modelnew.file import values
from ridgeline.tools.records.vocabulary import Role

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
class Model(nn.Module):
    def __init__(self, width=4, *rest):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.same = self.lin
        self.norm = nn.BatchNorm1d(width)
        self.register_buffer("table", torch.ones(width), persistent=False)
        self.register_buffer("calls", torch.zeros(()))
        self.counted, self.seen = 0, []
"""
TAIL = """
def get_inputs():
    return [torch.randn(8, 4), [torch.randn(8, 4), torch.randn(8, 4)], 2.5]
def get_init_inputs():
    return {init}
"""


def reference(body: str, init: str = "[4]") -> Reference:
    return Reference(f"{HEAD}    def forward(self, x, pair, scale):\n        {body}\n{TAIL.format(init=init)}")


def outputs_of(made: Reference) -> list[str]:
    return [a.name for a in made.signature.with_role(Role.OUTPUT)]


def test_a_written_input_is_an_output_and_stays_whole() -> None:
    made = reference("x.mul_(scale); return pair[0] + x")
    check_usable(made)
    inputs = made.draw_inputs(3)
    before = inputs[0].clone()
    total, after = made.run(inputs)
    assert outputs_of(made) == ["out", "x_after"]
    assert torch.equal(inputs[0], before)
    assert torch.equal(after, before * 2.5)
    assert torch.equal(total, inputs[1] + after)
    assert made.run_double(inputs, made.named_tensors())[1].dtype is torch.float64


def test_a_written_input_that_is_returned_is_one_output() -> None:
    made = reference("return pair[1].relu_()")
    assert outputs_of(made) == ["out"]
    assert (made.contract(is_needed=True).copied, made.contract(is_needed=True).appended) == ((2,), ())


def test_a_reference_that_only_writes_its_input_has_an_output() -> None:
    assert outputs_of(reference("x.add_(1)")) == ["x_after"]


def test_dropout_and_batch_norm_are_judged_in_eval_mode() -> None:
    made = reference("return F.dropout(self.norm(x), training=self.training)")
    check_usable(made)
    assert not made.model.training


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return F.dropout(x)", r"nondeterministic: .*dropout.*self\.training"),
        (
            "return F.batch_norm(x, self.norm.running_mean, self.norm.running_var, training=True)",
            r"changes its own `norm\.running_mean` .*batch normalisation in training mode",
        ),
        ("self.calls += 1; return x + self.calls", "changes its own `calls`"),
        ("self.counted += 1; return x + self.counted", "changes `self.counted`, and what it gives depends on that"),
        ("self.seen.append(1); return x + len(self.seen)", "changes `self.seen`, and"),
        ("self.same.n = getattr(self.same, 'n', 0) + 1; return x + self.same.n", r"changes `self.lin\.n`, and"),
        ("self.counted += 1; return F.dropout(x)", "nondeterministic: "),
    ],
)
def test_state_between_calls_is_refused_with_the_reason(body: str, says: str) -> None:
    with pytest.raises(ProblemError, match=says):
        check_usable(reference(body))


def test_the_contract_tells_arguments_structure_weights_and_result() -> None:
    made = reference("return {'a': self.same(x), 'b': (pair[0], [x.argmax(1)])}", "[4, (1, None), 'same', True]")
    contract = made.contract(is_needed=True)
    assert contract.init == "[4, (1, None), 'same', True]"
    assert contract.to_json()["arguments"] == [0, {"list": [1, 2]}, {"value": "2.5"}]
    assert contract.form.to_json() == {"a": "tensor", "b": ["tensor", ["tensor"]]}
    assert contract.state["same.weight"] == contract.state["lin.weight"] == "lin.weight"
    assert "table" not in contract.state
    assert "table" not in made.loaded_names()
    assert "norm.running_var" in made.loaded_names()


def test_constructor_arguments_without_a_text_are_refused() -> None:
    with pytest.raises(ProblemError, match=r"get_init_inputs\(\) gives .*tensor.*: interface module takes numbers"):
        reference("return x + 1", "[4, torch.ones(2)]").contract(is_needed=True)


def test_infinities_among_the_constructors_arguments_arrive() -> None:
    init = [4, float("-inf"), (float("inf"),), {"a": [float("inf")]}, ()]
    text = "[4, float('-inf'), (float('inf'),), {'a': [float('inf')]}, ()]"
    assert values(reference("return x + 1", text).contract(is_needed=True).init) == init


def test_a_dict_of_inputs_is_told_by_its_keys_and_its_written_tensors_stay_whole() -> None:
    source = """import torch
class Model(torch.nn.Module):
    def forward(self, batch):
        batch["x"].add_(batch["more"][0])
        return batch["x"].sum(1)
def get_inputs():
    return [{"x": torch.ones(4, 4), "more": (torch.randn(4, 4),)}]
"""
    made = Reference(source)
    inputs = made.draw_inputs(1)
    made.run(inputs)
    assert torch.equal(inputs[0], torch.ones(4, 4))
    assert made.contract(is_needed=True).to_json()["arguments"] == [{"dict": [["'x'", 0], ["'more'", {"tuple": [1]}]]}]
    assert made.contract(is_needed=True).copied == (0,)


@pytest.mark.parametrize(
    ("body", "pairs"),
    [
        ("return x + 1, x + 1", ()),
        ("y = x + 1; return y, y.clone(), y", ((0, 2),)),
        ("y = x + 1; return y, {'last': y[-1]}, y[:1]", ((0, 1), (0, 2))),
        ("return list((x + 1).chunk(2))", ()),
        ("x += 1; return x[0], pair[0] + 1", ((0, 2),)),
        ("return x, pair[0], x.float()", ((0, 2),)),
    ],
)
def test_outputs_that_share_memory_in_the_references_result_are_told(
    body: str, pairs: tuple[tuple[int, int], ...]
) -> None:
    assert reference(body).shared_outputs == pairs
