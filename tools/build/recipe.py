"""How one candidate is built: the files, the command, and the key of everything that decides the result."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import ninja

from ridgeline.tools.build.flags import base_flags, diagnostic_flags, link_flags, refused_flags, requested_flags
from ridgeline.tools.build.header import entry_declaration, problem_header
from ridgeline.tools.build.toolchain import Toolchain, cuda_home
from ridgeline.tools.build.torch_paths import TorchPaths
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.python_env import python_path
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, ReasonCode
from ridgeline.tools.sandbox.python import package_paths, python_command

RECIPE_VERSION = 3  # raise it when the command changes in a way that the flags do not show
LARGEST_SOURCE_BYTES = 1 << 20
OUTPUT = "kernel.so"
HEADER = "problem.h"
C_CPU_S = 60
TORCH_CPU_S = 240  # stock torch headers take 30 s of a quiet core
MODULE_JOBS = 2  # translation units that a module's extension compiles at once
WALL_PER_CPU = 3.0  # the machine may be busy with measurements and other builds
C_MEMORY_BYTES = 3 << 30
TORCH_MEMORY_BYTES = 6 << 30  # g++ needs 1.5 GB for torch/extension.h
MODULE_MEMORY_BYTES = 12 << 30  # torch itself, and MODULE_JOBS compilers


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One build, ready to run in any folder."""

    key: str
    entry: str  # what the source has to define, in one line
    flags: tuple[str, ...]  # what decides the code, without paths
    files: dict[str, str]
    command: tuple[str, ...]  # run in the folder of the files, leaves OUTPUT there
    readable: tuple[Path, ...]
    pool: str
    cpu_s: int  # of one process of the compiler; the whole may take WALL_PER_CPU times as long
    memory_bytes: int
    environment: Mapping[str, str] = field(default_factory=dict)


def refuse(task: CompileTask) -> Finding | None:
    """Return why this candidate may not be built, or None."""
    candidate, problem = task.candidate, task.problem
    if candidate.interface != problem.interface:
        return Finding(
            code=ReasonCode.INTERFACE_UNSUPPORTED,
            reason=f"a candidate of interface {candidate.interface} cannot serve this problem's, {problem.interface}",
        )
    if task.sanitize and problem.interface != Interface.C:
        # an instrumented library in torch's own process would need a torch and a Python built the same way
        return Finding(code=ReasonCode.INTERFACE_UNSUPPORTED, reason="sanitizer builds exist for interface c only")
    if candidate.language != problem.language:
        return Finding(
            code=ReasonCode.INTERFACE_UNSUPPORTED,
            reason=f"a .{candidate.language} source does not run on {problem.device.kind}: write .{problem.language}",
        )
    if len(candidate.source.encode(errors="surrogatepass")) > LARGEST_SOURCE_BYTES:
        return Finding(code=ReasonCode.SOURCE_REJECTED, reason="the source is larger than 1 MB")
    if "\0" in candidate.source or any("\ud800" <= char <= "\udfff" for char in candidate.source):
        return Finding(code=ReasonCode.SOURCE_REJECTED, reason="the source is not text")
    wrong = refused_flags(requested_flags(candidate.source), problem.device.kind)
    if wrong and problem.interface != Interface.MODULE:
        reason = f"`// flags:` may not contain {' '.join(wrong)[:200]}: see docs/interface.md for those that it may"
        return Finding(code=ReasonCode.FLAG_NOT_ALLOWED, reason=reason)
    return None


def c_recipe(task: CompileTask, toolchain: Toolchain) -> Recipe:
    """Return how a source of interface `c` is built."""
    kind = task.problem.device.kind
    flags = _flags(task) + link_flags(kind, task.sanitize)
    source = f"kernel.{task.candidate.language}"
    arguments = (*flags, *diagnostic_flags(kind), "-I.", "-include", HEADER, source, "-o", OUTPUT)
    files = {source: _with_line_end(task.candidate.source), HEADER: _header(task)}
    return Recipe(
        key=_key(task, toolchain, files, flags),
        entry=_entry(task),
        flags=flags,
        files=files,
        command=(str(toolchain.compiler), *arguments),
        readable=toolchain.readable,
        pool="compile",
        cpu_s=C_CPU_S,
        memory_bytes=C_MEMORY_BYTES,
    )


def torch_recipe(task: CompileTask, toolchain: Toolchain, paths: TorchPaths) -> Recipe:
    """Return how a source of interface `torch` is built: stock headers, and the binding that Ridgeline appends."""
    kind = task.problem.device.kind
    undefined_is_fine = {"-Wl,--no-undefined", "-Xlinker=--no-undefined"}  # Python's symbols come from its program
    linked = tuple(flag for flag in link_flags(kind, task.sanitize) if flag not in undefined_is_fine)
    ours = tuple(flag for flag in _flags(task) if not flag.startswith("-std="))  # torch's headers say which they need
    flags = (*ours, *linked, *paths.flags)
    source = f"kernel.{task.candidate.language}"
    includes = [word for path in paths.include for word in ("-isystem", path)]
    libraries = [*(f"-L{path}" for path in paths.library_folders), *(f"-l{name}" for name in paths.libraries)]
    arguments = (
        *flags,
        *diagnostic_flags(kind),
        "-I.",
        *includes,
        "-include",
        HEADER,
        source,
        "-o",
        OUTPUT,
        *libraries,
    )
    files = {source: _with_line_end(task.candidate.source) + _binding(), HEADER: _header(task)}
    return Recipe(
        key=_key(task, toolchain, files, (*flags, paths.version)),
        entry=_entry(task),
        flags=flags,
        files=files,
        command=(str(toolchain.compiler), *arguments),
        readable=(*toolchain.readable, *(Path(path) for path in (*paths.include, *paths.library_folders))),
        pool="torch",
        cpu_s=TORCH_CPU_S,
        memory_bytes=TORCH_MEMORY_BYTES,
    )


def module_recipe(task: CompileTask, toolchain: Toolchain, host: Toolchain, torch_version: str) -> Recipe:
    """Return how a file with `ModelNew` is built: imported and made once, so that whatever it builds is there later."""
    problem = task.problem
    description = problem.description
    if description.module is None:
        raise EngineError(f"{problem.name}: the judge described no module, so no file with ModelNew can be built")
    spec = {"init": description.module["init"], "gpu": _gpu_facts(problem.device)}
    files = {"candidate.py": _with_line_end(task.candidate.source), "spec.json": json.dumps(spec)}
    programs = [str(Path(sys.executable).parent), str(Path(ninja.BIN_DIR)), str(toolchain.compiler.parent)]
    for_gpu = {}
    if problem.device.kind is DeviceKind.CUDA:
        for_gpu["TORCH_CUDA_ARCH_LIST"] = architecture_list(problem.device.arch)
        for_gpu["CUDA_HOME"] = str(cuda_home(toolchain.compiler))
    return Recipe(
        key=_key(task, toolchain, files, ("module", torch_version)),
        entry=_entry(task),
        flags=(),
        files=files,
        command=python_command("runner.worker.build_main", "candidate.py", "spec.json", OUTPUT),
        readable=(*toolchain.readable, *package_paths(), Path(ninja.BIN_DIR)),
        pool="torch",
        cpu_s=TORCH_CPU_S,
        memory_bytes=MODULE_MEMORY_BYTES,
        environment={
            "PYTHONPATH": python_path(),
            "PATH": os.pathsep.join([*programs, "/usr/local/bin", "/usr/bin", "/bin"]),
            "MAX_JOBS": str(MODULE_JOBS),
            "OMP_NUM_THREADS": "1",
            "CXX": str(host.compiler),
            **for_gpu,
        },
    )


def _gpu_facts(device: Device) -> dict[str, object] | None:
    """Return what a builder without a GPU says of the one where a module will run."""
    if device.kind is not DeviceKind.CUDA:
        return None
    return {"name": device.name, "arch": device.arch, "cores": device.cores, "memory_bytes": device.memory_bytes}


def architecture_list(arch: str) -> str:
    """Return a GPU's architecture as torch's own builder takes it: "9.0a" for sm_90a."""
    number = arch.removeprefix("sm_")
    digits = number.rstrip("abcdefghijklmnopqrstuvwxyz")
    return f"{digits[:-1]}.{digits[-1]}{number.removeprefix(digits)}"


def _binding() -> str:
    """Return what is appended to a torch source; its own line numbers keep the candidate's messages apart."""
    text = resources.files("ridgeline.tools.build").joinpath("native/torch_binding.h").read_text(encoding="utf-8")
    return f'#line 1 "binding.h"\n{text}'


def _flags(task: CompileTask) -> tuple[str, ...]:
    """Return base and requested flags; the sanitizers' come last, so that no `// flags:` line undoes them."""
    base = base_flags(task.problem.device)
    sanitized = base_flags(task.problem.device, task.sanitize)[len(base) :]
    return base + requested_flags(task.candidate.source) + sanitized


def _header(task: CompileTask) -> str:
    return problem_header(task.problem.description.signature, task.problem.device.kind, task.problem.interface)


def _entry(task: CompileTask) -> str:
    return entry_declaration(task.problem.description.signature, task.problem.device.kind, task.problem.interface)


def _with_line_end(source: str) -> str:
    return source if source.endswith("\n") else source + "\n"


def _key(task: CompileTask, toolchain: Toolchain, files: dict[str, str], flags: tuple[str, ...]) -> str:
    device = task.problem.device
    parts = [RECIPE_VERSION, sorted(files.items()), flags, toolchain.version, device.kind.value, device.arch]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
