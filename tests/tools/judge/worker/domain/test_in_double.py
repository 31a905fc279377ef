"""A reference that computes something else in float64 is refused in one line, or keeps its own type."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.judging import HEAD, INPUTS, reference

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.domain.usable import check_usable
from ridgeline.tools.judge.worker.grading.cases.case import exact_of, expected_of
from ridgeline.tools.judge.worker.reference import Reference

DRAW = "torch.randn(64, 128)"


def checked(body: str, inputs: str = DRAW) -> Reference:
    made = Reference(reference("x", body, inputs))
    check_usable(made)
    return made


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "torch.manual_seed(0); return x + 0.05 * torch.randn_like(x)",
            r"in float64 differs by 7.* %, .*: forward\(\) draws random numbers \(randn_like\).*in get_inputs\(\)",
        ),
        ("torch.manual_seed(0); return nn.functional.dropout(x @ x.t(), 0.1, True) + torch.rand_like(x[:, :64])", "draws"),
        ("return x * (2 if x.dtype == torch.float32 else 3)", r"in float64 differs by 33 %.*what depends on a tensor's dtype"),
    ],
)  # fmt: skip
def test_what_float64_computes_otherwise_is_one_line(body: str, says: str) -> None:
    with pytest.raises(
        BadReferenceError, match=f"^reference.py: its result {says}" if "differs" in says else says
    ) as caught:
        checked(body)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "g = torch.Generator().manual_seed(0); return x + 0.05 * torch.randn(x.shape, generator=g)",
        "return x.bfloat16().float() @ x.t().bfloat16().float()",
        "return (x.bfloat16() @ x.t().bfloat16()).float().softmax(-1)",
        "with torch.autocast('cpu', torch.bfloat16): y = x @ x.t()\n        return y.float()",
        "return (x + 3e5) - 3e5",
        "return torch.linalg.inv(x[:, :64])",
        "return torch.linalg.svd(x, full_matrices=False)[2]",
        "return torch.round(x / (x.abs().amax(-1, keepdim=True) / 127))",
        "return x.cumsum(0).cumsum(1).sum() / 1e5",
    ],
)
def test_what_rounding_explains_is_taken(body: str) -> None:
    assert not checked(body).keeps_own_type


def test_a_choice_in_bf16_is_taken() -> None:
    checked("e = (x @ x[:8].t()).argmax(-1); return x * e[:, None]", f"{DRAW}.bfloat16()")


@pytest.mark.parametrize("shape", ["64, 64", "64, 128"])
@pytest.mark.parametrize(
    "body",
    [
        "b = x.view(torch.int32); return ((b + 0x7FFF + ((b >> 16) & 1)) & -65536).view(torch.float32)",
        "return x.view(torch.int32) & 0x7FFFFFFF",
        "return (x.view(torch.int32) >> 23).float().sum(-1)",
        "return x.view(torch.int16)[:, 1::2].float()[:, :64]",
        "return x.view(-1)[: x.numel() * x.element_size() // 8]",
    ],
)
def test_a_reference_that_looks_at_bits_is_compared_with_its_own_type(body: str, shape: str) -> None:
    made = checked(body, f"torch.randn({shape})")
    inputs = made.draw_inputs(3)
    (native,) = made.run(inputs)
    (expected,) = expected_of(made, inputs, {}, exact_of((native,)))
    assert torch.equal(expected.values.to(native.dtype), native)


ATTRIBUTES = HEAD + """
import threading
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.functions, self.lock, self.same = torch.nn.functional, threading.Lock(), [self.linear]
        self.table = torch.linspace(0, 1, 8)
    def forward(self, x):
        with self.lock:
            return self.functions.relu(self.linear(x)) * self.table
""" + INPUTS.format(inputs="torch.randn(4, 8)")  # fmt: skip


def test_what_cannot_be_copied_is_shared_with_the_model_in_float64() -> None:
    made = Reference(ATTRIBUTES)
    inputs, parameters = made.draw_inputs(1), dict(made.named_tensors())
    found = made.in_double(inputs, parameters)
    assert found is not None and found[0].dtype is torch.float64
    assert torch.allclose(found[0].float(), made.run(inputs)[0], atol=1e-6)
    assert made.model.linear.weight.dtype is torch.float32  # type: ignore[union-attr]


def test_a_model_that_cannot_be_copied_at_all_is_one_line() -> None:
    refuses = "    def __deepcopy__(self, memo):\n        raise TypeError('there is only one')\n"
    made = Reference(
        reference("x", "return x + 1", "torch.ones(4, 4)").replace("    def forward", f"{refuses}    def forward", 1)
    )
    with pytest.raises(
        BadReferenceError, match="cannot be copied, so it cannot run in float64 .TypeError: there is only one.$"
    ):
        made.in_double(made.draw_inputs(0), {})
