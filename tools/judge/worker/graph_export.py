"""The reference as a plain JSON graph of core ATen operations, and what it costs by formula.

`export_graph` runs in the judge and in an outline, which alone may import a reference. Everyone else reads the JSON::

    {"schema_version": 1,
     "nodes": [{"name", "op", "args", "kwargs", "shape", "strides", "dtype"}, …],   in execution order
     "inputs": [node name, …],           the forward arguments, lists flattened, in Signature order; None is left out
     "parameters": {node name: Signature argument name},   parameters and buffers
     "outputs": [node name, …],
     "mutations": {node name: what it overwrites}}          an input or a buffer; usually empty

An argument is `{"node": name}`, a literal, or a list of these. Non-finite floats are the strings "inf", "-inf", "nan",
so that the JSON is strict; a dtype is torch's name without its prefix. `op` is "placeholder", "constant" (one literal
argument: a scalar or nested lists), "getitem" (node, index) or the operator's name such as "aten.mul.Tensor". A node
that returns a tuple has dtype "tuple" and shape []; its getitem nodes carry the shapes. An input that the reference
takes as a Python number appears as a placeholder of shape [] (a number of its own: `float` stays symbolic, `int` and
`bool` are written into the graph).
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind

from ridgeline.tools.errors import ProblemError, one_line
from ridgeline.tools.records.graph_ops import base_name
from ridgeline.tools.records.problem import Signature

GRAPH_SCHEMA_VERSION = 1
MAX_CONSTANT_ELEMENTS = 4096
"""A constant tensor with more elements is not written into the graph: its node has a shape and no value."""

Graph = dict[str, Any]
Node = dict[str, Any]


class GraphExportError(ProblemError):
    """The reference cannot be exported; a search goes on without a graph. The message is one line."""


def export_graph(module: torch.nn.Module, example_inputs: Sequence[Any], signature: Signature | None = None) -> Graph:
    """Return the module's forward as the JSON graph described above.

    Args:
        module: the reference, already in the mode it is judged in.
        example_inputs: what `get_inputs()` returns: tensors, numbers, None, lists of tensors.
        signature: when given, parameters carry its names (matched by `ArgSpec.source`); else C identifiers made of
            their names.

    Raises:
        GraphExportError: torch.export refused; one line says why.
    """
    try:
        program = _export(module, example_inputs)
        return _convert(program, signature)
    except Exception as error:
        # torch.export raises some forty unrelated types, many with messages of several hundred lines
        named = f"{type(error).__name__}: {one_line(error)}"
        raise GraphExportError(f"the reference cannot be exported: {named[:300]}") from error


def _export(module: torch.nn.Module, example_inputs: Sequence[Any]) -> torch.export.ExportedProgram:
    # As a 0-dim float64 tensor a number stays an argument of the graph and still does not promote float32 operands.
    symbolic = [torch.tensor(v, dtype=torch.float64) if isinstance(v, float) else v for v in example_inputs]
    program: torch.export.ExportedProgram
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.export(module, tuple(symbolic))
        except Exception:  # of any type, as above
            if not any(isinstance(v, float) for v in example_inputs):
                raise
            program = torch.export.export(module, tuple(example_inputs))  # forward needs the number itself
        program = program.run_decompositions()
    return program


# ------------------------------------------------------------------------------------------------------ conversion


def _convert(program: torch.export.ExportedProgram, signature: Signature | None) -> Graph:
    constants = _constants(program)
    converted = [_node(n, constants) for n in program.graph.nodes if n.op in ("placeholder", "call_function")]
    outputs = [str(s.arg.name) for s in program.graph_signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
    mutations = {
        str(s.arg.name): str(s.target)
        for s in program.graph_signature.output_specs
        if s.kind not in (OutputKind.USER_OUTPUT, OutputKind.TOKEN)
    }
    return {
        "schema_version": GRAPH_SCHEMA_VERSION,
        "nodes": _live(converted, [*outputs, *mutations]),
        "inputs": _inputs(program),
        "parameters": _parameters(program, signature),
        "outputs": outputs,
        "mutations": mutations,
    }


def _inputs(program: torch.export.ExportedProgram) -> list[str]:
    specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    return [str(s.arg.name) for s in specs if getattr(s.arg, "value", 0) is not None]


def _parameters(program: torch.export.ExportedProgram, signature: Signature | None) -> dict[str, str]:
    known = {a.source: a.name for a in signature.args} if signature else {}
    kinds = (InputKind.PARAMETER, InputKind.BUFFER)
    return {
        str(s.arg.name): known.get(str(s.target), re.sub(r"\W", "_", str(s.target)))
        for s in program.graph_signature.input_specs
        if s.kind in kinds
    }


def _constants(program: torch.export.ExportedProgram) -> dict[str, Any]:
    """Return node name -> value of every constant tensor small enough to write down, None for the larger ones."""
    found: dict[str, Any] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.CONSTANT_TENSOR:
            value = program.constants[str(spec.target)]
            small = isinstance(value, torch.Tensor) and value.numel() <= MAX_CONSTANT_ELEMENTS
            found[str(spec.arg.name)] = _literal(value.tolist()) if small else None
    return found


def _node(node: torch.fx.Node, constants: dict[str, Any]) -> Node:
    op = _op_name(node)
    args = [_literal(a) for a in node.args]
    if node.name in constants:
        op, args = "constant", [constants[node.name]]
    return {
        "name": node.name,
        "op": op,
        "args": args,
        "kwargs": {k: _literal(v) for k, v in node.kwargs.items()},
        **_layout(node.meta.get("val")),
    }


def _op_name(node: torch.fx.Node) -> str:
    if node.op == "placeholder":
        return "placeholder"
    if getattr(node.target, "__name__", "") == "getitem":
        return "getitem"
    return str(node.target)


def _layout(value: Any) -> dict[str, Any]:
    if isinstance(value, torch.Tensor):
        sizes, strides = [int(s) for s in value.shape], [int(s) for s in value.stride()]
        return {"shape": sizes, "strides": strides, "dtype": str(value.dtype).removeprefix("torch.")}
    kind = "tuple" if isinstance(value, list | tuple) else type(value).__name__
    return {"shape": [], "strides": [], "dtype": kind}


def _literal(value: Any) -> Any:
    if isinstance(value, torch.fx.Node):
        return {"node": value.name}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return [_literal(v) for v in value]
    return str(value).removeprefix("torch.")


def node_names(argument: Any) -> list[str]:
    """Return the names of the nodes that an argument refers to, in order."""
    if isinstance(argument, dict):
        return [argument["node"]]
    if isinstance(argument, list):
        return [name for item in argument for name in node_names(item)]
    return []


def _live(nodes: list[Node], outputs: list[str]) -> list[Node]:
    """Drop what no output needs: assertions that an export leaves behind, halves of a decomposition."""
    needed = set(outputs)
    for node in reversed(nodes):
        if node["name"] in needed:
            needed.update(node_names(node["args"]), node_names(list(node["kwargs"].values())))
    return [n for n in nodes if n["name"] in needed or n["op"] == "placeholder"]


# ------------------------------------------------------------------------------------------------------------ costs

FLOPS_PER_OUTPUT = {
    1: "add sub rsub mul div neg abs reciprocal sqrt relu maximum minimum where eq ne lt le gt ge floor ceil round trunc "
    "sign remainder fmod logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not square "
    "masked_fill isnan isinf",
    2: "rsqrt leaky_relu clamp hardtanh",
    8: "exp exp2 log log2 log10 sin cos",
    10: "expm1 log1p sigmoid atan",
    12: "tanh silu elu softplus tan asin acos sinh cosh",
    16: "erf erfc gelu mish pow",
}
"""Operations per output element; a transcendental function counts as a polynomial of its usual degree in fp32."""

FLOPS_PER_INPUT = {
    1: "sum mean amax amin max min prod argmax argmin any all cumsum cumprod avg_pool1d avg_pool2d avg_pool3d "
    "max_pool2d_with_indices max_pool3d_with_indices _adaptive_avg_pool2d _adaptive_avg_pool3d",
    2: "linalg_vector_norm",
    3: "var std",
    4: "_native_batch_norm_legit_no_training",
    8: "native_layer_norm native_group_norm _native_batch_norm_legit",  # mean, variance, normalize, scale and shift
    12: "_softmax _log_softmax",  # maximum, subtract, exp (8), sum, divide
}
"""Operations per input element of a reduction."""

ELEMENTWISE_FLOPS = {name: flops for flops, names in FLOPS_PER_OUTPUT.items() for name in names.split()}
REDUCTION_FLOPS = {name: flops for flops, names in FLOPS_PER_INPUT.items() for name in names.split()}


def flop_count(graph: Graph) -> int:
    """Return the graph's floating-point operations by formula; an operation without a formula counts 0."""
    by_name = {n["name"]: n for n in graph["nodes"]}
    return sum(_node_flops(node, by_name) for node in graph["nodes"])


def _node_flops(node: Node, by_name: dict[str, Node]) -> int:
    operation = base_name(node["op"])
    operands = [by_name[name] for name in node_names(node["args"]) if name in by_name]
    if operation in CONTRACTIONS:
        return CONTRACTIONS[operation](node, operands)
    if operation in REDUCTION_FLOPS and operands:
        return REDUCTION_FLOPS[operation] * math.prod(operands[0]["shape"])
    return ELEMENTWISE_FLOPS.get(operation, 0) * math.prod(node["shape"])


def _matmul_flops(node: Node, operands: list[Node]) -> int:
    """Count 2·M·N·K; the last two operands are the matrices (addmm and baddbmm have the added term before them)."""
    return 2 * math.prod(node["shape"]) * int(operands[-2]["shape"][-1])


def _convolution_flops(node: Node, operands: list[Node]) -> int:
    """Count 2 per weight tap: of an output element, or of an input element when transposed."""
    data, weight = operands[0], operands[1]
    is_transposed = bool(node["args"][6])
    elements: int = math.prod(data["shape"] if is_transposed else node["shape"])
    return 2 * elements * int(math.prod(weight["shape"][1:]))


def _attention_flops(node: Node, operands: list[Node]) -> int:
    query, key, value = operands[:3]
    *batch, targets, depth = query["shape"]
    return 2 * int(math.prod(batch)) * int(targets) * int(key["shape"][-2]) * (int(depth) + int(value["shape"][-1]))


COSTED_CONTRACTIONS = {
    _matmul_flops: "mm bmm addmm baddbmm matmul linear mv dot",
    _convolution_flops: "convolution",
    _attention_flops: "scaled_dot_product_attention _scaled_dot_product_flash_attention "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_cudnn_attention",
}
CONTRACTIONS = {name: formula for formula, names in COSTED_CONTRACTIONS.items() for name in names.split()}


def compulsory_bytes(signature: Signature) -> int:
    """Return the bytes a kernel cannot avoid: each input, parameter and buffer read once, each output written once."""
    return sum(arg.stored_bytes for arg in signature.args)
