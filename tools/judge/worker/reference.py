"""The user's reference in KernelBench form, loaded and described.

The reference is trusted code of the user's own; what can be wrong with it is a ProblemError of one line.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.hang_limit import HangLimit
from ridgeline.tools.judge.worker.call_form import (
    Scalar,
    Tensors,
    argument_names,
    c_name,
    expect_readable,
    filled,
    flat_outputs,
    scalars_in,
    template_of,
    tensor_spec,
    unique_name,
)
from ridgeline.tools.judge.worker.constant_results import ConstantResults, placed_parts
from ridgeline.tools.judge.worker.contract import (
    Written,
    call_form,
    find_written,
    module_contract,
    overlapping,
    refuse_cycles,
    tensors_in,
    without_side_effects,
)
from ridgeline.tools.judge.worker.model_copy import copied
from ridgeline.tools.judge.worker.patience import Patience, TakesTooLongError
from ridgeline.tools.judge.worker.regions import torch_dtype
from ridgeline.tools.judge.worker.user_code import (
    attribute,
    is_out_of_memory,
    is_refusal,
    load_reference,
    named_line,
    run_own,
)
from ridgeline.tools.modelnew.file import PUBLIC_SEED
from ridgeline.tools.modelnew.tensor_bits import equal_bits
from ridgeline.tools.records.module_contract import CallForm, ModuleContract
from ridgeline.tools.records.problem import WRITTEN, ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role

T = TypeVar("T")

_OWN, _DOUBLE = "own type", "float64"


class Reference:
    """The reference's model in eval mode, its signature, and ways to call it on flat tuples of input tensors."""

    def __init__(self, source: str, device: str = "cpu", *, limit: HangLimit | None = None) -> None:
        """Run the module and its parts. A part that takes longer than `limit` ends this process.

        `device` is as torch names it: "cpu" or "cuda".
        """
        self.source = source
        self.device = device
        self._limit = limit or HangLimit()
        self.patience = Patience()
        self.constant_results = ConstantResults()
        self._module = self._own("module", lambda: load_reference(source))
        self.model = self._make_model()
        self._place_model()
        self._arguments: list[Any] = []
        self.scalars: list[Scalar] = []  # as `get_inputs()` gives them, in the order of the signature
        taken: set[str] = set()
        specs = self._describe_inputs(self._get_inputs(0), taken)
        self._written, self._result = self._find_written(self.draw_inputs(0))
        specs += self._describe_state(taken)
        outputs = self.run(self.draw_inputs(0))
        self.shared_outputs = overlapping(outputs)
        specs += self._describe_outputs(outputs, taken, specs)
        self.signature = Signature(args=tuple(specs))
        self.keeps_own_type = False  # float64 would compute something else
        self._has_doubled = False
        self._double: torch.nn.Module | None = None

    # -------------------------------------------------------------------------------------------------- description

    def _make_model(self) -> torch.nn.Module:
        init = self._own("get_init_inputs", attribute(self._module, "get_init_inputs"))
        if not isinstance(init, list | tuple):
            raise BadReferenceError.of_text(f"get_init_inputs() must return a list, got {type(init).__name__}")
        self._init = init
        torch.manual_seed(PUBLIC_SEED)
        model = self._own("Model()", lambda: attribute(self._module, "Model")(*init))
        if not isinstance(model, torch.nn.Module):
            raise BadReferenceError.of_text(f"Model() must give a torch.nn.Module, got {type(model).__name__}")
        lazy = [n for n, t in model.named_parameters() if isinstance(t, torch.nn.parameter.UninitializedParameter)]
        if lazy:
            raise BadReferenceError.of_text(f"parameter {lazy[0]} has no shape yet: give its lazy module a size")
        self.frozen = frozenset(n for n, p in model.named_parameters() if not p.requires_grad)
        """The parameters that no training changes."""
        return model.eval().requires_grad_(False)

    def _place_model(self) -> None:
        self._own("Model().to(device)", lambda: self.model.to(self.device))

    def _describe_inputs(self, values: Sequence[Any], taken: set[str]) -> list[ArgSpec]:
        names = argument_names(self.model.forward)
        specs: list[ArgSpec] = []
        for i, value in enumerate(values):
            name = names[i] if i < len(names) else f"arg_{i}"
            self.scalars += scalars_in(value)
            self._arguments.append(template_of(value, c_name(name), name, specs, taken))
        if not any(s.kind is ArgKind.TENSOR for s in specs):
            raise BadReferenceError.of_text("get_inputs() gives no tensor: a kernel needs at least one")
        return specs

    def _find_written(self, inputs: Tensors) -> tuple[Written, Any]:
        """Return which inputs `forward` writes, and its result; from now on `forward` writes copies of them."""
        arguments = self.arguments(inputs)
        written, result = self._own("forward()", lambda: find_written(arguments, self.model, self._is_same))
        without_side_effects(self.model, written)
        return written, result

    def _is_same(self, copy: torch.Tensor, was: torch.Tensor) -> bool:
        return equal_bits(copy, was)

    def _describe_state(self, taken: set[str]) -> list[ArgSpec]:
        specs: list[ArgSpec] = []
        for role, named in ((Role.PARAMETER, self.model.named_parameters()), (Role.BUFFER, self.model.named_buffers())):
            for name, tensor in named:
                expect_readable(tensor, f"{role} {name}")
                specs.append(tensor_spec(unique_name(c_name(name), taken), role, tensor, name, keep_strides=False))
        return specs

    def _describe_outputs(self, outputs: Tensors, taken: set[str], specs: Sequence[ArgSpec]) -> list[ArgSpec]:
        given = [s.name for s in specs if s.role is Role.INPUT and s.kind is ArgKind.TENSOR]
        written = [f"{given[i]}{WRITTEN}" for i in self._written.appended]
        n = len(outputs) - len(written)
        names = [*(["out"] if n == 1 else [f"out_{i}" for i in range(n)]), *written]
        places = [place for place, part in placed_parts(self._result) if isinstance(part, torch.Tensor)]
        is_plain = all(place in ("", f"[{i}]") for i, place in enumerate(places))  # as the names tell it
        sources = [*(names[:n] if is_plain else [f"result{place}" for place in places]), *written]
        return [
            tensor_spec(unique_name(name, taken), Role.OUTPUT, output, source, keep_strides=False)
            for name, output, source in zip(names, outputs, sources, strict=True)
        ]

    # ------------------------------------------------------------------------------------------------------ running

    def _get_inputs(self, rng_seed: int) -> list[Any]:
        _seed(rng_seed, self.device)
        draw = attribute(self._module, "get_inputs")
        with torch.device(self.device):  # drawn on the device, where the reference does not say otherwise
            values = self._own("get_inputs()", draw)
        if not isinstance(values, list | tuple):
            raise BadReferenceError.of_text(f"get_inputs() must return a list, got {type(values).__name__}")
        refuse_cycles(values, "get_inputs()")
        return list(values)

    def draw_inputs(self, rng_seed: int) -> Tensors:
        """Return the input tensors of one call of `get_inputs()`, lists flattened."""
        return tuple(t.detach().to(self.device) for t in tensors_in(self._get_inputs(rng_seed)))

    def arguments(self, inputs: Tensors) -> list[Any]:
        """Return the arguments of `forward`, with these tensors in their places."""
        return [filled(a, inputs, self.scalars) for a in self._arguments]

    @contextlib.contextmanager
    def with_scalars(self, scalars: Sequence[Scalar]) -> Iterator[None]:
        """Call the reference with these scalars meanwhile."""
        given, self.scalars = self.scalars, list(scalars)
        try:
            yield
        finally:
            self.scalars = given

    def run(self, inputs: Tensors) -> Tensors:
        """Call the reference as the user wrote it."""
        return self._own("forward()", lambda: self._called(self.model, inputs))

    def _called(self, model: torch.nn.Module, inputs: Tensors) -> Tensors:
        kind = _OWN if model is self.model else _DOUBLE
        with self.patience.applied(kind):
            result = model(*self.arguments(inputs))
            outputs = flat_outputs(result)
        # its own result, where `without_side_effects` has `forward` return copies of inputs too
        self.constant_results.meet(kind, result[0] if self._written.copied else result)
        return outputs

    def run_double(self, inputs: Tensors, parameters: dict[str, torch.Tensor]) -> Tensors:
        """Call the reference in float64 with these parameters; in its own type where it refuses float64."""
        outputs = self.in_double(inputs, parameters)
        return self.in_own_type(inputs, parameters) if outputs is None else outputs

    def in_double(self, inputs: Tensors, parameters: dict[str, torch.Tensor]) -> Tensors | None:
        """Call the reference in float64 with these parameters; None where it refuses float64.

        That may be an operation without float64, a type written into `forward`, or a view of bits, of which float64 has
        twice as many.

        Raises:
            BadReferenceError: these contents alone are refused, as by an assertion.
        """
        if self.keeps_own_type:
            return None
        model = self._double_model()
        for name, value in parameters.items():
            _set_tensor(model, name, value.double() if value.is_floating_point() else value)
        doubled = tuple(t.double() if t.is_floating_point() else t for t in inputs)
        try:
            with self._limit.applied():
                outputs = self._called(model, doubled)
        except Exception as error:
            if is_out_of_memory(error) or isinstance(error, TakesTooLongError):
                raise  # expected outputs of the reference's own type would be taken for those of float64
            if is_refusal(error) and self._has_doubled:
                raise BadReferenceError.of_text(f"forward() in float64: {named_line(error)}") from error
            return None
        self._has_doubled = True
        return outputs if self._has_its_form(outputs) else None

    def in_own_type(self, inputs: Tensors, parameters: dict[str, torch.Tensor]) -> Tensors:
        """Call the reference as the user wrote it, with these parameters; numbers of another type are made its own."""
        own = tuple(t.to(dtype) for t, dtype in zip(inputs, self._input_types, strict=True))
        with self._holding(parameters):
            return self.run(own)

    @property
    def _input_types(self) -> tuple[torch.dtype, ...]:
        return tuple(torch_dtype(a.dtype) for a in self.signature.with_role(Role.INPUT) if a.kind is ArgKind.TENSOR)

    def _has_its_form(self, outputs: Tensors) -> bool:
        """Return whether outputs in float64 have the shapes of the reference's own, and are numbers where these are."""
        specs = self.signature.with_role(Role.OUTPUT)
        return len(specs) == len(outputs) and all(
            tuple(output.shape) == spec.shape
            and output.is_floating_point() is torch_dtype(spec.dtype).is_floating_point
            for spec, output in zip(specs, outputs, strict=True)
        )

    @contextlib.contextmanager
    def _holding(self, parameters: dict[str, torch.Tensor]) -> Iterator[None]:
        """Let the model have these parameters meanwhile; the judge's memory may hold others."""
        own = {name: tensor.data for name, tensor in self.named_tensors().items() if name in parameters}
        try:
            for name, tensor in own.items():
                _set_tensor(self.model, name, parameters[name].to(tensor.dtype))
            yield
        finally:
            for name, tensor in own.items():
                _set_tensor(self.model, name, tensor)

    def _double_model(self) -> torch.nn.Module:
        if self._double is None:
            self._double = copied(self.model).double()
            for module in self._double.modules():
                for name, value in vars(module).items():
                    if isinstance(value, torch.Tensor) and value.is_floating_point():
                        setattr(module, name, value.double())  # a plain attribute, which .double() does not see
        return self._double

    @property
    def input_names(self) -> tuple[str, ...]:
        """Return the names of the input tensors, in the order of `draw_inputs`."""
        return tuple(a.name for a in self.signature.with_role(Role.INPUT) if a.kind is ArgKind.TENSOR)

    def named_tensors(self) -> dict[str, torch.Tensor]:
        """Return parameters and buffers by their names in the model."""
        return dict(self.model.named_parameters()) | dict(self.model.named_buffers())

    def contract(self, *, is_needed: bool) -> ModuleContract | None:
        """Return how a `ModelNew` is made and called, to be asked before `bind`; None if nobody needs it and none can be told.

        Raises:
            BadReferenceError: an argument of the constructor cannot be sent.
        """
        arguments = self.arguments(self.draw_inputs(0))
        try:
            return module_contract(self.model, self._init, arguments, self._result, self._written)
        except BadReferenceError:
            if is_needed:
                raise
            return None

    def call_form(self) -> CallForm:
        """Return how a program calls the reference, and the structure of what it gets.

        Raises:
            BadReferenceError: an argument or a part of the result has no literal form.
        """
        arguments = self.arguments(self.draw_inputs(0))
        return call_form(argument_names(self.model.forward), arguments, self._result, self._written)

    def loaded_names(self) -> frozenset[str]:
        """Return the parameters and buffers that `load_state_dict` sets: all but buffers that are not persistent."""
        kept = {id(t) for t in self.model.state_dict(keep_vars=True).values()}
        return frozenset(n for n, t in self.named_tensors().items() if id(t) in kept)

    def _own(self, what: str, call: Callable[[], T]) -> T:
        with self._limit.applied():
            return run_own(what, call)

    def bind(self, views: dict[str, torch.Tensor]) -> None:
        """Move the model's parameters and buffers into the given memory, with their values."""
        for name, tensor in self.named_tensors().items():
            views[name].copy_(tensor)
            _set_tensor(self.model, name, views[name])


def _seed(rng_seed: int, device: str) -> None:
    """Seed what `get_inputs` may draw from.

    As torch.manual_seed does, but without a queued call, and a formatted stack, for each kind of device that nobody uses:
    on a CPU 0.4 ms a draw.
    """
    torch.default_generator.manual_seed(rng_seed)
    if torch.device(device).type == "cuda":
        torch.cuda.manual_seed_all(rng_seed)
    random.seed(rng_seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(rng_seed % (1 << 32))


def _set_tensor(model: torch.nn.Module, name: str, value: torch.Tensor) -> None:
    path, _, leaf = name.rpartition(".")
    owner = model.get_submodule(path)
    if leaf in owner._parameters:
        parameter = owner._parameters[leaf]
        assert parameter is not None
        parameter.data = value
    else:
        owner._buffers[leaf] = value
