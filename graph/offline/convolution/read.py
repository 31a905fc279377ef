"""Reads a convolution with its epilogue and its max pool from a reference's graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ridgeline.graph.offline.program import layout
from ridgeline.graph.offline.program.graph import RESHAPES, Graph, Node, arguments_of, graph_of, is_contiguous_argument
from ridgeline.graph.offline.program.ir import NotCovered, NotOfFamily
from ridgeline.graph.offline.text.epilogue import Epilogue, read_epilogue
from ridgeline.tools.records.graph_ops import base_name
from ridgeline.tools.records.problem import ArgSpec, Description
from ridgeline.tools.records.vocabulary import Role

DTYPES = ("float32", "float16", "bfloat16")
Pair = tuple[int, int]  # vertical, horizontal


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A max pool over a convolution's output; padding never wins."""

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    size: Pair  # of the pooled planes


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """One convolution over contiguous NCHW tensors, with its epilogue and its pool."""

    x: ArgSpec
    weight: ArgSpec
    bias: ArgSpec | None
    output: ArgSpec
    images: int
    channels: int
    size: Pair  # of an input plane
    filters: int
    taps: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    out_size: Pair  # of a plane of the convolution's own output
    pool: Pool | None
    epilogue: Epilogue

    @property
    def result_size(self) -> Pair:
        """Return the size of an output plane."""
        return self.pool.size if self.pool else self.out_size

    @property
    def depth(self) -> int:
        """Return the products summed for one output: channels x taps."""
        return self.channels * self.taps[0] * self.taps[1]

    @property
    def flops(self) -> int:
        """Return multiplications and additions."""
        return 2 * self.images * self.filters * math.prod(self.out_size) * self.depth

    def stored_share(self, *, flops_per_byte: int) -> float:
        """Return (time to write and read the convolution's output) / (time of its arithmetic), at most 1."""
        stored = 8 * self.images * self.filters * self.out_size[0] * self.out_size[1]
        return min(1.0, stored * flops_per_byte / max(self.flops, 1))


def read_convolution(description: Description) -> Convolution:
    """Return the convolution of a described reference.

    Raises:
        NotCovered: none or several convolutions, another kind of one, or something else than a pool after it.
    """
    graph = graph_of(description)
    nodes = {n["name"]: n for n in graph["nodes"]}
    node = _only_convolution(graph)
    _, _, _, stride, padding, dilation, _, _, _ = node["args"]
    x, weight, bias = _operands(graph, description, nodes, node)
    images, channels, *size = x.shape
    filters, _, *taps = weight.shape
    out_size = _pair(node["shape"][2:])
    pool_node = _pool_of(graph, nodes)
    epilogue = read_epilogue(
        description,
        node["name"],
        rows=images * filters,
        cols=math.prod(out_size),
        root=pool_node["args"][0]["node"] if pool_node else "",
    )
    return Convolution(
        x=x,
        weight=weight,
        bias=bias,
        output=_output(description),
        images=images,
        channels=channels,
        size=_pair(size),
        filters=filters,
        taps=_pair(taps),
        stride=_pair(stride),
        padding=_pair(padding),
        dilation=_pair(dilation),
        out_size=out_size,
        pool=_pool(nodes, graph, pool_node, node) if pool_node else None,
        epilogue=epilogue,
    )


def _only_convolution(graph: Graph) -> Node:
    found: list[Node] = [n for n in graph["nodes"] if base_name(n["op"]) == "convolution"]
    if len(found) != 1:
        raise NotCovered("several convolutions") if found else NotOfFamily("no convolution")
    node = found[0]
    is_transposed, groups = node["args"][6], node["args"][8]
    if is_transposed or groups != 1:
        raise NotCovered("a transposed convolution" if is_transposed else f"a convolution of {groups} groups")
    if len(node["shape"]) != 4:
        raise NotCovered(f"a convolution over {len(node['shape']) - 2} dimensions")
    if not layout.is_contiguous(tuple(node["shape"]), tuple(node["strides"])):
        raise NotCovered("a convolution that is not laid out as NCHW")
    return node


def _operands(
    graph: Graph, description: Description, nodes: dict[str, Node], node: Node
) -> tuple[ArgSpec, ArgSpec, ArgSpec | None]:
    arguments = arguments_of(graph, description)

    def read(argument: Any) -> ArgSpec:
        spec = arguments.get(argument["node"])
        if spec is None:
            raise NotCovered(f"an operand of the convolution that is computed first: {nodes[argument['node']]['op']}")
        if spec.dtype not in DTYPES or spec.dtype != node["dtype"]:
            raise NotCovered(f"a convolution of {spec.dtype} tensors")
        if not is_contiguous_argument(spec):
            raise NotCovered("an operand of the convolution that is not contiguous")
        if math.prod(spec.shape) >= 1 << 31:
            raise NotCovered("an operand of the convolution of 2^31 elements or more")
        return spec

    x, weight, bias = node["args"][:3]
    return read(x), read(weight), None if bias is None else read(bias)


def _pool_of(graph: Graph, nodes: dict[str, Node]) -> Node | None:
    """Return the max pool whose values are the output, through reshapes, or None without one."""
    if len(graph["outputs"]) != 1:
        raise NotCovered("several outputs of a convolution")
    pools = [n for n in graph["nodes"] if base_name(n["op"]) == "max_pool2d_with_indices"]
    if not pools:
        return None
    node = nodes[graph["outputs"][0]]
    while base_name(node["op"]) in RESHAPES:
        node = nodes[node["args"][0]["node"]]
    if len(pools) > 1 or node["op"] != "getitem" or node["args"] != [{"node": pools[0]["name"]}, 0]:
        raise NotCovered("something else than a reshape after the max pool")
    pool: Node = pools[0]
    return pool


def _pool(nodes: dict[str, Node], graph: Graph, node: Node, convolution: Node) -> Pool:
    if nodes[node["args"][0]["node"]]["shape"] != convolution["shape"]:
        raise NotCovered("a max pool over another shape than the convolution's")
    values = next(n for n in nodes.values() if n["op"] == "getitem" and n["args"] == [{"node": node["name"]}, 0])
    given: list[Any] = node["args"]
    kernel, stride, padding, dilation = (given[i] if i < len(given) else None for i in range(1, 5))
    return Pool(
        kernel=_pair(kernel),
        stride=_pair(stride or kernel),
        padding=_pair(padding or [0]),
        dilation=_pair(dilation or [1]),
        size=_pair(values["shape"][2:]),
    )


def _output(description: Description) -> ArgSpec:
    (output,) = description.signature.with_role(Role.OUTPUT)
    if output.dtype not in DTYPES:
        raise NotCovered(f"a {output.dtype} output")
    if not is_contiguous_argument(output):
        raise NotCovered("an output that is not contiguous")
    if math.prod(output.shape) < 1:
        raise NotCovered("an empty output")
    return output


def _pair(values: Any) -> Pair:
    if isinstance(values, int):
        return values, values
    return (int(values[0]), int(values[-1]))
