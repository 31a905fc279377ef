"""Replacements of torch.utils.cpp_extension's `load` and `load_inline` for a module's file: built once, then loaded.

In the builder they compile with normalised flags, and the extensions are packed. In the runner, which may start no
process, the same call finds the packed extension by the text of its sources.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import inspect
import json
import os
import re
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ridgeline.tools.records.codec import Record

INDEX = "index.json"
_ARCH = re.compile(r"--?(arch|gpu-architecture|gencode|generate-code|code|gpu-code)(=.*)?")
_TAKES_NEXT = re.compile(r"--?(arch|gpu-architecture|gencode|generate-code|code|gpu-code)")
_MARCH = re.compile(r"-(march|mcpu)=.*")
_FLAGS = ("extra_cflags", "extra_cuda_cflags")


class ExtensionMissing(ImportError):
    """The builder did not make this extension: it was asked for neither at import nor by the constructor."""


def normalised(flags: Any) -> list[str]:
    """Return compiler flags for the machine at hand: a GPU's architecture is left to the builder, a CPU's is native."""
    kept: list[str] = []
    words = iter(flags.split() if isinstance(flags, str) else flags or ())
    for word in words:
        if _ARCH.fullmatch(word):
            if _TAKES_NEXT.fullmatch(word):
                next(words, None)  # written as two words
            continue
        kept.append("-march=native" if _MARCH.fullmatch(word) else word)
    return kept


def with_architecture(flags: list[str]) -> list[str]:
    """Return nvcc's flags with the architecture of the machine at hand where torch would leave it out.

    torch leaves it out where a flag holds the letters "arch", as a host compiler's -march does; nvcc then builds for its
    oldest GPU.
    """
    from torch.utils import cpp_extension

    if not os.environ.get("TORCH_CUDA_ARCH_LIST") or not any("arch" in flag for flag in flags):
        return flags
    return [*flags, *cpp_extension._get_cuda_arch_flags()]  # noqa: SLF001


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedExtension(Record):
    """One extension of a bundle; the bundle's index has it under the hash of its sources."""

    name: str
    file: str  # in the bundle
    is_module: bool  # of Python; otherwise it registers operations with torch


class Packer:
    """In the builder: lets extensions build and packs their libraries."""

    def __init__(self) -> None:
        self._built: dict[str, tuple[str, Path, bool]] = {}

    def install(self) -> None:
        """Put this between the file and torch."""
        _replace_builders(self._around)

    def _around(self, build: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(build)

        def building(*words: Any, **named: Any) -> Any:
            call = signature.bind(*words, **named)
            for name, given in call.arguments.items():
                if isinstance(given, list):
                    call.arguments[name] = list(given)  # torch adds to the list, and a second call would differ
            for name in _FLAGS:
                if call.arguments.get(name):
                    call.arguments[name] = normalised(call.arguments[name])
            if call.arguments.get("extra_cuda_cflags"):
                call.arguments["extra_cuda_cflags"] = with_architecture(call.arguments["extra_cuda_cflags"])
            call.arguments.pop("build_directory", None)
            key, is_module = _key(call.arguments), bool(call.arguments.get("is_python_module", True))
            made = build(*call.args, **call.kwargs)
            path = Path(made.__file__) if is_module else _newest(str(call.arguments["name"]))
            self._built[key] = (path.name.partition(".")[0], path, is_module)
            return made

        return building

    def write(self, target: Path) -> None:
        """Write everything that was built into one file."""
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            index: dict[str, PackedExtension] = {}
            for number, (key, (name, path, is_module)) in enumerate(self._built.items()):
                member = f"{number}/{name}.so"
                archive.write(path, member)
                index[key] = PackedExtension(name=name, file=member, is_module=is_module)
            archive.writestr(INDEX, json.dumps({key: packed.to_json() for key, packed in index.items()}))


class Loader:
    """In the runner: gives a file the extensions that its builder packed, unpacked into the runner's own folder."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self._folder = folder
        self._loaded: dict[str, Any] = {}
        with zipfile.ZipFile(archive) as packed:
            index = json.loads(packed.read(INDEX))
            packed.extractall(folder)
        self._index = {key: PackedExtension.from_json(entry) for key, entry in index.items()}

    def install(self) -> None:
        """Put this between the file and torch."""
        _replace_builders(self._around)

    def _around(self, build: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(build)

        def loading(*words: Any, **named: Any) -> Any:
            arguments = signature.bind(*words, **named).arguments
            key = _key(arguments)
            if key not in self._index:
                raise ExtensionMissing(
                    f"the extension `{arguments.get('name')}` was not built ahead: "
                    "load it at import or in the constructor, from the same sources each time"
                )
            if key not in self._loaded:
                self._loaded[key] = self._load(self._index[key])
            return self._loaded[key]

        return loading

    def _load(self, extension: PackedExtension) -> Any:
        path = str(self._folder / extension.file)
        if not extension.is_module:
            torch.ops.load_library(path)  # type: ignore[no-untyped-call]
            return None
        return load_extension(extension.name, path)


def _replace_builders(around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    from torch.utils import cpp_extension  # with setuptools a tenth of a runner's start, which one of `torch` spares

    for function in (cpp_extension.load, cpp_extension.load_inline):
        setattr(cpp_extension, function.__name__, around(function))


def load_extension(name: str, path: str) -> Any:
    """Return an extension module from its shared object.

    Raises:
        ImportError: the file is no extension module, or does not link.
    """
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec(name, loader, origin=path))
    loader.exec_module(module)
    sys.modules.setdefault(name, module)
    return module


def _key(arguments: Mapping[str, Any]) -> str:
    """Return a hash of an extension's sources and functions. Its name is left out: some files make one up."""
    files = arguments.get("sources") or ()
    texts = [Path(path).read_text() for path in ([files] if isinstance(files, str) else files)]
    inline = [_texts(arguments.get(name)) for name in ("cpp_sources", "cuda_sources", "functions")]
    return hashlib.sha256(json.dumps([texts, inline]).encode()).hexdigest()


def _texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else dict(value) if isinstance(value, Mapping) else list(value or ())


def _newest(name: str) -> Path:
    """Return the newest library of an extension that is no Python module; each version has a name of its own."""
    from torch.utils import cpp_extension

    folder = Path(cpp_extension._get_build_directory(name, verbose=False))  # noqa: SLF001
    return max(folder.glob(f"{name}*.so"), key=lambda path: path.stat().st_mtime)
