"""The generated `problem.h`: the exact signature of `run`, every shape and stride as a constant, the types.

The compiler includes it in front of every candidate, so a `run` of another signature is a compile error. It defines the
one entry point that a host calls. `docs/interface.md` describes the header for those who write kernels.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Protocol

from ridgeline.tools.build.dialect import Dialect
from ridgeline.tools.build.stages import WITHOUT_CLOCKS
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role

ALIGNMENT_BYTES = 64
"""Every tensor starts at a multiple of these bytes: a cache line, and the widest CPU vector."""

C_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "bool": "bool",
}
"""Type of the elements that a tensor's pointer points to in a kernel, by dtype."""
SCALAR_TYPES = {"float64": "double", "int64": "int64_t", "bool": "bool"}
"""Type of a scalar in a kernel, by dtype."""
_INTEGER_TYPES = "#include <stddef.h>\n#include <stdint.h>\n"
_ALIGNED = (
    f"\nconstexpr int64_t RIDGELINE_ALIGNMENT = {ALIGNMENT_BYTES};  // bytes, of every tensor and the workspace\n"
    "#define RIDGELINE_ALIGNED(pointer) "
    f"(static_cast<decltype(pointer)>(__builtin_assume_aligned((pointer), {ALIGNMENT_BYTES})))\n"
)
_CPP_WORDS = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await "
    "co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do "
    "double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast "
    "requires restrict return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while "
    "xor xor_eq"
)
_MACROS = "NULL EOF INFINITY NAN I linux unix errno assert stdin stdout stderr"
_TYPES = "size_t int8_t int16_t int32_t int64_t uint8_t torch std cudaStream_t dim3"
_OURS = "workspace stream fp16 bf16 run ridgeline_call workspace_bytes pointers scalars"
KEYWORDS = frozenset(_CPP_WORDS.split())
"""C++'s own words, which name nothing."""
_RESERVED_WORDS = KEYWORDS.union(f"{_MACROS} {_TYPES} {_OURS}".split())
MODULE_ENTRY = "class ModelNew(torch.nn.Module)"
"""Definition that a file of interface `module` must contain."""
_LARGEST_EXACT_INT = 2**53  # scalars reach the entry point as doubles


class Header(Protocol):
    """The texts about a problem that a candidate of one interface gets."""

    def text(self, signature: Signature, dialect: Dialect, *, with_clocks: bool = False) -> str:
        """Return `problem.h`, or what stands for it; `with_clocks` where RIDGELINE_STAGE is to take times.

        Raises:
            ProblemError: an argument's type has no C form, or two arguments would share a constant's name.
        """
        ...

    def entry(self, signature: Signature, dialect: Dialect) -> str:
        """Return in one line what a candidate has to define."""
        ...


class CHeader:
    """Constants, `run`'s prototype, and the entry point that calls it."""

    def text(self, signature: Signature, dialect: Dialect, *, with_clocks: bool = False) -> str:
        stages = dialect.stage_clocks() if with_clocks else WITHOUT_CLOCKS
        entry = _entry(signature, dialect, with_clocks=with_clocks)
        included, shapes = _c_includes(signature, dialect), _shapes(signature)
        return _guarded((included, *shapes, stages, _prototype(signature, dialect), entry))

    def entry(self, signature: Signature, dialect: Dialect) -> str:
        return f'extern "C" void run({", ".join(_run_parameters(signature, dialect))})'


class TorchHeader:
    """Constants, and `forward`'s prototype."""

    def text(self, signature: Signature, dialect: Dialect, *, with_clocks: bool = False) -> str:
        prototype = forward_prototype(signature) + ";\n"
        return _guarded((_torch_includes(dialect), *_shapes(signature), WITHOUT_CLOCKS, prototype))

    def entry(self, signature: Signature, dialect: Dialect) -> str:
        return forward_prototype(signature)


class ModuleHeader:
    """Comments of Python: the tensors that a `ModelNew` is given and has to hold and return."""

    def text(self, signature: Signature, dialect: Dialect, *, with_clocks: bool = False) -> str:
        lines = [f"# {MODULE_ENTRY}: the constructor's and forward's arguments are those of the reference's Model"]
        for arg in signature.args:
            name = arg.source or arg.name
            if arg.kind is ArgKind.TENSOR:
                lines.append(f"# {arg.role.value} {json.dumps(name)[1:-1]}: {arg.dtype} {_as_tuple(arg.shape)}")
            else:
                lines.append(f"# {arg.role.value} {json.dumps(name)[1:-1]}: {arg.value if arg.dtype else None}")
        return "\n".join(lines) + "\n"

    def entry(self, signature: Signature, dialect: Dialect) -> str:
        return MODULE_ENTRY


def forward_prototype(signature: Signature) -> str:
    """Return the C++ declaration of interface `torch`'s `forward`, without a semicolon."""
    outputs = len(signature.with_role(Role.OUTPUT))
    parameters = ", ".join(
        f"torch::Tensor {_parameter_name(arg)}"
        if arg.kind is ArgKind.TENSOR
        else f"{_scalar_type(arg)} {_parameter_name(arg)}"
        for arg in passed_arguments(signature)
        if arg.role is not Role.OUTPUT
    )
    result = "torch::Tensor" if outputs == 1 else "std::vector<torch::Tensor>"
    return f"{result} forward({parameters})"


def passed_arguments(signature: Signature) -> tuple[ArgSpec, ...]:
    """Return the arguments that `run` receives, in order: all but those that are None."""
    return tuple(arg for arg in signature.args if arg.kind is not ArgKind.NONE)


def _check_names(signature: Signature) -> None:
    seen: dict[str, str] = {}
    for arg in signature.args:
        other = seen.setdefault(arg.name.upper(), arg.name)
        if other != arg.name:
            raise ProblemError(f"reference: arguments {other!r} and {arg.name!r} differ only in case: rename one")
    for name in set(seen.values()) & _RESERVED_WORDS:
        if f"{name}_" in seen.values():
            raise ProblemError(
                f"reference: arguments {name!r} and '{name}_' would both be `{name}_` in C++: rename one"
            )


def _guarded(parts: Iterable[str]) -> str:
    body = "\n".join(part for part in parts if part)
    return f"#ifndef RIDGELINE_PROBLEM_H\n#define RIDGELINE_PROBLEM_H\n\n{body}\n#endif\n"


def _shapes(signature: Signature) -> tuple[str, str]:
    """Return the constants of every argument, and how many tensors each list holds."""
    _check_names(signature)
    return "\n".join(_constants(arg) for arg in signature.args), _list_counts(signature)


def _c_includes(signature: Signature, dialect: Dialect) -> str:
    used = {arg.dtype for arg in signature.args if arg.kind is ArgKind.TENSOR}
    return _INTEGER_TYPES + dialect.types(used) + _ALIGNED


def _torch_includes(dialect: Dialect) -> str:
    return f"{_INTEGER_TYPES}#include <torch/extension.h>\n#include <vector>\n{dialect.torch_includes}{_ALIGNED}"


def _constants(arg: ArgSpec) -> str:
    return _CONSTANTS[arg.kind](arg)


def _tensor_constants(arg: ArgSpec) -> str:
    name = arg.name.upper()
    values = {f"{name}_NDIM": len(arg.shape)}
    values |= {f"{name}_SHAPE_{i}": size for i, size in enumerate(arg.shape)}
    values |= {f"{name}_STRIDE_{i}": stride for i, stride in enumerate(arg.strides)}
    values[f"{name}_NUMEL"] = math.prod(arg.shape)
    title = f"// {arg.name}: {arg.role.value}{_origin(arg)}, {arg.dtype} {_as_tuple(arg.shape)}\n"
    return title + "".join(f"constexpr int64_t {key} = {value};\n" for key, value in values.items())


def _scalar_constants(arg: ArgSpec) -> str:
    title = f"// {arg.name}: scalar{_origin(arg)}; its nominal value, `run` gets the actual one\n"
    return title + f"constexpr {_scalar_type(arg)} {arg.name.upper()}_VALUE = {_literal(arg)};\n"


def _none_constants(arg: ArgSpec) -> str:
    return f"// {arg.name}: None, so `run` does not get it\nconstexpr bool {arg.name.upper()}_IS_NONE = true;\n"


_CONSTANTS: dict[ArgKind, Callable[[ArgSpec], str]] = {
    ArgKind.TENSOR: _tensor_constants,
    ArgKind.SCALAR: _scalar_constants,
    ArgKind.NONE: _none_constants,
}


def _origin(arg: ArgSpec) -> str:
    """Return the reference's own name for an argument, as JSON without quotes: no name can end the comment's line."""
    return f" `{json.dumps(arg.source)[1:-1]}`" if arg.source and arg.source != arg.name else ""


def _as_tuple(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"


def _literal(arg: ArgSpec) -> str:
    value = arg.value
    if value is None:
        raise ProblemError(f"reference: scalar argument {arg.name!r} has no value")
    if arg.dtype == "bool":
        return "true" if value else "false"
    if arg.dtype == "int64":
        return _integer_literal(arg.name, value)
    if math.isnan(value):
        return '__builtin_nan("")'
    if math.isinf(value):
        return "__builtin_inf()" if value > 0 else "-__builtin_inf()"
    return repr(float(value))


def _integer_literal(name: str, value: float) -> str:
    if abs(value) > _LARGEST_EXACT_INT:
        raise ProblemError(f"reference: integer argument {name!r} exceeds 2^53, which a kernel could not get exactly")
    return str(int(value))


def _scalar_type(arg: ArgSpec) -> str:
    if arg.dtype not in SCALAR_TYPES:
        raise ProblemError(f"reference: scalar argument {arg.name!r} is a {arg.dtype}: use a float, an int or a bool")
    return SCALAR_TYPES[arg.dtype]


def _c_type(arg: ArgSpec) -> str:
    if arg.dtype not in C_TYPES:
        known = ", ".join(C_TYPES)
        raise ProblemError(f"reference: tensor {arg.name!r} is {arg.dtype}, which has no C form (known: {known})")
    return C_TYPES[arg.dtype]


def _list_counts(signature: Signature) -> str:
    """Return one `XS_COUNT` for each list or tuple that was flattened into xs_0, xs_1, and so on."""
    counts: dict[str, int] = {}
    for arg in signature.args:
        element = re.fullmatch(r"(.+)_(\d+)", arg.name)
        is_listed = arg.role is Role.OUTPUT or re.search(r"\[\d+\]$", arg.source)
        if element and is_listed:
            counts[element[1]] = counts.get(element[1], 0) + 1
    return "".join(f"constexpr int64_t {name.upper()}_COUNT = {count};\n" for name, count in counts.items())


def _parameter_name(arg: ArgSpec) -> str:
    return f"{arg.name}_" if arg.name in _RESERVED_WORDS else arg.name


def _parameter(arg: ArgSpec) -> str:
    if arg.kind is ArgKind.SCALAR:
        return f"{_scalar_type(arg)} {_parameter_name(arg)}"
    const = "" if arg.role is Role.OUTPUT else "const "
    return f"{const}{_c_type(arg)}* __restrict__ {_parameter_name(arg)}"


def _run_parameters(signature: Signature, dialect: Dialect) -> list[str]:
    parameters = (_parameter(arg) for arg in passed_arguments(signature))
    return [*parameters, "void* workspace", *dialect.stream_parameters]


def _prototype(signature: Signature, dialect: Dialect) -> str:
    listed = ",\n    ".join(_run_parameters(signature, dialect))
    return (
        f'extern "C" __attribute__((visibility("default"))) void run(\n    {listed});\n\n'
        "// Optional: how many bytes of scratch memory `workspace` points to; without it, none.\n"
        'extern "C" __attribute__((visibility("default"))) size_t workspace_bytes();\n'
    )


def _entry(signature: Signature, dialect: Dialect, *, with_clocks: bool) -> str:
    """Return the definition of `ridgeline_call`, which unpacks the host's arrays into `run`'s arguments."""
    arguments: list[str] = []
    pointers = scalars = 0
    for arg in passed_arguments(signature):
        if arg.kind is ArgKind.SCALAR:
            arguments.append(f"static_cast<{_scalar_type(arg)}>(scalars[{scalars}])")
            scalars += 1
        else:
            arguments.append(f"static_cast<{_c_type(arg)}*>(pointers[{pointers}])")
            pointers += 1
    listed = ",\n      ".join((*arguments, "workspace", *dialect.stream_arguments))
    call = f"  run({listed});\n"
    if with_clocks:
        call = f"  ridgeline_stages::begin_call(stream);\n{call}  ridgeline_stages::end_call();\n"
    return (
        "// What the host calls: 0, or the number of the CUDA error that `run` left behind.\n"
        'extern "C" __attribute__((visibility("default"))) int ridgeline_call(\n'
        "    [[maybe_unused]] void* const* pointers, [[maybe_unused]] const double* scalars, void* workspace,\n"
        f"    [[maybe_unused]] void* stream) {{\n{call}  return {dialect.call_result};\n}}\n" + dialect.error_text
    )
