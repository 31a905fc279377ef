"""The two kinds of candidate in a Python runner: an extension with `forward`, and a file with `ModelNew`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from ridgeline.tools.modelnew.file import NoModel, load_file, make_model, told, values
from ridgeline.tools.modelnew.weights import WeightsDiffer, expect_same_form, reference_names
from ridgeline.tools.records.module_contract import (
    Argument,
    DictArgument,
    LiteralArgument,
    ModuleSetup,
    SequenceArgument,
    SequenceResult,
    TensorArgument,
    TensorResult,
)
from ridgeline.tools.records.vocabulary import TORCH_MODULE, Role
from ridgeline.tools.runner.wire import TRITON_KERNELS, RunnerFailureCode
from ridgeline.tools.runner.worker.checks import GlobalState, expect_defined, flat_like
from ridgeline.tools.runner.worker.device import RunFailed
from ridgeline.tools.runner.worker.extensions import ExtensionMissing, Loader, load_extension
from ridgeline.tools.runner.worker.setup import MappedSetup, Pointer
from ridgeline.tools.runner.worker.triton_cache import unpack, use_cache

Call = Callable[[], Any]


class LoadedCandidate(Protocol):
    """Something loaded, to be called on the judge's sets."""

    @property
    def calls(self) -> Sequence[Call]:
        """Return the call on each set."""
        ...

    def outputs(self, result: Any) -> list[Any]:
        """Return the output tensors of a result, in the reference's order.

        Raises:
            RunFailed: the result has another structure.
        """
        ...

    def take_scalars(self, scalars: Sequence[float]) -> None:
        """Use these scalars from the next call on.

        Raises:
            RunFailed: this form of candidate has none to take.
        """
        ...

    def with_other_weights(self, set_index: int) -> Call | None:
        """Return a call of a second instance whose weights differ; None when there are no weights."""
        ...


class ExtensionCandidate:
    """Interface `torch`: a C++ function that takes inputs, scalars and parameters."""

    def __init__(self, setup: MappedSetup, state: GlobalState) -> None:
        """Load the extension.

        Raises:
            RunFailed: it does not load, or changes torch's state.
        """
        try:
            self._forward = load_extension(TORCH_MODULE, setup.library).forward
        except ImportError as error:
            raise RunFailed(RunnerFailureCode.LOAD_FAILED, str(error)) from error
        state.check("loading the library")
        self._values = setup.values
        self._n_outputs = len(setup.outputs)
        self._n_sets = setup.n_sets
        self.calls = self._bound()

    def _bound(self) -> list[Call]:
        return [functools.partial(self._forward, *self._arguments(i)) for i in range(self._n_sets)]

    def take_scalars(self, scalars: Sequence[float]) -> None:
        """Use these scalars from the next call on, each as the type that it had."""
        left = iter(scalars)
        self._values = [v if isinstance(v, Pointer) else type(v)(next(left)) for v in self._values]
        self.calls = self._bound()

    def _arguments(self, set_index: int) -> list[Any]:
        return [value.views[set_index] if isinstance(value, Pointer) else value for value in self._values]

    def outputs(self, result: Any) -> list[Any]:
        """Return the output tensors of a result: one tensor, or as many as the reference gives."""
        if type(result) is torch.Tensor and self._n_outputs == 1:
            return [result]
        form = SequenceResult(parts=(TensorResult(),) * self._n_outputs)
        is_one = self._n_outputs == 1 and type(result) not in (tuple, list)
        try:
            return flat_like(result, TensorResult() if is_one else form)
        except RunFailed:
            expect_defined(result)
            raise

    def with_other_weights(self, set_index: int) -> Call | None:
        """Return a call with other parameters, as a second instance of the module would make it."""
        arguments = self._arguments(set_index)
        weights = [i for i, v in enumerate(self._values) if isinstance(v, Pointer) and _is_weight(v)]
        for i in weights:
            arguments[i] = _altered(arguments[i])
        return functools.partial(self._forward, *arguments) if weights else None


class ModuleCandidate:
    """Interface `module`: `ModelNew`, made from the public seed, whose parameters then lie in the judge's memory."""

    def __init__(self, setup: MappedSetup, module: ModuleSetup, state: GlobalState) -> None:
        """Load the file, make the module and give it the judge's weights.

        Raises:
            RunFailed: it does not load, its parameters are not the reference's, or it changes torch's state.
        """
        self._module = module
        self._setup = setup
        _unpack(setup)
        try:
            self._file = load_file(self._module.source)
            state.check("loading the file")
            self._model = self._made(self._weights())
            state.check("making ModelNew")
        except RunFailed:
            raise
        except (NoModel, ExtensionMissing) as error:
            raise RunFailed(RunnerFailureCode.LOAD_FAILED, str(error)) from error
        except Exception as error:
            raise RunFailed(RunnerFailureCode.LOAD_FAILED, told(error)) from error
        self.calls = [self._call(self._model, i) for i in range(setup.n_sets)]

    def take_scalars(self, scalars: Sequence[float]) -> None:
        """Refuse: a module's scalars are part of its arguments' form."""
        raise RunFailed(RunnerFailureCode.PROTOCOL, f"a module takes no {len(scalars)} other scalars")

    def outputs(self, result: Any) -> list[Any]:
        """Return the output tensors of a result, and of the inputs that the reference writes what became of them."""
        returned, copies = result if self._module.copied else (result, [])
        after = dict(zip(self._module.copied, copies, strict=True))
        tensors = flat_like(returned, self._module.form)
        return [*tensors, *(after[i] for i in self._module.appended)]

    def with_other_weights(self, set_index: int) -> Call | None:
        """Return a call of a second instance, made like the first, with other parameters."""
        weights = self._weights()
        names = [n for n, i in self._module.state.items() if _is_weight(self._setup.pointers[i])]
        if not names:
            return None
        try:
            other = self._made(weights | {name: _altered(weights[name]) for name in names})
        except RunFailed:
            raise
        except Exception as error:
            raise RunFailed(RunnerFailureCode.CRASHED, f"a second instance of ModelNew: {told(error)}") from error
        return self._call(other, set_index)

    def _weights(self) -> dict[str, torch.Tensor]:
        return {name: self._setup.pointers[i].views[0] for name, i in self._module.state.items()}

    def _made(self, weights: dict[str, torch.Tensor]) -> torch.nn.Module:
        model = make_model(self._file, self._module.init)
        try:
            names = reference_names(self._module.first_values, model)
            torch.nn.Module.to(model, self._setup.device.name)
            own = torch.nn.Module.state_dict(model)
            given = {name: weights[names[name]] if name in names else tensor for name, tensor in own.items()}
            expect_same_form(own, given)
        except WeightsDiffer as error:
            raise RunFailed(RunnerFailureCode.WEIGHTS_MISMATCH, str(error)) from error
        # assigned and not copied: the module then reads the judge's memory, which it cannot write
        torch.nn.Module.load_state_dict(model, given, strict=True, assign=True)
        model.requires_grad_(False)
        for name, tensor in torch.nn.Module.state_dict(model).items():
            if tensor.data_ptr() != given[name].data_ptr():
                raise RunFailed(
                    RunnerFailureCode.WEIGHTS_MISMATCH,
                    f"ModelNew replaces `{name}`, which load_state_dict has just set",
                )
        return model

    def _call(self, model: torch.nn.Module, set_index: int) -> Call:
        tensors = [views[set_index] for views in self._setup.inputs]
        arguments = [filled(argument, tensors) for argument in self._module.arguments]
        copied = self._module.copied
        if not copied:
            return functools.partial(model, *arguments)

        def call_on_copies() -> tuple[Any, list[torch.Tensor]]:
            given = list(tensors)
            for i in copied:
                given[i] = tensors[i].clone()
            result = model(*[filled(argument, given) for argument in self._module.arguments])
            return result, [given[i] for i in copied]

        return call_on_copies


class Nothing:
    """No candidate: calls that do nothing, by which the cost of a request is measured."""

    def __init__(self, setup: MappedSetup) -> None:
        """Make a call for each set, which returns the first set's output."""
        self._outputs = [views[0] for views in setup.outputs]
        result = self._outputs[0] if len(self._outputs) == 1 else tuple(self._outputs)
        self.calls: list[Call] = [itertools.repeat(result).__next__] * setup.n_sets

    def outputs(self, result: Any) -> list[Any]:
        """Return the first set's outputs."""
        return self._outputs

    def take_scalars(self, scalars: Sequence[float]) -> None:
        """Take them for nothing."""

    def with_other_weights(self, set_index: int) -> Call | None:
        """Return None: there are no weights."""
        return None


def load_candidate(setup: MappedSetup, state: GlobalState) -> LoadedCandidate:
    """Return the candidate that the set-up names.

    Raises:
        RunFailed: it does not load.
    """
    if setup.does_nothing:
        return Nothing(setup)
    if setup.module is None:
        return ExtensionCandidate(setup, state)
    return ModuleCandidate(setup, setup.module, state)


def _unpack(setup: MappedSetup) -> None:
    """Give the file what its builder made, in this runner's own folder; the reference has no builder."""
    library = Path(setup.library)
    if not library.is_file():
        return
    Loader(library, library.parent / "extensions").install()
    kernels = library.parent / "triton"
    use_cache(kernels)
    if (library.parent / TRITON_KERNELS).exists():
        unpack(library.parent / TRITON_KERNELS, kernels)


def filled(argument: Argument, tensors: Sequence[torch.Tensor]) -> object:
    """Return the value of an argument of `forward`, with the tensors in their places."""
    match argument:
        case TensorArgument(index=index):
            return tensors[index]
        case LiteralArgument(source=source):
            return values(source)
        case DictArgument(entries=entries):
            return {values(key): filled(part, tensors) for key, part in entries}
        case SequenceArgument(is_tuple=is_tuple, parts=parts):
            filled_parts = [filled(part, tensors) for part in parts]
            return tuple(filled_parts) if is_tuple else filled_parts
    raise TypeError(f"no argument of a module: {argument}")


def _is_weight(pointer: Pointer) -> bool:
    return pointer.role is Role.PARAMETER and pointer.views[0].is_floating_point() and pointer.views[0].numel() > 0


def _altered(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).copy_(
        tensor * -0.75 + 0.5
    )
