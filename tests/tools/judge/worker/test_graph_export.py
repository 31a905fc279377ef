"""The reference graph: what other rooms read of it, and the costs counted from it."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ridgeline.tools.judge.worker.graph_export import GraphExportError, compulsory_bytes, export_graph, flop_count
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import Role


class Quickstart(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(16))
        self.ln = nn.LayerNorm(16)

    def forward(self, x, residual):
        return self.ln(F.gelu(x + self.bias) + residual)


class Tempered(nn.Module):
    def forward(self, x, mask, temperature, lists):
        masked = (x / temperature).masked_fill(mask, float("-inf")) * torch.tensor(2.0)
        return torch.softmax(masked, dim=-1), lists[0].sum(dim=-1) + lists[1]


class NeedsTheNumber(nn.Module):
    def forward(self, x, slope):
        return F.leaky_relu(x, 0.5 if slope > 0.2 else 0.1)


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 5, padding=2)
        self.fc = nn.Linear(10, 4)

    def forward(self, x):
        return self.fc(self.conv(x))


class ReadsAFile(nn.Module):
    def forward(self, x):
        return x * len(x.numpy().tobytes())


@pytest.fixture(scope="module")
def quickstart():
    return export_graph(Quickstart(), [torch.randn(4, 16), torch.randn(4, 16)])


@pytest.fixture(scope="module")
def tempered():
    rows = torch.randn(4, 16)
    return export_graph(Tempered(), [rows, rows > 0, 0.7, [torch.randn(4, 3), torch.randn(4)]])


def ops(graph):
    return [n["op"] for n in graph["nodes"]]


def test_layer_norm_and_gelu_stay_whole(quickstart):
    assert ops(quickstart)[-5:] == [
        "aten.add.Tensor",
        "aten.gelu.default",
        "aten.add.Tensor",
        "aten.native_layer_norm.default",
        "getitem",
    ]


def test_graph_is_strict_json_and_names_its_arguments(quickstart):
    assert json.loads(json.dumps(quickstart, allow_nan=False)) == quickstart
    assert quickstart["inputs"] == ["x", "residual"]
    assert list(quickstart["parameters"].values()) == ["bias", "ln_weight", "ln_bias"]
    assert quickstart["nodes"][-1]["shape"] == [4, 16] and quickstart["nodes"][-1]["strides"] == [16, 1]
    assert quickstart["outputs"] == [quickstart["nodes"][-1]["name"]] and quickstart["mutations"] == {}


def test_float_argument_stays_symbolic_and_lists_are_flattened(tempered):
    assert tempered["inputs"] == ["x", "mask", "temperature", "lists_0", "lists_1"]
    temperature = next(n for n in tempered["nodes"] if n["name"] == "temperature")
    assert temperature["shape"] == [] and temperature["op"] == "placeholder"
    divide = next(n for n in tempered["nodes"] if n["op"].startswith("aten.div"))
    assert divide["args"] == [{"node": "x"}, {"node": "temperature"}] and divide["dtype"] == "float32"


def test_constants_and_infinities_are_literals(tempered):
    assert next(n for n in tempered["nodes"] if n["op"] == "constant")["args"] == [2.0]
    assert any(n["args"] == ["-inf"] for n in tempered["nodes"])
    json.dumps(tempered, allow_nan=False)


def test_number_that_steers_control_flow_is_written_into_the_graph():
    graph = export_graph(NeedsTheNumber(), [torch.randn(2, 3), 0.3])
    assert [n["args"][1] for n in graph["nodes"] if "leaky_relu" in n["op"]] == [0.5] or "aten.where.self" in ops(graph)


def test_refusal_is_one_line():
    with pytest.raises(GraphExportError) as refused:
        export_graph(ReadsAFile(), [torch.randn(2, 3)])
    assert "\n" not in str(refused.value) and "cannot be exported" in str(refused.value)


def test_parameters_take_their_names_from_the_signature():
    named = ArgSpec(name="scale_of_ln", role=Role.PARAMETER, shape=(16,), strides=(1,), source="ln.weight")
    graph = export_graph(Quickstart(), [torch.randn(4, 16)] * 2, Signature(args=(named,)))
    assert "scale_of_ln" in graph["parameters"].values()


def test_flops_of_contractions_follow_the_textbook():
    graph = export_graph(Convolution(), [torch.randn(2, 3, 10, 10)])
    convolution = 2 * (2 * 8 * 10 * 10) * (3 * 5 * 5)
    linear = 2 * (2 * 8 * 10) * 4 * 10
    assert flop_count(graph) == convolution + linear


def test_flops_of_quickstart_count_the_transcendental(quickstart):
    assert flop_count(quickstart) == 64 * (1 + 16 + 1 + 8)


def test_compulsory_bytes_count_an_expanded_dimension_once():
    x = ArgSpec(name="x", role=Role.INPUT, shape=(8, 4), strides=(4, 1))
    expanded = ArgSpec(name="m", role=Role.INPUT, dtype="bool", shape=(8, 4), strides=(0, 1))
    out = ArgSpec(name="out", role=Role.OUTPUT, dtype="bfloat16", shape=(8,), strides=(1,))
    assert compulsory_bytes(Signature(args=(x, expanded, out))) == 8 * 4 * 4 + 4 + 16
