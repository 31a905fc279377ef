"""The native host's executable for each kind of device, compiled once into the cache folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ridgeline.tools.build.toolchain import build_trusted, find_toolchain
from ridgeline.tools.machine.gpus import driver_library
from ridgeline.tools.machine.programs import is_whole_program
from ridgeline.tools.records.vocabulary import DeviceKind, Sanitizers

_FOLDER = Path(__file__).parent / "native"
_HOST = ("host.cpp", "host_wire.h", "wire_words.h", "host_cpu.h", "host_cuda.h", "fault_watch.h")
_WATCHER = ("watch.cpp", "fault_watch.h", "wire_words.h", "thread_binding.h")
_FLAGS = ("-std=c++17", "-O2", "-fopenmp")
_CUDA_FLAGS = ("-std=c++17", "-O2", "-DRIDGELINE_CUDA", "-x", "c++")
_SANITIZED_FLAGS = (
    "-std=c++17",
    "-O1",
    "-g",
    "-fopenmp",
    "-fno-omit-frame-pointer",
    f"-fsanitize={Sanitizers.COMPILED}",
)
_LIBRARIES = ("-ldl",)


def native_host(cache_dir: Path, *, sanitized: bool = False) -> Path:
    """Return the path of the compiled host, compiling it when it is damaged or its source changed (about 2 s).

    Raises:
        DeviceError: g++ is missing or cannot build it; one line says why.
        StorageError: `cache_dir` cannot be written.
    """
    return _built(cache_dir, DeviceKind.CPU, _SANITIZED_FLAGS if sanitized else _FLAGS, _LIBRARIES)


def cuda_host(cache_dir: Path) -> Path:
    """Return the path of the compiled host for CUDA, compiling it when its source or the driver changed (about 4 s).

    The host is linked with the driver's own library instead of the toolkit's stub: every machine with a GPU has it.

    Raises:
        DeviceError: there is no driver, nvcc is missing or cannot build it; one line says why.
        StorageError: `cache_dir` cannot be written.
    """
    driver = driver_library()
    linked = (f"-Xlinker={driver}", f"-Xlinker=-rpath={driver.parent}", *_LIBRARIES)
    return _built(cache_dir, DeviceKind.CUDA, _CUDA_FLAGS, linked)


def fault_watcher(cache_dir: Path) -> Path:
    """Return the library that a Python runner needs beside Python, compiled when its source changed (1 s).

    Loaded, it makes faults tell their address. Preloaded, OpenMP's threads are bound in every sandbox tier.

    Raises:
        DeviceError: g++ is missing or cannot build it; one line says why.
        StorageError: `cache_dir` cannot be written.
    """
    flags = ("-std=c++17", "-O2", "-shared", "-fPIC", "-pthread")
    library = cache_dir / "host" / f"watch-{_digest(_WATCHER, flags)}.so"
    if not is_whole_program(library):
        compiler = find_toolchain(DeviceKind.CPU).compiler
        build_trusted(
            library, [str(compiler), *flags, str(_FOLDER / _WATCHER[0]), *_LIBRARIES], what="the fault watcher"
        )
    return library


def _built(cache_dir: Path, kind: DeviceKind, flags: tuple[str, ...], libraries: tuple[str, ...]) -> Path:
    host = cache_dir / "host" / f"{kind.value}-{_digest(_HOST, (*flags, *libraries))}"
    if is_whole_program(host):
        return host
    compiler = find_toolchain(kind).compiler
    build_trusted(host, [str(compiler), *flags, str(_FOLDER / _HOST[0]), *libraries], what="the native host")
    return host


def _digest(sources: tuple[str, ...], options: tuple[str, ...]) -> str:
    texts = [(_FOLDER / name).read_bytes() for name in sources]
    return hashlib.sha256(b"\0".join(texts) + " ".join(options).encode()).hexdigest()[:16]
