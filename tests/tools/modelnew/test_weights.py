"""How the tensors of a `ModelNew` find their counterparts among the reference's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ridgeline.tools.modelnew.file import PUBLIC_SEED
from ridgeline.tools.modelnew.weights import WeightsDiffer, expect_same_form, fingerprint, reference_names


class Reference(nn.Module):
    """Two layers whose weights differ, and two normalisations that begin with the same ones and zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3)
        self.bn1 = nn.BatchNorm2d(4)
        self.bn2 = nn.BatchNorm2d(4)


def first_values() -> dict[str, str]:
    torch.manual_seed(PUBLIC_SEED)
    return {name: fingerprint(tensor) for name, tensor in Reference().state_dict().items()}


def made(tensors: dict[str, torch.Tensor], buffers: dict[str, torch.Tensor] | None = None) -> nn.Module:
    model = nn.Module()
    for name, tensor in tensors.items():
        model.register_parameter(name, nn.Parameter(tensor))
    for name, tensor in (buffers or {}).items():
        model.register_buffer(name, tensor)
    return model


def renamed(**names: str) -> nn.Module:
    torch.manual_seed(PUBLIC_SEED)
    state = Reference().state_dict()
    parameters = {own: state[name] for own, name in names.items() if "running" not in name}
    return made(parameters, {own: state[name] for own, name in names.items() if "running" in name})


EVERYTHING = {
    "weight": "conv1.weight", "bias": "conv1.bias",
    "bn2_weight": "bn2.weight", "bn2_bias": "bn2.bias", "bn1_weight": "bn1.weight", "bn1_bias": "bn1.bias",
    "bn1_running_mean": "bn1.running_mean", "bn1_running_var": "bn1.running_var",
    "bn2_running_mean": "bn2.running_mean", "bn2_running_var": "bn2.running_var",
}  # fmt: skip


def test_equal_names_need_no_equal_values() -> None:
    torch.manual_seed(7)
    assert reference_names(first_values(), Reference()) == {name: name for name in first_values()}


def test_other_names_are_found_by_value_then_by_spelling() -> None:
    assert reference_names(first_values(), renamed(**EVERYTHING)) == EVERYTHING


def test_tensors_of_one_value_and_strange_names_keep_their_order() -> None:
    own = {name.replace("bn1_", "first_").replace("bn2_", "second_"): of for name, of in EVERYTHING.items()}
    own = dict(sorted(own.items()))  # the first normalisation before the second
    assert reference_names(first_values(), renamed(**own)) == own


def test_a_value_of_another_seed_has_no_counterpart() -> None:
    model = renamed(**EVERYTHING)
    with torch.no_grad():
        model.get_parameter("weight").add_(1)
    with pytest.raises(WeightsDiffer, match=r"lacks `conv1.weight` and has `weight`, which the reference has not"):
        reference_names(first_values(), model)


def test_a_missing_and_an_additional_parameter_are_named() -> None:
    model = renamed(**{k: v for k, v in EVERYTHING.items() if k != "bias"})
    with pytest.raises(WeightsDiffer, match=r"lacks `conv1.bias`: name its tensors"):
        reference_names(first_values(), model)
    model = renamed(**EVERYTHING)
    model.register_parameter("packed", nn.Parameter(torch.ones(3)))
    with pytest.raises(WeightsDiffer, match=r"has `packed`, which the reference has not"):
        reference_names(first_values(), model)


def test_a_buffer_of_its_own_is_the_modules_affair() -> None:
    model = renamed(**EVERYTHING)
    model.register_buffer("mask", torch.ones(5))
    assert reference_names(first_values(), model) == EVERYTHING


def test_fingerprint_tells_values_shapes_and_types_apart() -> None:
    tensor = torch.arange(12.0)
    others = [tensor.view(3, 4), tensor.int(), tensor + 1, torch.empty(0), tensor.double(), torch.tensor(0.0)]
    assert len({fingerprint(t) for t in [tensor, *others]}) == 1 + len(others)
    assert fingerprint(torch.arange(24.0)[::2]) == fingerprint(tensor * 2)
    assert fingerprint(torch.ones(5, dtype=torch.bfloat16)) == fingerprint(torch.ones(5, dtype=torch.bfloat16))


def test_fingerprint_reaches_the_last_value_of_a_tensor_too_large_to_count_in_float32() -> None:
    places = 1 << 25
    assert fingerprint(torch.zeros(1).expand(places)) != fingerprint(torch.ones(1).expand(places))


def test_another_form_under_the_same_name_is_named() -> None:
    with pytest.raises(WeightsDiffer, match=r"`w` is float32 \(6,\), the reference's float32 \(2, 3\): convert"):
        expect_same_form({"w": torch.ones(6)}, {"w": torch.ones(2, 3)})
