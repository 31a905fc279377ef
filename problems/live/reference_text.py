"""The reference of a live module as one file in KernelBench form: what models read, the judge runs, and a run carries along.

Everything is in its text: another program is another text and so another problem, and no file has to lie beside it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch.export.graph_signature import InputKind

from ridgeline.problems.live.drawing import FIGURES, HELPERS, Drawing, is_mask, listed
from ridgeline.problems.live.forward import forward_text, free_name
from ridgeline.problems.live.program import Argument, check_tensor, dtype_name
from ridgeline.problems.written import MARK

_PRINTED_CHARS = 2_000
_SOURCE_CHARS = 6_000
"""Most of what `print` shows of the module, and of its classes' own source."""
_ALIKE = 2.0
"""Figures up to this factor apart are of one problem: they are those of another draw, or of other weights."""
_FIGURE = re.compile(rf"\b((?:{'|'.join(FIGURES)})=)(-?[\d.]+(?:e[+-]?\d+)?)")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")

_PUT = {
    "_parameter": '''
def _parameter(model, name, tensor):
    """Give the model a parameter by its dotted name, or one that it has another name for."""
    owner, leaf = _owner(model, name)
    is_made = isinstance(tensor, torch.nn.Parameter)
    owner.register_parameter(leaf, tensor if is_made else torch.nn.Parameter(tensor, requires_grad=False))
''',
    "_buffer": '''
def _buffer(model, name, tensor, persistent=True):
    """Give the model a buffer by its dotted name."""
    owner, leaf = _owner(model, name)
    owner.register_buffer(leaf, tensor, persistent=persistent)
''',
    "_owner": """
def _owner(model, name):
    *path, leaf = name.split(".")
    for part in path:
        if part not in model._modules:
            model.add_module(part, torch.nn.Module())
        model = model._modules[part]
    return model, leaf
""",
}


@dataclass(slots=True)
class _Made:
    """The lines that give the model its tensors, and how `forward` names each."""

    drawing: Drawing
    lines: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)  # by the names of the program
    constants: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)


def reference_text(
    module: torch.nn.Module, program: torch.export.ExportedProgram, given: Sequence[Argument], *, is_plain: bool
) -> str:
    """Return the source of a reference that does what the program does, on inputs like those given.

    Its `Model` has the module's parameters and buffers by their names. `is_plain` is as `forward_text` takes it.

    Raises:
        ProblemError: a tensor that kernels cannot read, or an operation that one file cannot hold.
    """
    made = _Made(drawing=Drawing())
    _add_tensors(made, module, _without_use(program))
    _add_constants(made, program)
    forward = forward_text(program, given, made.sources, is_plain=is_plain)
    inputs = _inputs_text(made.drawing, given)
    helpers = [HELPERS[name] for name in HELPERS if name in made.drawing.used]
    puts = [text for name, text in _PUT.items() if name in made.used]
    return "".join(
        [
            _heading(module, given, packs=bool(made.drawing.packed)),
            _model_text(made, forward),
            inputs,
            *(f"\n{text}" for text in (*puts, *helpers)),
            _values_text(made.drawing),
        ]
    )


def is_same_problem(one: str, other: str) -> bool:
    """Say whether two references differ in comments alone, or in figures of about one size."""
    texts = ["\n".join(line for line in text.splitlines() if not line.startswith("#")) for text in (one, other)]
    if _FIGURE.sub(r"\1", texts[0]) != _FIGURE.sub(r"\1", texts[1]):
        return False
    figures = [[float(found[1]) for found in _FIGURE.findall(text)] for text in texts]
    return all(abs(a - b) <= (1 - 1 / _ALIKE) * max(abs(a), abs(b)) for a, b in zip(*figures, strict=True))


# ------------------------------------------------------------------------------------------------------------- tensors


def _without_use(program: torch.export.ExportedProgram) -> set[str]:
    """Return the names of the buffers that no operation reads, as a batch norm's count of batches."""
    placeholders = (node for node in program.graph.nodes if node.op == "placeholder")
    pairs = zip(placeholders, program.graph_signature.input_specs, strict=True)
    return {str(spec.target) for node, spec in pairs if spec.kind is InputKind.BUFFER and not node.users}


def _add_tensors(made: _Made, module: torch.nn.Module, unused: set[str]) -> None:
    """Add parameters and buffers in the module's own order; one of several names is held once.

    What is `unused` is zeros: a count goes on while the module is trained, and the problem stays.
    """
    first: dict[int, str] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for kind, tensors in (("parameter", part._parameters), ("buffer", part._buffers)):
            for leaf, tensor in tensors.items():
                if tensor is None:
                    continue
                name = f"{path}.{leaf}" if path else leaf
                is_persistent = leaf not in part._non_persistent_buffers_set
                made.used |= {f"_{kind}", "_owner"}
                source = first.get(id(tensor))
                if source is None:
                    source = first[id(tensor)] = _attribute(name)
                    value = made.drawing.weight(
                        f"{kind} {name}",
                        torch.zeros_like(tensor) if name in unused else tensor,
                        is_buffer=kind == "buffer",
                        is_exact=kind == "buffer" and (not is_persistent or is_mask(tensor)),
                    )
                else:
                    value = source
                kept = "" if is_persistent else ", persistent=False"
                made.lines.append(f"_{kind}(self, {name!r}, {value}{kept})")
                made.sources[name] = source


def _add_constants(made: _Made, program: torch.export.ExportedProgram) -> None:
    """Add tensors that the module holds in plain attributes or makes of numbers: no arguments of a kernel."""
    taken = {name.partition(".")[0] for name in made.sources}
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.CONSTANT_TENSOR:
            target = str(spec.target)
            tensor = program.constants[target]
            assert isinstance(tensor, torch.Tensor)  # noqa: S101  # by its kind
            check_tensor(f"constant {target}", tensor)
            name = free_name(f"constant_{target}", taken)
            made.constants.append(name)
            made.lines.append(f"self.{name} = {made.drawing.exact(f'constant {target}', tensor)}")
            made.sources[target] = f"self.{name}"


def _attribute(name: str) -> str:
    source = "self"
    for part in name.split("."):
        source = f"{source}.{part}" if _IDENTIFIER.fullmatch(part) else f"getattr({source}, {part!r})"
    return source


# ---------------------------------------------------------------------------------------------------------------- text


def _heading(module: torch.nn.Module, given: Sequence[Argument], *, packs: bool) -> str:
    kind = type(module)
    inputs = "".join(f"- {a.name}: {_in_words(a)}\n" for a in given)
    imports = "import base64\nimport zlib\n\n" if packs else ""
    return (
        f'"""`{kind.__qualname__}`{MARK}\n\n'
        "Inputs are drawn in the way that the example shows, parameters of the size that the module's own have.\n"
        f'Inputs of the example:\n\n{inputs}"""\n\n'
        f"{_own_source(module)}{imports}import torch\nfrom torch.nn import functional as F\n"
    )


def _in_words(argument: Argument) -> str:
    value = argument.value
    if isinstance(value, torch.Tensor):
        strides = "" if value.is_contiguous() else f", strides {tuple(value.stride())}"
        return f"{dtype_name(value.dtype)} {tuple(value.shape)}{strides}"
    return f"{value!r}{', and no other value' if argument.is_fixed else ''}"


def _own_source(module: torch.nn.Module) -> str:
    """Return the module, and its classes as their author wrote them where Python can get that, as comments."""
    shown: list[str] = []
    for kind in dict.fromkeys(type(part) for part in module.modules()):
        if kind.__module__.partition(".")[0] == "torch":
            continue
        try:
            shown += ["", *inspect.getsource(kind).splitlines()]
        except (OSError, TypeError):  # a class of a notebook, of a compiled module, of `exec`
            continue
    printed = _comments(str(module).splitlines(), _PRINTED_CHARS)
    return f"# The module, which is this file's `Model`:\n#\n{printed}{_comments(shown, _SOURCE_CHARS)}\n"


def _comments(lines: Sequence[str], most_chars: int) -> str:
    text = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    return text if len(text) <= most_chars else text[: text.rindex("\n", 0, most_chars) + 1] + "# … and so on\n"


def _model_text(made: _Made, forward: str) -> str:
    lines = "".join(f"        {line}\n" for line in made.lines)
    return (
        "\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"{lines}\n{''.join(_moving(made.constants))}{forward}"
    )


def _moving(constants: Sequence[str]) -> Iterator[str]:
    """Let constants follow the model to a device or a type; they are no buffers, which kernels would get as arguments."""
    if constants:
        yield "    def _apply(self, fn, recurse=True):\n"
        yield from (f"        self.{name} = fn(self.{name})\n" for name in constants)
        yield "        return super()._apply(fn, recurse)\n\n"


def _inputs_text(drawing: Drawing, given: Sequence[Argument]) -> str:
    drawn = [drawing.example(a.name, a.value) if isinstance(a.value, torch.Tensor) else listed(a.value) for a in given]
    lines = "".join(f"        {text},  # {a.name}\n" for text, a in zip(drawn, given, strict=True))
    return f"\n\ndef get_inputs():\n    return [\n{lines}    ]\n\n\ndef get_init_inputs():\n    return []\n"


def _values_text(drawing: Drawing) -> str:
    if not drawing.packed:
        return ""
    lines = "".join(f'    {name!r}: "{text}",\n' for name, text in drawing.packed.items())
    return f"\n\n# bytes in C order, compressed\n_VALUES = {{\n{lines}}}\n"
