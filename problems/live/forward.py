"""An exported program as the text of a `forward`: one operation a line, with what it gives beside it.

Calls are spelled as a person writes them (`F.linear(x, self.fc.weight)`), which costs eager PyTorch what the module's own
calls cost it; or, where that gives another result, by the operators' full names.
"""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import InputKind
from torch.nn import functional
from torch.utils import _pytree

from ridgeline.problems.live.drawing import listed
from ridgeline.problems.live.program import Argument, NotExportable, dtype_name

_RESERVED = frozenset({"self", "torch", "F", *dir(builtins)})
_CHECKS = ("_assert", "sym_constrain", "_check")  # of shapes and types that are fixed here; in float64 they would fail
_INDENT = " " * 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One operation: the local that it sets, or none, and those that it reads."""

    name: str
    call: str
    reads: frozenset[str]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class _Text:
    """A value as Python source; `local` where it is a local that can be freed."""

    source: str
    local: str = ""


@dataclass(slots=True)
class _Writer:
    dtypes: Mapping[torch.dtype, str]
    device: str
    is_plain: bool  # spell operations as a person writes them
    taken: set[str]
    lines: list[_Line] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)

    def write(self, graph_module: torch.fx.GraphModule, values: dict[torch.fx.Node, Any]) -> Any:
        """Write the operations of a graph whose placeholders have values; return what it returns."""
        result: Any = ()
        for node in graph_module.graph.nodes:
            if node.op == "get_attr":
                values[node] = graph_module.get_submodule(str(node.target))
            elif node.op == "call_function":
                values[node] = self._value(node, values)
            elif node.op == "output":
                (result,) = node.args
        return _valued(result, values)

    def _value(self, node: torch.fx.Node, values: dict[torch.fx.Node, Any]) -> Any:
        args, kwargs = _valued(node.args, values), _valued(node.kwargs, values)
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return self._inlined(node.target, args)
        if getattr(node.target, "__name__", "") == "getitem":
            whole, index = args
            if isinstance(whole, tuple | list):
                return whole[index]
            return self._line(node, f"{self._text(whole)}[{index!r}]")
        operator = node.target
        if not isinstance(operator, torch._ops.OpOverload) or operator.namespace != "aten":
            raise NotExportable(f"forward uses {node.target}, which is no operation of PyTorch's own")
        name = operator._schema.name.partition("::")[2]
        if name.startswith(_CHECKS) or (not node.users and not operator._schema.is_mutable):
            return None
        if _gives_its_first(node, name, args):
            return args[0]
        return self._line(node, self._call(operator, name, args, kwargs))

    def _inlined(self, operator: Any, args: Sequence[Any]) -> Any:
        """Write the body of a block whose mode changes nothing here: no gradients, autocast off."""
        name = operator.name()
        if name == "wrap_with_set_grad_enabled":
            _, body, *given = args
        elif name == "wrap_with_autocast" and not args[2]:
            _, _, _, _, body, *given = args
        else:
            raise NotExportable(f"forward uses {name.replace('wrap_with_', '')}, which a reference in one file has not")
        placeholders = [n for n in body.graph.nodes if n.op == "placeholder"]
        return self.write(body, dict(zip(placeholders, given, strict=True)))

    def _line(self, node: torch.fx.Node, call: str) -> _Text | None:
        name = free_name(node.name, self.taken) if node.users else ""
        self.lines.append(_Line(name=name, call=call, reads=frozenset(self.reads), remark=_remark(node)))
        self.reads.clear()
        return _Text(name, name) if name else None

    # ---------------------------------------------------------------------------------------------------------- text

    def _call(self, operator: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        shown = [self._text(a) for a in args]
        named = [
            f"{k}={self._text(v)}" for k, v in kwargs.items() if k not in ("layout", "pin_memory") or not _is_usual(v)
        ]
        if self.is_plain and (called := _called(name)):
            return f"{called}({', '.join([*shown, *named])})"
        if self.is_plain and shown and hasattr(torch.Tensor, name) and operator._schema.arguments[0].name == "self":
            return f"{shown[0]}.{name}({', '.join([*shown[1:], *named])})"
        return f"torch.ops.aten.{name}.{operator._overloadname}({', '.join([*shown, *named])})"

    def rendered(self, value: Any) -> str:
        """Return what `forward` gives: dicts, tuples and lists of its tensors, as plain ones."""
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key!r}: {self.rendered(v)}' for key, v in value.items())}}}"
        if isinstance(value, tuple):
            parts = [self.rendered(v) for v in value]
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(self.rendered(v) for v in value)}]"
        return self._text(value)

    def _text(self, value: Any) -> str:
        if isinstance(value, _Text):
            if value.local:
                self.reads.add(value.local)
            return value.source
        if isinstance(value, list | tuple):
            return f"[{', '.join(self._text(v) for v in value)}]"
        if isinstance(value, torch.dtype):
            return self.dtypes.get(value, str(value))
        if isinstance(value, torch.device):
            return self.device
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        if isinstance(value, torch.memory_format | torch.layout):
            return str(value)
        if value is None or isinstance(value, bool | int | float | str | complex):
            return repr(value)
        raise NotExportable(f"forward gives an operation a {type(value).__name__}, which has no form in a file")


def forward_text(
    program: torch.export.ExportedProgram,
    given: Sequence[Argument],
    tensors: Mapping[str, str],
    *,
    is_plain: bool,
) -> str:
    """Return `def forward` of a class whose instances hold the program's tensors.

    Args:
        program: the exported program.
        given: the arguments, in order.
        tensors: the source of each parameter, buffer and constant by its name in the program: `self.fc.weight`.
        is_plain: spell operations as a person writes them.

    Raises:
        NotExportable: an operation that a reference in one file has not.
    """
    names = [a.name for a in given]
    values: dict[torch.fx.Node, Any] = {}
    inputs = iter(names)
    specs = program.graph_signature.input_specs
    for node, spec in zip((n for n in program.graph.nodes if n.op == "placeholder"), specs, strict=True):
        is_input = spec.kind is InputKind.USER_INPUT
        values[node] = _Text(next(inputs) if is_input else tensors[str(spec.target)])
    writer = _Writer(
        dtypes=_dtypes(program, values),
        device=f"{next(a.name for a in given if isinstance(a.value, torch.Tensor))}.device",
        is_plain=is_plain,
        taken={*_RESERVED, *names},
    )
    result = writer.write(program.graph_module, values)
    spec = program.call_spec.out_spec
    returned = writer.rendered(_pytree.tree_unflatten(list(result), spec) if spec else result)
    body = [*_guards(given), *_with_frees(writer.lines, set(writer.reads)), f"return {returned}"]
    return f"    def forward(self, {', '.join(names)}):\n" + "".join(f"{_INDENT}{line}\n" for line in body)


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that no other has, like the one that is given; it is taken from now on."""
    name = re.sub(r"\W", "_", name)
    while name in taken or keyword.iskeyword(name):
        name += "_"
    taken.add(name)
    return name


def _valued(value: Any, values: Mapping[torch.fx.Node, Any]) -> Any:
    if isinstance(value, torch.fx.Node):
        return values[value]
    if isinstance(value, list | tuple):
        return [_valued(v, values) for v in value]
    if isinstance(value, dict):
        return {k: _valued(v, values) for k, v in value.items()}
    return value


def _dtypes(program: torch.export.ExportedProgram, values: Mapping[torch.fx.Node, _Text]) -> dict[torch.dtype, str]:
    """Return the source of each floating type that an argument has.

    The judge runs a reference in float64 too, and a type that is written out would round there.
    """
    kinds = (InputKind.USER_INPUT, InputKind.PARAMETER)
    found: dict[torch.dtype, str] = {}
    for wanted in kinds:
        for (node, text), spec in zip(values.items(), program.graph_signature.input_specs, strict=True):
            value = node.meta.get("val")
            if spec.kind is wanted and isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim():
                found.setdefault(value.dtype, f"{text.source}.dtype")
    return found


def _gives_its_first(node: torch.fx.Node, name: str, args: Sequence[Any]) -> bool:
    """Say whether an operation gives its first argument back: a cast to its own type, dropout in eval mode."""
    if name == "alias" or (name in ("dropout", "feature_dropout", "alpha_dropout") and args[2] is False):
        return True
    if name != "to" or True in (*node.args[2:], *node.kwargs.values()):  # a copy that is asked for
        return False
    before, after = _tensor_of(node.args[0]), _tensor_of(node)
    return bool(before.dtype is after.dtype and before.device == after.device and before.stride() == after.stride())


def _tensor_of(node: Any) -> torch.Tensor:
    tensor: torch.Tensor = node.meta["val"]
    return tensor


def _is_usual(value: Any) -> bool:
    return value is None or value is False or value is torch.strided


def _called(name: str) -> str:
    """Return what a person calls an operation by; "" where only its full name or a method will do."""
    if callable(getattr(torch._C._VariableFunctions, name, None)) and hasattr(torch, name):
        return f"torch.{name}"
    return f"F.{name}" if hasattr(torch._C._nn, name) and hasattr(functional, name) else ""


def _remark(node: torch.fx.Node) -> str:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return ""
    return f"  # {tuple(value.shape)} {dtype_name(value.dtype)}"


def _guards(given: Sequence[Argument]) -> Iterator[str]:
    """Refuse another value of what the program holds by value, and make tensors of numbers that may vary."""
    for each in given:
        if isinstance(each.value, torch.Tensor):
            continue
        if not each.is_fixed:
            yield f"{each.name} = torch.as_tensor({each.name}, dtype=torch.float64)"
        else:
            yield f"if {_condition_that_differs(each)}:"
            yield f'    raise ValueError("{each.name} is {each.value!r} here, as in the example")'


def _condition_that_differs(argument: Argument) -> str:
    """Return the condition that an argument is not the value that the program holds."""
    if argument.value is None:
        return f"{argument.name} is not None"
    if isinstance(argument.value, float) and math.isnan(argument.value):
        return f"{argument.name} == {argument.name}"
    return f"{argument.name} != {listed(argument.value)}"


def _with_frees(lines: Sequence[_Line], returned: set[str]) -> Iterator[str]:
    """Free each local after its last use, as nested calls do: eager PyTorch gets its memory back in time."""
    last = {local: i for i, line in enumerate(lines) for local in line.reads}
    for i, line in enumerate(lines):
        freed = sorted(local for local in line.reads if last[local] == i and local not in returned)
        text = f"{line.name} = {line.call}" if line.name else line.call
        yield f"{text}{'; del ' + ', '.join(freed) if freed else ''}{line.remark}"
