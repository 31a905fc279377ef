"""The compiler's flags: a documented, fixed set for each kind of device, and the few that a source may add.

A source adds flags on lines of the form `// flags: -funroll-loops -ffp-contract=off`. Only the flags that are listed
here are taken; none of them can name a file, a library or a plugin.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind, Sanitizers

CPU_FLAGS = (
    "-std=c++20",
    "-O3",
    "-march=native",
    "-fopenmp",
    "-mprefer-vector-width=512",
    "-ffast-math",
    "-fno-finite-math-only",  # NaN and infinity stay defined: references produce them
    "-D__FAST_MATH__=1",  # glibc declares its vector math only under it; exp and erf loops are 15 x slower without
)
_TELL_TALES = ("__SANITIZE_ADDRESS__", "__SANITIZE_HWADDRESS__", "__SANITIZE_THREAD__", "__SANITIZE_UNDEFINED__")
"""The macros that GCC defines in a sanitizer's build alone: by them a source could leave out what it does when it is
timed. -O1 defines the same macros as -O3."""
_SANITIZER_FLAGS = (
    f"-fsanitize={Sanitizers.COMPILED}",
    "-fno-sanitize-recover=all",
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    *(f"-U{name}" for name in _TELL_TALES),
)
CPU_LINK_FLAGS = ("-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-z,now", "-Wl,--no-undefined", "-Wl,--build-id=none")
CUDA_FLAGS = ("-std=c++17", "-O3")
CUDA_LINK_FLAGS = (
    "-shared",
    "-Xcompiler=-fPIC,-fvisibility=hidden",
    "-Xlinker=-z,now",
    "-Xlinker=--no-undefined",
)
DIAGNOSTIC_FLAGS = (
    "-fdiagnostics-color=never",
    "-fdiagnostics-parseable-fixits",  # a line for a program, which no log shows: tools/build/fix_its.py
    "-fmax-errors=20",
    "-ftemplate-backtrace-limit=4",
    "-ftemplate-depth=256",
)
CUDA_DIAGNOSTIC_FLAGS = ("-Xptxas=-v",)  # registers, spills and shared memory, which the profiler reads in the log

_CPU_ALLOWED = (
    r"-O[123]",
    r"-f(no-)?(unroll-loops|peel-loops|unswitch-loops|prefetch-loop-arrays|split-loops|ivopts)",
    r"-f(no-)?tree-(vectorize|slp-vectorize|loop-vectorize|loop-distribution|loop-distribute-patterns)",
    r"-f(no-)?loop-(interchange|unroll-and-jam)",
    r"-f(no-)?(math-errno|trapping-math|signed-zeros|associative-math|reciprocal-math|rounding-math)",
    r"-f(no-)?(strict-aliasing|wrapv|omit-frame-pointer|inline-functions|ipa-cp-clone|schedule-insns|gcse)",
    r"-fno-fast-math",
    r"-ffp-contract=(off|on|fast)",
    r"-fvect-cost-model=(unlimited|dynamic|cheap|very-cheap)",
    r"-falign-(loops|functions|jumps|labels)(=\d{1,4})?",
    r"-mprefer-vector-width=(128|256|512)",
    r"-m(no-)?vzeroupper",
    r"-mtune=native",
)
_CUDA_ALLOWED = (
    r"-O[123]",
    r"--?use_fast_math",
    r"--?(ftz|prec-div|prec-sqrt|fmad)=(true|false)",
    r"--?maxrregcount=\d{1,3}",
    r"--?extra-device-vectorization",
    r"--?expt-(relaxed-constexpr|extended-lambda)",
    r"--?extended-lambda",
    r"--?restrict",
    r"-Xptxas=(-O[123]|-dlcm=(ca|cg)|-dscm=(wb|cg)|--allow-expensive-optimizations=(true|false))",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeviceFlags:
    """The flags for one kind of device."""

    base: tuple[str, ...]
    link: tuple[str, ...]
    no_undefined: str  # of `link`: every symbol has to be defined
    diagnostics: tuple[str, ...]
    profile: tuple[str, ...]  # by which a profile finds the source lines of loops
    allowed: re.Pattern[str]
    architecture: Callable[[str], tuple[str, ...]]  # by a device's architecture


def _native(_arch: str) -> tuple[str, ...]:
    return ()  # CPU_FLAGS hold -march=native


def _of_gpu(arch: str) -> tuple[str, ...]:
    number = arch.removeprefix("sm_")
    return (f"-gencode=arch=compute_{number},code=sm_{number}",)


_FLAGS = {
    DeviceKind.CPU: _DeviceFlags(
        base=CPU_FLAGS,
        link=CPU_LINK_FLAGS,
        no_undefined="-Wl,--no-undefined",
        diagnostics=DIAGNOSTIC_FLAGS,
        profile=("-g1",),  # line tables alone: GCC makes the same code with them as without
        allowed=re.compile("|".join(_CPU_ALLOWED)),
        architecture=_native,
    ),
    DeviceKind.CUDA: _DeviceFlags(
        base=CUDA_FLAGS,
        link=CUDA_LINK_FLAGS,
        no_undefined="-Xlinker=--no-undefined",
        diagnostics=CUDA_DIAGNOSTIC_FLAGS,
        profile=(),  # ncu is not asked for lines
        allowed=re.compile("|".join(_CUDA_ALLOWED)),
        architecture=_of_gpu,
    ),
}
# A published kernel's own architecture would only lose instructions of this device or not build at all.
_DROPPED = re.compile(r"--?(arch|gpu-architecture|gencode|generate-code)(=.*)?|-march=.*")
_FLAGS_LINE = re.compile(r"^[ \t]*//[ \t]*flags:[ \t]*(.*)$", re.MULTILINE)


def requested_flags(source: str) -> tuple[str, ...]:
    """Return the flags of the source's `// flags:` lines, in order, without those that choose an architecture."""
    words = [word for line in _FLAGS_LINE.findall(source) for word in line.split()]
    return tuple(word for word in words if not _DROPPED.fullmatch(word))


def refused_flags(flags: tuple[str, ...], kind: DeviceKind) -> tuple[str, ...]:
    """Return those of `flags` that a source may not ask for."""
    return tuple(flag for flag in flags if not _FLAGS[kind].allowed.fullmatch(flag))


def base_flags(device: Device) -> tuple[str, ...]:
    """Return the fixed flags for a device."""
    return (*_FLAGS[device.kind].base, *architecture_flags(device))


def architecture_flags(device: Device) -> tuple[str, ...]:
    """Return the flags that make nvcc compile for this GPU's architecture and no other; none for a CPU."""
    return _FLAGS[device.kind].architecture(device.arch)


def sanitizer_flags(kind: DeviceKind) -> tuple[str, ...]:
    """Return the flags of a slower, checked library that stops at the first finding; none where a tool checks."""
    return _SANITIZER_FLAGS if kind.sanitizers is Sanitizers.COMPILED else ()


def profile_flags(kind: DeviceKind) -> tuple[str, ...]:
    """Return the flags by which a profile finds the source lines of loops; none where no profile looks for them."""
    return _FLAGS[kind].profile


def link_flags(kind: DeviceKind, *, is_open: bool = False) -> tuple[str, ...]:
    """Return the flags that make a loadable library, bound to the C++, math and OpenMP libraries and to nothing else.

    `is_open`: the program that loads the library defines the rest. The sanitizers' functions are a host's own, and
    Python's are those of its interpreter.
    """
    flags = _FLAGS[kind]
    return tuple(flag for flag in flags.link if not (is_open and flag == flags.no_undefined))


def diagnostic_flags(kind: DeviceKind) -> tuple[str, ...]:
    """Return the flags that keep the compiler's messages short and plain; ptxas also says what each kernel needs."""
    return _FLAGS[kind].diagnostics
