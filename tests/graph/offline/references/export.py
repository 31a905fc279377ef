"""Exports references for the tests: for each OUT/NAME.json (graph, signature) and OUT/NAME.npz (inputs, float64 results).

The scripts of this folder alone import torch; the tests do not.
"""

import inspect
import json
import sys
from pathlib import Path

import numpy as np
import torch

from ridgeline.tools.judge.worker.graph_export import export_graph
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role


def spec(name, role, value, source=""):
    if isinstance(value, float):
        return ArgSpec(name=name, role=role, kind=ArgKind.SCALAR, dtype="float64", value=value)
    dtype = str(value.dtype).removeprefix("torch.")
    return ArgSpec(name=name, role=role, dtype=dtype, shape=value.shape, strides=value.stride(), source=source or name)


def doubled(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def stored(value):
    if isinstance(value, float):
        return np.float64(value)
    value = value.detach()
    return value.view(torch.int16).numpy() if value.dtype is torch.bfloat16 else value.numpy().copy(order="K")


def describe(module, inputs):
    names = list(inspect.signature(module.forward).parameters)
    names = names if len(names) == len(inputs) else ["x"]
    outputs = module(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    args = [spec(n, Role.INPUT, v) for n, v in zip(names, inputs, strict=True)]
    args += [spec(n.replace(".", "_"), Role.PARAMETER, p.detach(), n) for n, p in module.named_parameters()]
    args += [spec(f"out_{i}", Role.OUTPUT, o) for i, o in enumerate(outputs)]
    return Signature(args=tuple(args))


def write(name, module, inputs, out):
    signature = describe(module, inputs)
    graph = export_graph(module, inputs, signature)
    values = [*inputs, *(p for _, p in module.named_parameters())]
    arrays = {f"in_{i}": stored(v) for i, v in enumerate(values)}  # before double() changes the parameters
    with torch.no_grad():
        exact = module.double()(*[doubled(v) for v in inputs])
    exact = exact if isinstance(exact, tuple) else (exact,)
    arrays |= {f"out_{i}": o.double().numpy() for i, o in enumerate(exact)}
    np.savez(out / f"{name}.npz", **arrays)
    (out / f"{name}.json").write_text(json.dumps({"graph": graph, "signature": signature.to_json()}))


def export(cases, *, rng_seed):
    """Export the references, by name a module and a function that makes its inputs, to the folder that the command names."""
    torch.manual_seed(rng_seed)
    for name, (module, inputs) in cases.items():
        given = inputs()
        with torch.no_grad():
            write(name, module, given, Path(sys.argv[1]))
