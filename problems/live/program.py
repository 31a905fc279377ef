"""A live module as torch's exported program: what of it can be a problem, and why not."""

from __future__ import annotations

import contextlib
import io
import keyword
import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from ridgeline.problems.files import as_words
from ridgeline.problems.live.unchanged import ChangesOwn, unchanged
from ridgeline.problems.live.users_line import place_in, place_of
from ridgeline.tools.errors import ProblemError, one_line

Number = float | int | bool
Value = torch.Tensor | Number | None

DTYPES = frozenset(
    {
        *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.bool),
        *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8),
    }
)
"""The types that a kernel can read, as the judge has them."""
_LONGEST_REASON = 300
_UNBOUND = "missing a required "
"""Python's words for an argument that a call leaves out, when torch binds the example to `forward`'s names."""
_STRANGE_RESULT = re.compile(r"^Found <class '[^']+'> in output, which is not a known type")
"""Torch's words for a part of a result that an exported program cannot give; where it lies, only the result tells."""
_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


class NotExportable(ProblemError):
    """The module has no form as a reference; the message is one line."""


class StrangeResult(NotExportable):
    """A part of the module's result is nothing that an exported program can give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of `forward`, as the caller's example has it."""

    name: str
    value: Value
    is_fixed: bool = False  # a number that the program holds by value, or None


def arguments(module: torch.nn.Module, example: Sequence[Any]) -> tuple[Argument, ...]:
    """Return the arguments by the names that `forward` has for them.

    Raises:
        ProblemError: one that is no tensor, number or None, or a tensor that a kernel cannot read.
    """
    names = _names(module, len(example))
    for name, value in zip(names, example, strict=True):
        if isinstance(value, torch.Tensor):
            check_tensor(f"input {name}", value)
        elif value is not None and not isinstance(value, Number):
            remedy = "pass its tensors as arguments of their own, in a module around this one"
            raise ProblemError(f"input {name}: must be a tensor, a number or None, got {as_words(value)}; {remedy}")
    if not any(isinstance(value, torch.Tensor) for value in example):
        raise ProblemError("example_inputs: hold no tensor: a kernel needs at least one")
    return tuple(
        Argument(name=n, value=v.detach() if isinstance(v, torch.Tensor) else v)
        for n, v in zip(names, example, strict=True)
    )


def check_tensors(module: torch.nn.Module) -> None:
    """Raise ProblemError for a parameter or buffer that a kernel cannot read."""
    for kind, named in (("parameter", module.named_parameters()), ("buffer", module.named_buffers())):
        for name, tensor in named:
            check_tensor(f"{kind} {name}", tensor)


def check_tensor(what: str, tensor: torch.Tensor) -> None:
    """Raise ProblemError for a tensor that is no dense memory of a type that kernels read."""
    strange = ""
    if isinstance(tensor, torch.nn.UninitializedParameter | torch.nn.UninitializedBuffer):
        strange = "not initialised; call the module once first"
    elif type(tensor) not in _PLAIN:
        strange = f"a {type(tensor).__name__}; make a plain tensor of it"
    elif tensor.is_nested or tensor.layout is not torch.strided or tensor.is_meta:
        strange = "nested, sparse or without values; make a dense tensor of it"
    elif tensor.dtype not in DTYPES:
        strange = f"{dtype_name(tensor.dtype)}; kernels read floating, whole and boolean numbers"
    if strange:
        raise ProblemError(f"{what}: is {strange}")


def _names(module: torch.nn.Module, count: int) -> list[str]:
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    try:
        named = [p.name for p in signature(module.forward).parameters.values() if p.kind in positional]
    except (TypeError, ValueError):  # a callable of some native library
        named = []
    names = [*named[:count], *(f"arg_{i}" for i in range(len(named), count))]
    return [f"{n}_" if n in ("self", "torch", "F") or keyword.iskeyword(n) else n for n in names]


def _lacking(module: torch.nn.Module, count: int) -> list[str]:
    """Return the arguments without a default that an example of this many leaves out."""
    alone = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    taken = [p for p in signature(module.forward).parameters.values() if p.kind not in alone]
    given = {p.name for p in [p for p in taken if p.kind is not Parameter.KEYWORD_ONLY][:count]}
    return [p.name for p in taken if p.default is Parameter.empty and p.name not in given]


@contextlib.contextmanager
def in_eval_mode(module: torch.nn.Module) -> Iterator[None]:
    """Have a module in eval mode meanwhile, without gradients; each part gets its own mode back."""
    modes = [(part, part.training) for part in module.modules()]
    was = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(was)  # a method of the user's own may undo what its `eval` did
        for part, mode in modes:
            part.training = mode


def exported(
    module: torch.nn.Module, given: Sequence[Argument], *, numbers_vary: bool
) -> tuple[torch.export.ExportedProgram, tuple[Argument, ...]]:
    """Return the program of a module in eval mode, and its arguments, those marked that it holds by value.

    With `numbers_vary`, a float stays an argument: as a tensor of no dimensions it is not written into the program, and
    still does not promote float32 operands.

    Raises:
        NotExportable: torch refuses, with its reason; or the program does what a reference may not. A StrangeResult where
            a part of the result is to blame.
    """
    varies = [numbers_vary and isinstance(a.value, float) for a in given]
    values = [
        torch.tensor(a.value, dtype=torch.float64) if is_number else a.value
        for a, is_number in zip(given, varies, strict=True)
    ]
    try:
        # torch prints what it had of a graph that it cannot finish, and logs the traceback of what it raises
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), _without_torchs_log():
            warnings.simplefilter("ignore")
            with unchanged(module):
                program = torch.export.export(module, tuple(values), strict=False)
    except ChangesOwn:
        raise
    except (Exception, SystemExit) as error:
        # torch.export raises some forty unrelated types, and what the module's own forward raises; many are long
        lacking = _lacking(module, len(given)) if isinstance(error, TypeError) and _UNBOUND in str(error) else []
        if lacking:
            raise NotExportable(
                f"example_inputs: lack {', '.join(lacking)}, which forward takes without a default; give every argument, "
                "in a module around this one where forward takes it by its name alone"
            ) from error
        kind = StrangeResult if _STRANGE_RESULT.search(str(error)) else NotExportable
        raise kind(f"the module cannot be exported: {_why(error)}") from error
    _check(program)
    is_fixed = [not (isinstance(a.value, torch.Tensor) or varies[i]) for i, a in enumerate(given)]
    marked = tuple(
        Argument(name=a.name, value=a.value, is_fixed=fixed) for a, fixed in zip(given, is_fixed, strict=True)
    )
    return program, marked


def _why(error: BaseException) -> str:
    """Return torch's reason with the module's own line; in words where its own are about symbols of the export."""
    place = place_of(error)
    if not isinstance(error, GuardOnDataDependentSymNode):
        return f"{named(error)}{place}"
    if "specialized integer" in str(error):  # of `range` and of a shape
        return f"a number or a shape that depends on values{place}"
    return f"control flow that depends on values{place}; in place of an if, torch.where takes both ways"


@contextlib.contextmanager
def _without_torchs_log() -> Iterator[None]:
    """Keep torch's log of this thread from where torch sends it, unless the user asked for it by TORCH_LOGS."""
    here = threading.get_ident()

    def is_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    is_asked_for = "TORCH_LOGS" in os.environ
    # torch gives several of its loggers a handler each
    names = [] if is_asked_for else [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "torch"]
    handlers = {handler for name in names for handler in logging.getLogger(name).handlers}
    for handler in handlers:
        handler.addFilter(is_elsewhere)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_elsewhere)


def _check(program: torch.export.ExportedProgram) -> None:
    objects = [s for s in program.graph_signature.input_specs if s.kind in (InputKind.CUSTOM_OBJ, InputKind.TOKEN)]
    if objects:
        raise NotExportable(f"the module cannot be exported: it holds {objects[0].target}, which is no tensor")
    changed = [s for s in program.graph_signature.output_specs if s.kind is not OutputKind.USER_OUTPUT]
    if changed:
        raise NotExportable(
            f"forward changes {changed[0].target} in eval mode: a reference's result may not depend on calls"
        )
    for node in program.graph.nodes:
        if _depends_on_values(node.meta.get("val")):
            raise NotExportable(
                f"forward makes a number or a shape of a tensor's values ({node.target}), which no kernel of fixed shapes "
                f"does{place_in(node.meta.get('stack_trace'))}"
            )


def _depends_on_values(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_depends_on_values, value))
    if isinstance(value, torch.Tensor):
        return any(not isinstance(n, int) for n in value.shape)
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def dtype_name(dtype: torch.dtype) -> str:
    """Return a type's name without the module: float32."""
    return str(dtype).removeprefix("torch.")


def named(error: BaseException) -> str:
    """Return an error of torch with its type, which some of them say all with, on one line."""
    words = f"{type(error).__name__}: {one_line(error)}"
    return words if len(words) <= _LONGEST_REASON else words[: _LONGEST_REASON - 1] + "…"
