"""The share of a candidate's time that is spent in its own code, not in a library that it calls.

On a GPU a profile tells: a kernel that Nsight Compute saw in one call is the candidate's own when the candidate's
library holds its code. Any other kernel came from elsewhere (cuBLAS, cuDNN, code loaded or compiled at run time) and is
named.

On a CPU there is no profile of kernels, and most candidates need none: a library that links only the system's C, C++,
mathematics and OpenMP runtimes, imports no loader and had no other code mapped when it had been timed does its own work.
Libraries and calls beyond those are named, and the share is then unknown. A loader can be borrowed without being
imported (dl_iterate_phdr finds the host's), so what the process maps is looked at on both devices.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from ridgeline.tools.profile.gpu_counters import DURATION_NS, KernelCounters, launches_of_a_call
from ridgeline.tools.profile.objdump import objdump
from ridgeline.tools.records.printable import printable_name
from ridgeline.tools.records.results import OwnWork
from ridgeline.tools.sandbox.sandbox import Sandbox

SYSTEM_LIBRARIES = re.compile(
    r"^(ld-linux-x86-64|ld-linux-aarch64|libc|libm|libmvec|libgomp|libstdc\+\+|libgcc_s|libpthread|libdl|librt)\.so"
)
_DRIVER = re.compile(r"^lib(cuda|nvidia-[\w-]+|nvcuvid|cudart|cuda-[\w-]+)\.so")
_SYSTEM_FOLDERS = ("/usr/", "/lib/", "/lib32/", "/lib64/", "/libx32/")
"""Where the system's libraries lie; a candidate may write in none of them."""
_VENDOR_LIBRARY = re.compile(
    r"^(lib)?(cublas|cudnn|cusparse|cufft|cusolver|curand|nccl|mkl|openblas|goto|blas|cblas|lapack|blis|flame|atlas|dnnl"
    r"|onednn|mkldnn|onnxruntime|tvm|tensorflow|jax|torch|c10|aten|eigen|xnnpack|nnpack|fbgemm)",
    re.IGNORECASE,
)
"""Names of libraries that compute, for a process in which Python loads others beside them."""
LOADERS = frozenset({"dlopen", "dlmopen", "dlsym", "dlvsym"})
VENDOR = re.compile(
    r"cublas|cudnn|cutlass|cusparse|cufft|xmma|nvjet|splitkreduce|gemv2|gemmsn|implicit_convolve|winograd"
    r"|^(?:maxwell|volta|turing|ampere|hopper|sm\d\d)_",
    re.IGNORECASE,
)
"""Names of kernels of NVIDIA's libraries, for a candidate whose own kernels are not known by name."""
ATEN_PREFIX = "at::_ops::"
MOST_OTHERS = 12
_LISTING_BYTES = 16 << 20
_NEEDED = re.compile(r"^\s*NEEDED\s+(\S+)", re.MULTILINE)
_IMPORTED = re.compile(r"\*UND\*\s+[0-9a-f]+\s+(?:\(?[\w.]+\)?\s+)?(\S+)$", re.MULTILINE)
_ATEN = re.compile(r"^_ZN2at4_ops(\d{1,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The libraries that a shared object links and the functions that it imports."""

    libraries: tuple[str, ...]
    functions: tuple[str, ...]


def gpu_work(launches: Sequence[KernelCounters], own_kernels: Collection[str] | None, missing: str) -> OwnWork:
    """Return the own and other kernels of one call; `own_kernels` are the names in the candidate's library, None: unknown.

    `missing` says why there are no launches.
    """
    if not launches:
        return OwnWork(share=None, how=f"not profiled: {missing or 'no kernel was launched'}")
    times: dict[str, float] = defaultdict(float)
    for launch in launches_of_a_call(launches):
        times[launch.name] += launch.get(DURATION_NS)
    total = sum(times.values())
    others = [name for name in times if not _is_own(name, own_kernels)]
    foreign = sum(times[name] for name in others)
    return OwnWork(
        share=1.0 - foreign / total if total else None,
        how="a profile of three calls by Nsight Compute" if total else "the profile has no times",
        kernels_ns=dict(times),
        others=tuple(others[:MOST_OTHERS]),
    )


def _is_own(name: str, own_kernels: Collection[str] | None) -> bool:
    return VENDOR.search(name) is None if own_kernels is None else name in own_kernels


def foreign_code(
    before: frozenset[str] | None, now: frozenset[str] | None, *, own: Collection[str], in_python: bool
) -> tuple[str, ...] | None:
    """Return what came along into a process that is neither the candidate's `own` nor the system's; None: unknown.

    `before` and `now` are the paths of what it had mapped to execute before the candidate was loaded and after it was
    timed. The system's are libraries of its names that lie where it has them, or beside those that were there before: a
    candidate may give a file in its scratch any name. Python and PyTorch load parts of themselves late, so beside them
    only libraries that compute are named.
    """
    if before is None or now is None:
        return None
    came = now - before - frozenset(own)
    if in_python:
        return tuple(sorted({_shown(path, own) for path in came if _VENDOR_LIBRARY.match(_name(path))}))
    folders = {str(PurePath(path).parent) for path in before if _has_systems_name(path)}
    return tuple(sorted({_shown(path, own) for path in came if not _is_systems(path, folders)}))


def _is_systems(path: str, folders: Collection[str]) -> bool:
    """Say whether a file is one of the system's libraries; `folders` hold some, beside the usual ones."""
    lies_there = path.startswith(_SYSTEM_FOLDERS) or str(PurePath(path).parent) in folders
    return lies_there and _has_systems_name(path)


def _has_systems_name(path: str) -> bool:
    name = _name(path)
    return SYSTEM_LIBRARIES.match(name) is not None or _DRIVER.match(name) is not None


def _name(path: str) -> str:
    return path if path.startswith("/memfd:") else PurePath(path).name


def _shown(path: str, own: Collection[str]) -> str:
    """Return a file's name as it is told, with its folder where it is called as the system's or the candidate's own are."""
    is_alike = _has_systems_name(path) or _name(path) in map(_name, own)
    return printable_name(path if is_alike else _name(path))


def cpu_work(links: Links | None, missing: str, came_along: Sequence[str] | None = ()) -> OwnWork:
    """Return the libraries and loaders that a CPU candidate uses.

    `missing` says why its links are unknown. `came_along` is what foreign_code found; None: unknown.
    """
    if came_along:
        how = "code that is not its own was in its process when it had been timed; a CPU has no profile of whose time that is"
        others = (*came_along, *(_borrowed(links) if links else ()))
        return OwnWork(share=None, how=how, others=others[:MOST_OTHERS])
    if links is None:
        return OwnWork(share=None, how=missing)
    others = (*_borrowed(links), *(name for name in links.functions if name in LOADERS))
    if others:
        how = "it links or calls what is not its own; a CPU has no profile of whose time that is"
        return OwnWork(share=None, how=how, others=others[:MOST_OTHERS])
    system = ", ".join(links.libraries) or "nothing"
    how = f"it is linked with {system} alone and imports no loader"
    if came_along is None:
        return OwnWork(share=1.0, how=f"{how}; what its process maps may not be read here")
    return OwnWork(share=1.0, how=f"{how}, and no other code was in its process when it had been timed")


def with_links(work: OwnWork, links: Links | None) -> OwnWork:
    """Return a GPU candidate's work with the libraries and operations that it borrows, where no profile tells.

    Every such library imports a loader: CUDA's own runtime, which is linked into it, does.
    """
    if work.share is not None or links is None:
        return work
    return replace(work, others=tuple(_borrowed(links))[:MOST_OTHERS])


def _borrowed(links: Links) -> list[str]:
    foreign = [name for name in links.libraries if not SYSTEM_LIBRARIES.match(name)]
    calls = {f"{ATEN_PREFIX}{name}" for name in map(_aten_operation, links.functions) if name}
    return [*foreign, *sorted(calls)]


def read_links(library: Path, sandbox: Sandbox) -> tuple[Links | None, str]:
    """Return a shared object's links and "", or None and why they are unknown; objdump reads it in the sandbox."""
    listing, problem = objdump(library, sandbox, "-p", "-T", listing_bytes=_LISTING_BYTES)
    return (None, f"what it links is unknown: {problem}") if problem else (parse_links(listing), "")


def parse_links(listing: str) -> Links:
    """Return the libraries and functions that `objdump -p -T` lists as taken from others."""
    return Links(libraries=tuple(_NEEDED.findall(listing)), functions=tuple(_IMPORTED.findall(listing)))


def _aten_operation(symbol: str) -> str:
    """Return "mm" of the mangled `at::_ops::mm::call(…)`, "" of anything else."""
    found = _ATEN.match(symbol)
    return symbol[found.end() : found.end() + int(found[1])] if found else ""
