"""The interfaces as a build sees them: the header, the recipe, and the refusals before any build."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from importlib import metadata, resources
from pathlib import Path
from typing import Protocol

import ninja

from ridgeline.tools.build.cache import LIBRARY
from ridgeline.tools.build.dialect import DIALECTS
from ridgeline.tools.build.flags import diagnostic_flags, link_flags, refused_flags, requested_flags, sanitizer_flags
from ridgeline.tools.build.header import CHeader, Header, ModuleHeader, TorchHeader
from ridgeline.tools.build.recipe import HEADER, Recipe, recipe_key, source_flags
from ridgeline.tools.build.stages import stage_names
from ridgeline.tools.build.toolchain import Toolchain, find_toolchain
from ridgeline.tools.build.torch_paths import TorchPaths, find_torch_paths
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.python_env import python_command, python_path
from ridgeline.tools.records.builder_spec import BuilderSpec, GpuFacts
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.problem import Device, Signature
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, ReasonCode
from ridgeline.tools.sandbox.python import package_paths

LARGEST_SOURCE_BYTES = 1 << 20
LONGEST_FLAGS_CHARS = 4_000  # all that a source may add, once each, has half of it; a command's line may have 128 KiB
C_CPU_S = 60
TORCH_CPU_S = 240  # stock torch headers take 30 s of a quiet core
MODULE_JOBS = 2  # translation units that a module's extension compiles at once
C_MEMORY_BYTES = 3 << 30
TORCH_MEMORY_BYTES = 6 << 30  # g++ needs 1.5 GB for torch/extension.h
MODULE_MEMORY_BYTES = 12 << 30  # torch itself, and MODULE_JOBS compilers


class InterfaceBuild(Protocol):
    """One interface, as a build sees it."""

    header: Header
    takes_flags: bool  # `// flags:` lines of the source reach the compiler
    has_sanitizers: bool  # torch's own process would need a torch and a Python that are built the same way
    links_late: bool  # a source without its entry builds, and its library does not load

    async def recipe(self, task: CompileTask, toolchain: Toolchain, cache_dir: Path) -> Recipe:
        """Return how a candidate is built for the device of `toolchain`.

        Raises:
            DeviceError: this machine has no C++ compiler.
            EngineError: torch does not import, or the judge described no module.
        """
        ...


class CBuild:
    """Interface `c`: one source, compiled with the problem's header in front of it."""

    header: Header = CHeader()
    takes_flags = True
    has_sanitizers = True
    links_late = False

    async def recipe(self, task: CompileTask, toolchain: Toolchain, cache_dir: Path) -> Recipe:
        kind = task.problem.device.kind
        flags = source_flags(task) + link_flags(kind, is_open=task.sanitized and bool(sanitizer_flags(kind)))
        return _one_source(task, toolchain, flags, pool="compile", cpu_s=C_CPU_S, memory_bytes=C_MEMORY_BYTES)


class TorchBuild:
    """Interface `torch`: one source, compiled with stock torch headers and the binding that Ridgeline appends."""

    header: Header = TorchHeader()
    takes_flags = True
    has_sanitizers = False
    links_late = True

    async def recipe(self, task: CompileTask, toolchain: Toolchain, cache_dir: Path) -> Recipe:
        paths = await find_torch_paths(cache_dir, task.problem.device.kind, toolchain.cuda_home)
        flags = _torch_flags(task, paths)
        return _one_source(
            task, toolchain, flags, pool="torch", cpu_s=TORCH_CPU_S, memory_bytes=TORCH_MEMORY_BYTES, torch=paths
        )


class ModuleBuild:
    """Interface `module`: the builder imports the file and makes its `ModelNew` once; what the file builds is kept."""

    header: Header = ModuleHeader()
    takes_flags = False
    has_sanitizers = False
    links_late = False

    async def recipe(self, task: CompileTask, toolchain: Toolchain, cache_dir: Path) -> Recipe:
        problem = task.problem
        description = problem.description
        if description.module is None:
            raise EngineError(f"{problem.name}: the judge described no module, so no file with ModelNew can be built")
        host = await asyncio.to_thread(find_toolchain, DeviceKind.CPU)
        gpu = _gpu_facts(problem.device)
        spec = BuilderSpec(init=description.module.init, gpu=gpu)
        files = {"candidate.py": _with_line_end(task.candidate.source), "spec.json": json.dumps(spec.to_json())}
        return Recipe(
            key=recipe_key(task, toolchain, files, ("module", metadata.version("torch"))),
            entry=_entry(task),
            flags=(),
            files=files,
            command=python_command("runner.worker.build_main", "candidate.py", "spec.json", LIBRARY),
            readable=(*toolchain.readable, *package_paths(), Path(ninja.BIN_DIR)),
            pool="torch",
            cpu_s=TORCH_CPU_S,
            memory_bytes=MODULE_MEMORY_BYTES,
            environment=_builder_environment(gpu, toolchain, host),
            runs_source=True,
        )


BUILDS: dict[Interface, InterfaceBuild] = {
    Interface.C: CBuild(),
    Interface.TORCH: TorchBuild(),
    Interface.MODULE: ModuleBuild(),
}


def problem_header(
    signature: Signature, kind: DeviceKind, interface: Interface = Interface.C, *, with_clocks: bool = False
) -> str:
    """Return the text of `problem.h` for one signature on one kind of device.

    Interface `torch` gets the same constants and the prototype of `forward` instead of `run`; interface `module`
    comments for Python. `with_clocks` where RIDGELINE_STAGE is to take times: in a profile's build of interface `c`.

    Raises:
        ProblemError: an argument's type has no C form, or two arguments would share a constant's name.
    """
    return BUILDS[interface].header.text(signature, DIALECTS[kind], with_clocks=with_clocks)


def entry_declaration(signature: Signature, kind: DeviceKind, interface: Interface = Interface.C) -> str:
    """Return in one line what a candidate has to define: `run`, `forward` or `ModelNew`, by its interface."""
    return BUILDS[interface].header.entry(signature, DIALECTS[kind])


def refuse(task: CompileTask) -> Finding | None:
    """Return why this candidate may not be built, or None."""
    candidate, problem = task.candidate, task.problem
    build = BUILDS[problem.interface]
    if candidate.interface != problem.interface:
        return Finding(
            code=ReasonCode.INTERFACE_UNSUPPORTED,
            reason=f"a candidate of interface {candidate.interface} cannot serve this problem's, {problem.interface}",
        )
    if task.sanitized and not build.has_sanitizers:
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
    return _refuse_flags(requested_flags(candidate.source), problem.device.kind) if build.takes_flags else None


def _refuse_flags(flags: tuple[str, ...], kind: DeviceKind) -> Finding | None:
    if wrong := refused_flags(flags, kind):
        reason = f"`// flags:` may not contain {' '.join(wrong)[:200]}: see docs/interface.md for those that it may"
        return Finding(code=ReasonCode.FLAG_NOT_ALLOWED, reason=reason)
    if (chars := len(" ".join(flags))) > LONGEST_FLAGS_CHARS:
        reason = f"the `// flags:` have {chars} characters together, the limit is {LONGEST_FLAGS_CHARS}: name each once"
        return Finding(code=ReasonCode.FLAG_NOT_ALLOWED, reason=reason)
    return None


def architecture_list(arch: str) -> str:
    """Return a GPU's architecture as torch's own builder takes it: "9.0a" for sm_90a."""
    number = arch.removeprefix("sm_")
    digits = number.rstrip("abcdefghijklmnopqrstuvwxyz")
    return f"{digits[:-1]}.{digits[-1]}{number.removeprefix(digits)}"


def _one_source(
    task: CompileTask,
    toolchain: Toolchain,
    flags: tuple[str, ...],
    *,
    pool: str,
    cpu_s: int,
    memory_bytes: int,
    torch: TorchPaths | None = None,
) -> Recipe:
    """Return how a source with the problem's header in front of it is compiled, and with `torch` linked to it."""
    source = f"kernel.{task.candidate.language}"
    files = {source: _with_line_end(task.candidate.source) + (_binding() if torch else ""), HEADER: _header(task)}
    headers = torch.include if torch else ()
    folders, libraries = (torch.library_folders, torch.libraries) if torch else ((), ())
    includes = [word for path in headers for word in ("-isystem", path)]
    linked = [*(f"-L{path}" for path in folders), *(f"-l{name}" for name in libraries)]
    compiled = ("-I.", *includes, "-include", HEADER, source, "-o", LIBRARY)
    return Recipe(
        key=recipe_key(task, toolchain, files, (*flags, torch.version) if torch else flags),
        entry=_entry(task),
        flags=flags,
        files=files,
        command=(str(toolchain.compiler), *flags, *diagnostic_flags(task.problem.device.kind), *compiled, *linked),
        readable=(*toolchain.readable, *(Path(path) for path in (*headers, *folders))),
        pool=pool,
        cpu_s=cpu_s,
        memory_bytes=memory_bytes,
    )


def _torch_flags(task: CompileTask, paths: TorchPaths) -> tuple[str, ...]:
    linked = link_flags(task.problem.device.kind, is_open=True)
    own = (flag for flag in source_flags(task) if not flag.startswith("-std="))  # torch's headers need their own
    return (*own, *linked, *paths.flags)


def _builder_environment(gpu: GpuFacts | None, toolchain: Toolchain, host: Toolchain) -> dict[str, str]:
    programs = [str(Path(sys.executable).parent), str(Path(ninja.BIN_DIR)), str(toolchain.compiler.parent)]
    environment = {
        "PYTHONPATH": python_path(),
        "PATH": os.pathsep.join([*programs, "/usr/local/bin", "/usr/bin", "/bin"]),
        "MAX_JOBS": str(MODULE_JOBS),
        "OMP_NUM_THREADS": "1",
        "CXX": str(host.compiler),
    }
    if gpu is not None:
        environment |= {"TORCH_CUDA_ARCH_LIST": architecture_list(gpu.arch), "CUDA_HOME": str(toolchain.cuda_home)}
    return environment


def _gpu_facts(device: Device) -> GpuFacts | None:
    if device.kind is not DeviceKind.CUDA:
        return None
    return GpuFacts(name=device.name, arch=device.arch, cores=device.cores, memory_bytes=device.memory_bytes)


def _binding() -> str:
    """Return the text that is appended to a torch source, under a file name and line numbers of its own."""
    text = resources.files("ridgeline.tools.build").joinpath("native/torch_binding.h").read_text(encoding="utf-8")
    return f'#line 1 "binding.h"\n{text}'


def _header(task: CompileTask) -> str:
    problem = task.problem
    with_clocks = task.profiled and bool(stage_names(task.candidate.source))
    signature = problem.description.signature
    return problem_header(signature, problem.device.kind, problem.interface, with_clocks=with_clocks)


def _entry(task: CompileTask) -> str:
    return entry_declaration(task.problem.description.signature, task.problem.device.kind, task.problem.interface)


def _with_line_end(source: str) -> str:
    return source if source.endswith("\n") else source + "\n"
