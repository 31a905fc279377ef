"""The forms of a candidate's source, each with its recipe, and the refusals before any build."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from importlib import metadata, resources
from pathlib import Path
from typing import Protocol

import ninja

from ridgeline.tools.build.flags import diagnostic_flags, link_flags, refused_flags, requested_flags
from ridgeline.tools.build.header import entry_declaration, problem_header
from ridgeline.tools.build.recipe import HEADER, OUTPUT, Recipe, recipe_key, source_flags
from ridgeline.tools.build.toolchain import Toolchain, cuda_home, find_toolchain
from ridgeline.tools.build.torch_paths import TorchPaths, find_torch_paths
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.python_env import python_path
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, ReasonCode
from ridgeline.tools.sandbox.python import package_paths, python_command

LARGEST_SOURCE_BYTES = 1 << 20
C_CPU_S = 60
TORCH_CPU_S = 240  # stock torch headers take 30 s of a quiet core
MODULE_JOBS = 2  # translation units that a module's extension compiles at once
C_MEMORY_BYTES = 3 << 30
TORCH_MEMORY_BYTES = 6 << 30  # g++ needs 1.5 GB for torch/extension.h
MODULE_MEMORY_BYTES = 12 << 30  # torch itself, and MODULE_JOBS compilers
_FROM_PYTHON = ("-Wl,--no-undefined", "-Xlinker=--no-undefined")  # an extension takes Python's symbols from its program


class Form(Protocol):
    """One interface, as a build sees it."""

    takes_flags: bool  # `// flags:` lines of the source reach the compiler
    has_sanitizers: bool  # torch's own process would need a torch and a Python that are built the same way

    async def recipe(self, task: CompileTask, toolchain: Toolchain, cache_dir: Path) -> Recipe:
        """Return how a candidate is built for the device of `toolchain`.

        Raises:
            DeviceError: this machine has no C++ compiler.
            EngineError: torch does not import, or the judge described no module.
        """
        ...


class CForm:
    """Interface `c`: one source, compiled with the problem's header in front of it."""

    takes_flags = True
    has_sanitizers = True

    async def recipe(self, task: CompileTask, toolchain: Toolchain, cache_dir: Path) -> Recipe:
        kind = task.problem.device.kind
        flags = source_flags(task) + link_flags(kind, sanitized=task.sanitized)
        source = f"kernel.{task.candidate.language}"
        files = {source: _with_line_end(task.candidate.source), HEADER: _header(task)}
        arguments = (*flags, *diagnostic_flags(kind), "-I.", "-include", HEADER, source, "-o", OUTPUT)
        return Recipe(
            key=recipe_key(task, toolchain, files, flags),
            entry=_entry(task),
            flags=flags,
            files=files,
            command=(str(toolchain.compiler), *arguments),
            readable=toolchain.readable,
            pool="compile",
            cpu_s=C_CPU_S,
            memory_bytes=C_MEMORY_BYTES,
        )


class TorchForm:
    """Interface `torch`: one source, compiled with stock torch headers and the binding that Ridgeline appends."""

    takes_flags = True
    has_sanitizers = False

    async def recipe(self, task: CompileTask, toolchain: Toolchain, cache_dir: Path) -> Recipe:
        kind = task.problem.device.kind
        toolkit = str(cuda_home(toolchain.compiler)) if kind is DeviceKind.CUDA else ""
        paths = await find_torch_paths(cache_dir, kind.value, toolkit)
        source = f"kernel.{task.candidate.language}"
        files = {source: _with_line_end(task.candidate.source) + _binding(), HEADER: _header(task)}
        flags = _torch_flags(task, paths)
        includes = [word for path in paths.include for word in ("-isystem", path)]
        libraries = [*(f"-L{path}" for path in paths.library_folders), *(f"-l{name}" for name in paths.libraries)]
        compiled = ("-I.", *includes, "-include", HEADER, source, "-o", OUTPUT)
        return Recipe(
            key=recipe_key(task, toolchain, files, (*flags, paths.version)),
            entry=_entry(task),
            flags=flags,
            files=files,
            command=(str(toolchain.compiler), *flags, *diagnostic_flags(kind), *compiled, *libraries),
            readable=(*toolchain.readable, *(Path(path) for path in (*paths.include, *paths.library_folders))),
            pool="torch",
            cpu_s=TORCH_CPU_S,
            memory_bytes=TORCH_MEMORY_BYTES,
        )


class ModuleForm:
    """Interface `module`: the builder imports the file and makes its `ModelNew` once; what the file builds is kept."""

    takes_flags = False
    has_sanitizers = False

    async def recipe(self, task: CompileTask, toolchain: Toolchain, cache_dir: Path) -> Recipe:
        problem = task.problem
        description = problem.description
        if description.module is None:
            raise EngineError(f"{problem.name}: the judge described no module, so no file with ModelNew can be built")
        host = await asyncio.to_thread(find_toolchain, DeviceKind.CPU)
        spec = {"init": description.module["init"], "gpu": _gpu_facts(problem.device)}
        files = {"candidate.py": _with_line_end(task.candidate.source), "spec.json": json.dumps(spec)}
        return Recipe(
            key=recipe_key(task, toolchain, files, ("module", metadata.version("torch"))),
            entry=_entry(task),
            flags=(),
            files=files,
            command=python_command("runner.worker.build_main", "candidate.py", "spec.json", OUTPUT),
            readable=(*toolchain.readable, *package_paths(), Path(ninja.BIN_DIR)),
            pool="torch",
            cpu_s=TORCH_CPU_S,
            memory_bytes=MODULE_MEMORY_BYTES,
            environment=_builder_environment(problem.device, toolchain, host),
        )


FORMS: dict[Interface, Form] = {
    Interface.C: CForm(),
    Interface.TORCH: TorchForm(),
    Interface.MODULE: ModuleForm(),
}


def refuse(task: CompileTask) -> Finding | None:
    """Return why this candidate may not be built, or None."""
    candidate, problem = task.candidate, task.problem
    form = FORMS[problem.interface]
    if candidate.interface != problem.interface:
        return Finding(
            code=ReasonCode.INTERFACE_UNSUPPORTED,
            reason=f"a candidate of interface {candidate.interface} cannot serve this problem's, {problem.interface}",
        )
    if task.sanitized and not form.has_sanitizers:
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
    wrong = refused_flags(requested_flags(candidate.source), problem.device.kind) if form.takes_flags else ()
    if wrong:
        reason = f"`// flags:` may not contain {' '.join(wrong)[:200]}: see docs/interface.md for those that it may"
        return Finding(code=ReasonCode.FLAG_NOT_ALLOWED, reason=reason)
    return None


def architecture_list(arch: str) -> str:
    """Return a GPU's architecture as torch's own builder takes it: "9.0a" for sm_90a."""
    number = arch.removeprefix("sm_")
    digits = number.rstrip("abcdefghijklmnopqrstuvwxyz")
    return f"{digits[:-1]}.{digits[-1]}{number.removeprefix(digits)}"


def _torch_flags(task: CompileTask, paths: TorchPaths) -> tuple[str, ...]:
    linked = (flag for flag in link_flags(task.problem.device.kind) if flag not in _FROM_PYTHON)
    own = (flag for flag in source_flags(task) if not flag.startswith("-std="))  # torch's headers need their own
    return (*own, *linked, *paths.flags)


def _builder_environment(device: Device, toolchain: Toolchain, host: Toolchain) -> dict[str, str]:
    programs = [str(Path(sys.executable).parent), str(Path(ninja.BIN_DIR)), str(toolchain.compiler.parent)]
    environment = {
        "PYTHONPATH": python_path(),
        "PATH": os.pathsep.join([*programs, "/usr/local/bin", "/usr/bin", "/bin"]),
        "MAX_JOBS": str(MODULE_JOBS),
        "OMP_NUM_THREADS": "1",
        "CXX": str(host.compiler),
    }
    if device.kind is DeviceKind.CUDA:
        environment["TORCH_CUDA_ARCH_LIST"] = architecture_list(device.arch)
        environment["CUDA_HOME"] = str(cuda_home(toolchain.compiler))
    return environment


def _gpu_facts(device: Device) -> dict[str, object] | None:
    """Return the facts that a builder without a GPU tells of the GPU where a module will run."""
    if device.kind is not DeviceKind.CUDA:
        return None
    return {"name": device.name, "arch": device.arch, "cores": device.cores, "memory_bytes": device.memory_bytes}


def _binding() -> str:
    """Return the text that is appended to a torch source, under a file name and line numbers of its own."""
    text = resources.files("ridgeline.tools.build").joinpath("native/torch_binding.h").read_text(encoding="utf-8")
    return f'#line 1 "binding.h"\n{text}'


def _header(task: CompileTask) -> str:
    return problem_header(task.problem.description.signature, task.problem.device.kind, task.problem.interface)


def _entry(task: CompileTask) -> str:
    return entry_declaration(task.problem.description.signature, task.problem.device.kind, task.problem.interface)


def _with_line_end(source: str) -> str:
    return source if source.endswith("\n") else source + "\n"
