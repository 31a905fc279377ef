"""Exported references, and a way to run composed kernels against them in the sandbox."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from tests.candidates import candidate_of
from tests.environments import child_environment
from tests.one_unit import Part, one_unit, units

from ridgeline.graph.offline.program.read import read_program
from ridgeline.tools.build import messages
from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.records.problem import DescribedTarget, Description, Device, Signature
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Role
from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, claim_workdir, probe_sandbox

HERE = Path(__file__).parent
ERRORS = {"bfloat16": 8e-3, "float16": 1e-3}
FLOAT32_ERROR = 1e-5
DEVICE = Device(
    kind=DeviceKind.CPU, name="cpu", arch="native", uuid="cpu", cores=2, memory_bytes=1 << 33, cache_bytes=1 << 25
)


@dataclass(frozen=True)
class Reference:
    name: str
    description: Description
    arrays: dict

    @property
    def program(self):
        return read_program(self.description)

    @property
    def outputs(self):
        return self.description.signature.with_role(Role.OUTPUT)


def load_reference(folder, name):
    data = json.loads((folder / f"{name}.json").read_text())
    signature = Signature.from_json(data["signature"])
    description = Description(
        signature=signature,
        reference_graph=data["graph"],
        compulsory_bytes=0,
        flops=0,
        reference_sha256="",
        torch_version="",
    )
    return Reference(name, description, dict(np.load(folder / f"{name}.npz")))


SCRIPTS = ("rowwise", "matmul", "convolution")
EXPORT_LIMIT_S = 200


class Exports:
    """The scripts in references/, 10 s each, started together and once for all workers."""

    def __init__(self, folder):
        self.folder, self.begun = folder, None
        with contextlib.suppress(FileExistsError):  # another worker began them
            (folder / "exporting").mkdir()
            for name in SCRIPTS:
                (folder / f"exported-{name}").mkdir()
            script = str(HERE / "references" / "together.py")
            self.begun = subprocess.Popen([sys.executable, script, str(folder), *SCRIPTS], env=child_environment())

    def pytest_sessionfinish(self):
        if self.begun:
            self.begun.wait()


def pytest_collection_finish(session):
    """Begin the exports before the first test, where one needs them: no worker waits until they have ended."""
    asked = any("exports" in getattr(item, "fixturenames", ()) for item in session.items)
    if asked and not session.config.option.collectonly:
        own = session.config._tmp_path_factory.getbasetemp()
        shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
        session.config.pluginmanager.register(Exports(shared), "reference-exports")


@pytest.fixture(scope="session")
def exports(pytestconfig):
    begun = pytestconfig.pluginmanager.get_plugin("reference-exports")
    return lambda name: exported(begun.folder / f"exported-{name}")


@pytest.fixture(scope="session")
def references(exports):
    return exports("rowwise")


@pytest.fixture(scope="session")
def products(exports):
    return exports("matmul")


@pytest.fixture(scope="session")
def convolutions(exports):
    return exports("convolution")


def exported(folder):
    """Return a script's references by name, when it has ended."""
    status, until = Path(f"{folder}.status"), time.monotonic() + EXPORT_LIMIT_S
    while not (status.exists() and status.read_text()):
        assert time.monotonic() < until, f"{folder.name} did not end"
        time.sleep(0.1)
    assert status.read_text() == "0\n"
    return {path.stem: load_reference(folder, path.stem) for path in sorted(folder.glob("*.json"))}


def pytest_itemcollected(item):
    """One tier is enough here: what a composed kernel computes does not depend on how it is confined."""
    item.add_marker(pytest.mark.any_tier)


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("kernels"), Sandbox(probe_sandbox().tier))


@pytest.fixture(scope="session")
def cuda_bench(tmp_path_factory):
    """Builds CUDA sources in one batch, as the product does; no GPU is needed for that."""
    folder = tmp_path_factory.mktemp("cuda")
    folder.chmod(0o755)
    gpu = replace(DEVICE, kind=DeviceKind.CUDA, name="gpu", arch="sm_90a", uuid="GPU-0", cores=132)
    compiler = Compiler(Sandbox(probe_sandbox().tier), folder / "cache", gpu)

    def build(kernels):
        """Return the builds of the units that hold a (reference, source) for each name."""
        signatures = {name: reference.description.signature for name, (reference, _) in kernels.items()}
        parts = [Part(name=n, signature=signatures[n], source=source) for n, (_, source) in kernels.items()]
        tasks = []
        for unit in units(parts, DeviceKind.CUDA):
            problem = replace(problem_of(kernels[unit[0].name][0]), device=gpu)
            tasks.append(task_of(problem, len(tasks), one_unit(unit, DeviceKind.CUDA), "cu"))
        # a warning may come after what ptxas says of many kernels
        with mock.patch.object(messages, "LOG_BYTES", 1 << 20):
            return asyncio.run(compiler.compile_batch(tasks))

    return build


def problem_of(reference):
    return DescribedTarget(
        name=reference.name,
        reference_source="",
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=DEVICE,
        description=reference.description,
    )


def task_of(problem, number, source, language):
    candidate = candidate_of(source, name=f"k{number}", language=language)
    return CompileTask(problem=problem, candidate=candidate)


class Bench:
    """Builds kernels of one reference, those that ask for the same as one unit, and runs them in one confined process."""

    def __init__(self, folder, sandbox):
        folder.chmod(0o755)
        self.folder, self.sandbox, self.count = folder, sandbox, 0
        self.compiler = Compiler(sandbox, folder / "cache", DEVICE)

    def build(self, reference, sources, flags):
        """Return the library of each source, k0, k1, and so on; `flags` is a line of each, or nothing."""
        signature, problem = reference.description.signature, problem_of(reference)
        parts = [Part(name=f"k{i}", signature=signature, source=s + flags) for i, s in enumerate(sources)]
        groups = units(parts, DeviceKind.CPU)
        texts = [one_unit(unit, DeviceKind.CPU) for unit in groups]
        builds = asyncio.run(self.compiler.compile_batch([task_of(problem, i, t, "cpp") for i, t in enumerate(texts)]))
        for build, text in zip(builds, texts, strict=True):
            assert build.library_path, f"{reference.name}: {build.reason}\n{build.log}\n{text}"
        return {part.name: Path(b.library_path) for unit, b in zip(groups, builds, strict=True) for part in unit}

    def run(self, reference, sources, flags=""):
        """Return, for each source, its outputs as float64 arrays."""
        libraries = self.build(reference, sources, flags)
        self.count += 1
        folder = self.folder / f"{reference.name}-{self.count}"
        folder.mkdir()
        tensors, scalars = inputs_of(reference)
        for name, data in tensors.items():
            (folder / name).write_bytes(data.tobytes(order="A"))  # as it lies in memory, transposed or not
        sizes = [int(np.prod(o.shape)) * np.dtype(storage(o.dtype)).itemsize for o in reference.outputs]
        copies = {library: f"{name}.so" for name, library in libraries.items()}
        for library, copy in copies.items():
            shutil.copy(library, folder / copy)
        names = [f"k{i}" for i in range(len(libraries))]
        kernels = {name: copies[libraries[name]] for name in names}
        job = {"inputs": list(tensors), "scalars": scalars, "outputs": sizes, "kernels": kernels}
        (folder / "job.json").write_text(json.dumps(job))
        shutil.copy(HERE / "confined_host.py", folder / "confined_host.py")
        claim_workdir(folder)
        confined = Confined(
            command=("/usr/bin/python3", str(folder / "confined_host.py"), str(folder)),
            workdir=folder,
            env={"OMP_NUM_THREADS": "2"},
            limits=Limits(wall_s=60, processes=8),
        )
        ended, text = self.sandbox.run(confined)
        assert ended.is_success, f"{reference.name}: {ended} {text}"
        return [[read_output(folder / f"{n}.out{i}", o) for i, o in enumerate(reference.outputs)] for n in names]

    def check(self, reference, sources, flags=""):
        """Run the sources and assert that each computes what the reference does."""
        allowed = max(ERRORS.get(o.dtype, FLOAT32_ERROR) for o in reference.outputs)
        for outputs, source in zip(self.run(reference, sources, flags), sources, strict=True):
            error = worst_error(reference, outputs)
            assert error < allowed, f"{reference.name}: relative error {error}\n{source}"


def inputs_of(reference):
    arrays = [v for k, v in reference.arrays.items() if k.startswith("in_")]
    tensors = {f"in_{i}": v for i, v in enumerate(arrays) if v.ndim}
    return tensors, [float(v) for v in arrays if not v.ndim]


def storage(dtype):
    return {"bfloat16": "uint16"}.get(dtype, dtype)


def read_output(path, spec):
    data = np.fromfile(path, dtype=storage(spec.dtype))
    if spec.dtype == "bfloat16":
        data = (data.astype(np.uint32) << 16).view(np.float32)
    return data.astype(np.float64).reshape(spec.shape)


def relative_error(got, expected):
    """Return the judge's measure, infinite where NaN or infinity stand at other places."""
    finite = np.isfinite(expected)
    same = np.array_equal(np.isnan(got), np.isnan(expected)) and np.array_equal(got[~finite], expected[~finite], True)
    if not same:
        return np.inf
    got, expected = got[finite], expected[finite]
    return float(np.linalg.norm(got - expected) / max(np.linalg.norm(expected - expected.mean()), 1e-30))


def worst_error(reference, outputs):
    expected = [reference.arrays[f"out_{i}"] for i in range(len(outputs))]
    return max(relative_error(g, e) for g, e in zip(outputs, expected, strict=True))
