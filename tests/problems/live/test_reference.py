"""The reference of a live module: what it computes, and what the judge and the offline model see in it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.problems.live.modules import Block, Chain, made, reference_of
from torch import nn

from ridgeline.graph.search.coverage import why_uncovered
from ridgeline.graph.session.on_device import on_device
from ridgeline.tools.judge.worker.outline_main import outline
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, PrecisionClass, Role

CPU = Device(
    kind=DeviceKind.CPU, name="cpu", arch="native", uuid="", cores=2, memory_bytes=1 << 33, cache_bytes=1 << 25
)


def test_the_reference_does_what_the_module_does_with_the_modules_own_tensors(tmp_path: Path) -> None:
    module = Block()
    spec = made(tmp_path, module, torch.randn(4, 16), 3, 0.5)
    model = reference_of(spec).Model().eval()
    assert [n for n, _ in model.named_parameters()] == [n for n, _ in module.named_parameters()]
    assert [n for n, _ in model.named_buffers()] == [n for n, _ in module.named_buffers()]
    assert set(model.state_dict()) == set(module.state_dict())
    assert model.layers._modules["1"].weight is model.layers._modules["0"].weight
    assert torch.equal(model.mask, module.mask) and torch.equal(model.table, module.table)
    model.load_state_dict(module.state_dict())
    x = torch.randn(4, 16)
    with torch.no_grad():
        got, wanted = model(x, 3, 0.25), module.eval()(x, 3, 0.25)
        assert model.double()(x.double(), 3, 0.25)["a"].dtype is torch.float64, "types follow the input's"
    torch.testing.assert_close(got, wanted)
    with pytest.raises(ValueError, match="n is 3 here"):
        model(x, 4, 0.5)


def test_the_judge_exports_the_reference_and_the_offline_model_knows_its_family(tmp_path: Path) -> None:
    spec = made(tmp_path, Chain(), torch.randn(8, 64))
    found = outline(spec.reference_source("cpu"), PrecisionClass.FP32, with_graph=True)
    assert found.description is not None and found.description.reference_graph is not None, found.reason
    assert why_uncovered(on_device(spec, CPU).described(found.description)) is None
    other = outline(
        made(tmp_path / "b", Block(), torch.randn(4, 16), 3, 0.5).reference_source("cpu"), PrecisionClass.FP32
    )
    assert other.signature is not None and not other.reason
    assert [(a.source, a.kind) for a in other.signature.with_role(Role.INPUT)] == [
        ("x", ArgKind.TENSOR), ("n", ArgKind.SCALAR), ("scale", ArgKind.SCALAR)
    ]  # fmt: skip
    assert "layers.0.weight" in {a.source for a in other.signature.with_role(Role.PARAMETER)}


def test_the_module_and_the_example_are_left_as_they_were(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(inplace=True)).train()
    module[1].eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    x = torch.randn(4, 8, requires_grad=True)
    held, drawn = x.detach().clone(), torch.get_rng_state()
    spec = made(tmp_path, module, x)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert [part.training for part in module] == [True, False, True, True] and module.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert torch.equal(x, held) and all(p.requires_grad for p in module.parameters())
    text = spec.reference_source("cpu")
    assert "dropout" not in text.partition("class Model")[2] and "False, 0.1, 1e-05" in text


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.bfloat16, "bf16"), (torch.float16, "fp16"), (torch.float64, "fp64")]
)
def test_another_precision_is_judged_as_such(tmp_path: Path, dtype: torch.dtype, tolerance: str) -> None:
    module = nn.Linear(8, 8, dtype=dtype)
    spec = made(tmp_path, module, torch.randn(4, 8, dtype=dtype))
    assert spec.tolerance == tolerance
    model, (x,) = reference_of(spec).Model(), reference_of(spec).get_inputs()
    assert model.weight.dtype is dtype and model(x).dtype is dtype
    assert made(tmp_path / "other", module, torch.randn(4, 8, dtype=dtype), tolerance="crfm").tolerance == "crfm"
