"""The contract of a `ModelNew`: how it is made and called. The judge finds it in the reference; a runner keeps it.

Arguments and results are values of Python, as nested as the reference's: each has a JSON form of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ridgeline.tools.records.codec import Json, JsonForm, Record

# ----------------------------------------------------------------------------------------------------------- arguments


class Argument(JsonForm):
    """An argument of `forward`: one of the four below."""

    __slots__ = ()

    @classmethod
    def from_json(cls, data: Json) -> Argument:
        match data:
            case int() if not isinstance(data, bool):
                return TensorArgument(index=data)
            case {"value": str(source)}:
                return LiteralArgument(source=source)
            case {"list": list(parts)}:
                return SequenceArgument(is_tuple=False, parts=tuple(map(Argument.from_json, parts)))
            case {"tuple": list(parts)}:
                return SequenceArgument(is_tuple=True, parts=tuple(map(Argument.from_json, parts)))
            case {"dict": list(entries)}:
                return DictArgument(entries=tuple(map(_entry, entries)))
        raise ValueError(f"no argument of a module: {data!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorArgument(Argument):
    """One of the reference's input tensors."""

    index: int  # among the input tensors

    def to_json(self) -> Json:
        return self.index


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralArgument(Argument):
    """A number, a text or None, as a Python literal."""

    source: str

    def to_json(self) -> Json:
        return {"value": self.source}


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceArgument(Argument):
    """A list or a tuple."""

    is_tuple: bool
    parts: tuple[Argument, ...]

    def to_json(self) -> Json:
        return {"tuple" if self.is_tuple else "list": [part.to_json() for part in self.parts]}


@dataclass(frozen=True, slots=True, kw_only=True)
class DictArgument(Argument):
    """A dict; its keys are Python literals."""

    entries: tuple[tuple[str, Argument], ...]

    def to_json(self) -> Json:
        return {"dict": [[key, part.to_json()] for key, part in self.entries]}


def _entry(data: Json) -> tuple[str, Argument]:
    match data:
        case [str(key), part]:
            return key, Argument.from_json(part)
    raise ValueError(f"no entry of a dict: {data!r}")


# ------------------------------------------------------------------------------------------------------------- results


class ResultForm(JsonForm):
    """The structure of what `forward` returns: one of the four below."""

    __slots__ = ()

    @classmethod
    def from_json(cls, data: Json) -> ResultForm:
        match data:
            case "tensor":
                return TensorResult()
            case "other":
                return OtherResult()
            case list(parts):
                return SequenceResult(parts=tuple(map(ResultForm.from_json, parts)))
            case dict(entries):
                return DictResult(entries=tuple((key, ResultForm.from_json(part)) for key, part in entries.items()))
        raise ValueError(f"no form of a module's result: {data!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorResult(ResultForm):
    """A tensor: an output."""

    def to_json(self) -> Json:
        return "tensor"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherResult(ResultForm):
    """A value without tensors, which is not compared."""

    def to_json(self) -> Json:
        return "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceResult(ResultForm):
    """A list or a tuple: either may stand for the other."""

    parts: tuple[ResultForm, ...]

    def to_json(self) -> Json:
        return [part.to_json() for part in self.parts]


@dataclass(frozen=True, slots=True, kw_only=True)
class DictResult(ResultForm):
    """A dict; its keys are the texts of the reference's."""

    entries: tuple[tuple[str, ResultForm], ...]

    def to_json(self) -> Json:
        return {key: part.to_json() for key, part in self.entries}


# ----------------------------------------------------------------------------------------------------------- contracts


@dataclass(frozen=True, slots=True, kw_only=True)
class CallForm(Record):
    """The form of one call of the reference: what a program needs that calls a kernel as it calls the reference.

    A number among the arguments is a place for numbers of its type.
    """

    names: tuple[str, ...]  # of forward's positional arguments, of those that get_inputs() gives
    arguments: tuple[Argument, ...]
    result: Argument  # tensors by their index among the outputs
    written: tuple[int, ...] = ()  # the input tensors that forward writes


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleCall(Record):
    """The making, calling and reading of a `ModelNew`, beside its state."""

    init: str  # the list of the constructor's arguments, as a Python literal
    first_values: dict[str, str]  # by name in the reference's state_dict: the fingerprint under the public seed
    arguments: tuple[Argument, ...]
    form: ResultForm
    copied: tuple[int, ...] = ()  # the input tensors that the reference writes: each call gets its own copies
    appended: tuple[int, ...] = ()  # of these, those whose copies are outputs too, after `forward`'s own


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleContract(ModuleCall):
    """The making, calling and reading of a `ModelNew` as the judge describes them."""

    state: dict[str, str]  # by name in the reference's state_dict: the parameter's or buffer's own name

    def setup(self, source: str, tensors: Sequence[str]) -> ModuleSetup:
        """Return what a runner is told of the file `source`; `tensors` are the reference's names of the pointers."""
        return ModuleSetup(
            init=self.init,
            first_values=self.first_values,
            arguments=self.arguments,
            form=self.form,
            copied=self.copied,
            appended=self.appended,
            state={name: tensors.index(own_name) for name, own_name in self.state.items()},
            source=source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSetup(ModuleCall):
    """The making, calling and reading of a `ModelNew` as a runner is told them, with the file and its weights' places."""

    state: dict[str, int]  # by name in the reference's state_dict: which pointer holds it
    source: str
