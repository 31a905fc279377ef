"""A reference's contract beyond its signature: the inputs that it writes, and how a `ModelNew` is made and called."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.modelnew.weights import fingerprint
from ridgeline.tools.records.dtypes import spanned_elements
from ridgeline.tools.records.module_contract import (
    Argument,
    CallForm,
    DictArgument,
    DictResult,
    LiteralArgument,
    ModuleContract,
    OtherResult,
    ResultForm,
    SequenceArgument,
    SequenceResult,
    TensorArgument,
    TensorResult,
)

_PLAIN = "interface module takes numbers, text, None, and lists, tuples or dicts of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The input tensors that a reference writes, by their position among the input tensors."""

    copied: tuple[int, ...] = ()  # each call gets its own copy of these
    appended: tuple[int, ...] = ()  # the copies of these are outputs too: `forward` does not return them


def find_written(
    arguments: Sequence[Any], call: Callable[..., Any], is_same: Callable[[torch.Tensor, torch.Tensor], bool]
) -> tuple[Written, Any]:
    """Call the reference once on copies; return which of its input tensors it wrote, and its result.

    `is_same` compares a copy, after the call, with the tensor that it was copied from.

    Raises:
        BadReferenceError: the result holds itself.
    """
    given = tensors_in(list(arguments))
    everything = tuple(range(len(given)))
    copies: list[torch.Tensor] = []
    result = call(*[_with_copies(a, everything, iter(everything), copies) for a in arguments])
    copied = tuple(i for i, (copy, was) in enumerate(zip(copies, given, strict=True)) if not is_same(copy, was))
    refuse_cycles(result, "forward()")
    returned = {_place(t) for t in tensors_in(result)}
    return Written(copied=copied, appended=tuple(i for i in copied if _place(copies[i]) not in returned)), result


def without_side_effects(model: torch.nn.Module, written: Written) -> None:
    """Make `forward` write copies of the inputs that it would write, and return those copies after its own result."""
    if not written.copied:
        return
    base = type(model)

    def forward(self: torch.nn.Module, *arguments: Any) -> Any:
        copies: list[torch.Tensor] = []
        places = iter(range(len(tensors_in(list(arguments)))))
        result = base.forward(self, *[_with_copies(a, written.copied, places, copies) for a in arguments])
        after = dict(zip(written.copied, copies, strict=True))
        return (result, *(after[i] for i in written.appended))

    # a subclass and not an attribute: a copy of the model (the one in float64) then calls itself
    model.__class__ = type(base.__name__, (base,), {"forward": forward, "__module__": base.__module__})


def module_contract(
    model: torch.nn.Module, init: Sequence[Any], arguments: Sequence[Any], result: Any, written: Written
) -> ModuleContract:
    """Return how a runner makes a `ModelNew`, gives it weights, calls it and reads its result.

    The model's tensors must still have their values of the public seed.

    Raises:
        BadReferenceError: an argument of the constructor cannot be written as a literal.
    """
    named = dict(model.named_parameters()) | dict(model.named_buffers())
    sources = {id(tensor): name for name, tensor in named.items()}
    loaded = model.state_dict(keep_vars=True)
    state = {name: sources[id(tensor)] for name, tensor in loaded.items() if id(tensor) in sources}
    places = iter(range(len(tensors_in(list(arguments)))))
    return ModuleContract(
        init=_literal("get_init_inputs()", list(init)),
        state=state,
        first_values={name: fingerprint(loaded[name]) for name in state},
        arguments=tuple(_argument(a, places) for a in arguments),
        form=_result_form(result),
        copied=written.copied,
        appended=written.appended,
    )


def call_form(names: Sequence[str], arguments: Sequence[Any], result: Any, written: Written) -> CallForm:
    """Return how the reference is called, with its result's structure, containers kept as they are.

    Raises:
        BadReferenceError: an argument or a part of the result is no literal, or no plain container.
    """
    inputs, outputs = tensors_in(list(arguments)), tensors_in(result)
    for what, value in (("get_inputs()", list(arguments)), ("forward()", result)):
        if name := _other_container(value):
            raise BadReferenceError.of_text(f"{what} gives a {name}: plain lists, tuples and dicts alone")
    places = iter(range(len(inputs)))
    return CallForm(
        names=tuple(names[: len(arguments)]),
        arguments=tuple(_argument(a, places) for a in arguments),
        result=_argument(result, iter(range(len(outputs))), "forward()"),
        written=written.copied,
    )


def _other_container(value: Any) -> str:
    """Return the name of a type that is no plain container but derives from one, as a named tuple; "" for none."""
    if not isinstance(value, list | tuple | dict):
        return ""
    if type(value) not in (list, tuple, dict):
        return type(value).__name__
    parts = value.values() if isinstance(value, dict) else value
    return next((name for part in parts if (name := _other_container(part))), "")


def _result_form(result: Any) -> ResultForm:
    if isinstance(result, torch.Tensor):
        return TensorResult()
    if isinstance(result, dict):
        return DictResult(entries=tuple({str(key): _result_form(value) for key, value in result.items()}.items()))
    if isinstance(result, list | tuple):
        return SequenceResult(parts=tuple(map(_result_form, result)))
    return OtherResult()


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors of a value, lists, tuples and dicts flattened."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [t for v in value for t in tensors_in(v)]
    return []


def refuse_cycles(value: Any, what: str, above: tuple[int, ...] = ()) -> None:
    """Check that no list or dict of a value holds itself: it would be read without end.

    Args:
        value: what the reference gave.
        what: the function that returned it.
        above: the ids of what holds it.

    Raises:
        BadReferenceError: one does.
    """
    if not isinstance(value, list | tuple | dict):
        return
    if id(value) in above:
        raise BadReferenceError.of_text(f"{what} returns a {type(value).__name__} that holds itself")
    for part in value.values() if isinstance(value, dict) else value:
        refuse_cycles(part, what, (*above, id(value)))


def like(sequence: Any, parts: list[Any]) -> Any:
    """Return the parts as a sequence of the same type; a named tuple takes them one by one."""
    return type(sequence)(*parts) if hasattr(sequence, "_fields") else type(sequence)(parts)


def _with_copies(value: Any, copied: Sequence[int], places: Iterator[int], copies: list[torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        if next(places) not in copied:
            return value
        copies.append(value.clone())
        return copies[-1]
    if isinstance(value, list | tuple):
        return like(value, [_with_copies(v, copied, places, copies) for v in value])
    if isinstance(value, dict):
        return {k: _with_copies(v, copied, places, copies) for k, v in value.items()}
    return value


def overlapping(tensors: Sequence[torch.Tensor]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of these tensors, by number, that have memory in common."""
    spans = [_span(tensor) for tensor in tensors]
    return tuple(
        (i, j)
        for (i, (storage, first, end)), (j, other) in itertools.combinations(enumerate(spans), 2)
        if storage == other[0] and first < other[2] and other[1] < end
    )


def _span(tensor: torch.Tensor) -> tuple[int, int, int]:
    """Return the storage that a tensor lies in, by its identity, and the bytes of its first element and after its last."""
    storage, offset, shape, strides = _place(tensor)
    size = tensor.element_size()
    return storage, offset * size, (offset + spanned_elements(shape, strides)) * size


def _place(tensor: torch.Tensor) -> tuple[int, int, torch.Size, tuple[int, ...]]:
    """Return which part of which storage a tensor is, by the storage's identity: a fake tensor has no address."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_meta:
        return 0, 0, torch.Size(), ()  # one that is nested has no shape
    return tensor.untyped_storage()._cdata, int(tensor.storage_offset()), tensor.shape, tensor.stride()


def _argument(value: Any, places: Iterator[int], what: str = "get_inputs()") -> Argument:
    if isinstance(value, torch.Tensor):
        return TensorArgument(index=next(places))
    if isinstance(value, list | tuple):
        parts = tuple(_argument(v, places, what) for v in value)
        return SequenceArgument(is_tuple=not isinstance(value, list), parts=parts)
    if isinstance(value, dict):
        entries = tuple((_literal(what, k), _argument(v, places, what)) for k, v in value.items())
        return DictArgument(entries=entries)
    return LiteralArgument(source=_literal(what, value))


def _literal(what: str, value: Any) -> str:
    """Return a value as Python source that `ast.literal_eval` gives back."""
    text = _source(value)
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise BadReferenceError.of_text(f"{what} gives {text[:60]}: {_PLAIN}") from error
    return text


def _source(value: Any) -> str:
    """Return `repr`, but an infinity as a number too large for a double: it has no literal of its own."""
    if type(value) is float and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    if type(value) is list:
        return f"[{', '.join(_source(v) for v in value)}]"
    if type(value) is tuple:
        return f"({', '.join(map(_source, value))}{',' if len(value) == 1 else ''})"
    if type(value) is dict:
        return f"{{{', '.join(f'{_source(k)}: {_source(v)}' for k, v in value.items())}}}"
    return repr(value)
