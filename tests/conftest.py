"""What tests of several rooms share: the sandbox tiers, which tests run, and one torch extension.

The extension is shared because stock torch headers take half a minute to compile.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import re
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ridgeline.tools.build import header
from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.request_cost import nothing_library
from ridgeline.tools.records.problem import ArgSpec, DescribedTarget, Device, Signature
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Interface, PrecisionClass, Role, Status
from ridgeline.tools.runner.native_host import fault_watcher, native_host
from ridgeline.tools.sandbox.sandbox import Sandbox, Tier, probe_sandbox, reason_against
from tests.candidates import candidate_of
from tests.descriptions import description_of
from tests.first_cases import FirstCases
from tests.judged_again import JudgedAgain
from tests.marked_files import MarkedFiles
from tests.originals import hold_originals
from tests.rewritten import rewrite_own_share
from tests.warm_judge import WarmJudges

ROWS, COLS = 4, 8
FEWER_HEADERS = "#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n#include <vector>\n"
"""What the extension uses of torch/extension.h, which takes g++ twice as long."""
TIERS = "RIDGELINE_TEST_TIERS"
"""Tiers that have to work here, "AB" or "B": the run ends where one does not, and everything runs in the first of them."""


def pytest_configure(config: pytest.Config) -> None:
    """Hide bubblewrap, also from every process of a test, where the run is one of tier B.

    A name that cannot be run comes first on PATH, so that what Ridgeline itself does without bubblewrap is what is tested.
    """
    config.pluginmanager.register(ConfinedStarts())
    config.pluginmanager.register(MarkedFiles(config.option.markexpr))
    config.pluginmanager.register(FirstCases())
    config.pluginmanager.register(JudgedAgain())
    gc.disable()  # until all is collected, most of which stays: a fifth of the time that it takes
    _lock_devices_alone(config)
    _share_the_machine(config)
    _read_authorities_once()
    rewrite_own_share(config)
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    config.add_cleanup(hold_originals())
    if required_tiers()[:1] == [Tier.LANDLOCK]:
        _hide_bubblewrap(config)
    _begin_original_of_judges(config)


def _hide_bubblewrap(config: pytest.Config) -> None:
    folder = tempfile.TemporaryDirectory(prefix="ridgeline-no-bubblewrap-")
    config.add_cleanup(folder.cleanup)
    hidden = Path(folder.name, "bwrap")
    hidden.write_text("#!/bin/sh\nexit 1\n")
    hidden.chmod(0o755)
    os.environ["PATH"] = f"{folder.name}{os.pathsep}{os.environ['PATH']}"


def _begin_original_of_judges(config: pytest.Config) -> None:
    """Begin the imports that judges of a whole run of timed tests wait for: a core beside its collection has done them."""
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.collectonly
    if is_whole and re.search(r"(?<!not )\btiming\b", config.option.markexpr):
        judges = WarmJudges()
        config.add_cleanup(judges.close)
        judges.begin()


def _lock_devices_alone(config: pytest.Config) -> None:
    """Give each of the workers of a run device locks of its own: what they run side by side depends on no time.

    Else a worker waits for minutes in all, until the searches of another have let go of the CPU.
    """
    if os.environ.get("PYTEST_XDIST_WORKER"):
        folder = tempfile.TemporaryDirectory(prefix="ridgeline-locks-")
        config.add_cleanup(folder.cleanup)
        os.environ["RIDGELINE_LOCK_DIR"] = folder.name


SIDE_BY_SIDE = {
    "OMP_NUM_THREADS": "1",  # beside the other workers a second thread waits for one that is not running
    "OMP_WAIT_POLICY": "PASSIVE",  # and one that a test asks for sleeps meanwhile
    "MALLOC_MMAP_THRESHOLD_": "33554432",  # a tensor's memory is taken again, not asked of the kernel page by page:
    "MALLOC_TRIM_THRESHOLD_": "536870912",  # a tenth of the time of the judge's gradings
}
"""Variables of processes that tests start side by side; what is measured, and every runner, has its own.

A judge that is started by itself has too; one that is a copy has as many threads as are named here.
"""


def _share_the_machine(config: pytest.Config) -> None:
    """Have the workers use a core each; they inherit it, since in their own configuration it comes too late."""
    if config.getoption("numprocesses", None):
        for name, value in SIDE_BY_SIDE.items():
            os.environ.setdefault(name, value)


def _read_authorities_once() -> None:
    """Share the TLS contexts of models' clients, of which no test uses one: each reads the authorities in a core's 30 ms."""
    ssl.create_default_context = cache(ssl.create_default_context)


class ConfinedStarts:
    """Sees the builders and runners that this process starts, so that no test of them goes without its mark."""

    def __init__(self) -> None:
        self._seen: list[str] = []
        sys.addaudithook(self._look)

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "subprocess.Popen":
            return
        words = [os.fsdecode(word) for word in arguments[1]]
        is_confined = "guard" in words and "probe" not in words  # the probe of a tier starts a guard too
        if is_confined or os.path.basename(words[0]) == "ninja" or "ridgeline.tools.local" in words:
            self._seen.append(" ".join(words))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Fail a test that starts a confined process in one tier only.

        A fixture of a module or session belongs to the test that first asked for it.
        """
        seen, self._seen = self._seen, []
        names = {marker.name for marker in item.iter_markers()}
        is_decided = names & {"sandboxed", "any_tier", "gpu"} or "each_tier" in getattr(item, "fixturenames", ())
        yield
        if seen and not is_decided:
            pytest.fail(
                f"mark it `sandboxed`, so that it runs in tier B too: it started {seen[0][:200]}", pytrace=False
            )


def pytest_sessionstart(session: pytest.Session) -> None:
    """End the run where a tier that has to work does not."""
    missing = {tier: reason for tier in required_tiers() if (reason := reason_against(tier))}
    if missing:
        pytest.exit("; ".join(f"tier {tier} cannot be tested: {why}" for tier, why in missing.items()), returncode=1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow unless `-m` names it, so that `-m gpu` or `-m timing` takes minutes.

    Files with a test marked `long` come first, each whole: side by side, no worker is left alone with one at the end.
    """
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)
    if "slow" in config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


def pytest_collection_finish() -> None:
    """Collect garbage from here on, and never look through what is there already."""
    gc.freeze()
    gc.enable()


def required_tiers() -> list[Tier]:
    """Return the tiers that RIDGELINE_TEST_TIERS names, in its order."""
    return [Tier(letter) for letter in os.environ.get(TIERS, "")]


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that everyone may pass through: only the sandbox protects what lies in it (pytest's own is closed)."""
    with tempfile.TemporaryDirectory(prefix="ridgeline-open-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session", params=[Tier.BUBBLEWRAP, Tier.LANDLOCK], ids=["A", "B"])
def each_tier(request: pytest.FixtureRequest) -> Tier:
    """Each tier that works here."""
    reason = reason_against(request.param)
    if reason:
        pytest.skip(f"tier {request.param}: {reason}")
    return request.param


@pytest.fixture(scope="session")
def warm_judges() -> Iterator[WarmJudges]:
    judges = WarmJudges()
    yield judges
    judges.close()


@pytest.fixture(scope="module")
def warm_judge(warm_judges: WarmJudges) -> Iterator[None]:
    """Every judge of the module begins with its imports done, which spares five seconds of a core for each.

    So do those of its engines, but not those of a command that is a process of its own.
    """
    with warm_judges.serving():
        yield


@pytest.fixture(scope="session")
def hosts(pytestconfig: pytest.Config) -> Path:
    """What runners need beside their candidates, built once: a copy of it is the folder `host` of another cache.

    It lies where the torch extension does.
    """
    device = detect_device("cpu")
    cache = pytestconfig.cache.mkdir(f"hosts-{device.arch}")
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        native_host(cache)
        fault_watcher(cache)
        nothing_library(cache, device)
    return cache / "host"


@pytest.fixture(scope="session")
def graphs(pytestconfig: pytest.Config) -> Path:
    """The graphs of references that earlier judges exported, for half a second each: the folder `graphs` of another cache.

    It lies where the hosts do: the second part of a run finds what the first one left.
    """
    return pytestconfig.cache.mkdir("graphs")


def _arguments() -> Signature:
    """Return the extension's arguments; it reads every size from its tensors."""
    x = ArgSpec(name="x", role=Role.INPUT, shape=(ROWS, COLS), strides=(COLS, 1))
    mode = ArgSpec(name="mode", role=Role.INPUT, kind=ArgKind.SCALAR, dtype="int64", value=0)
    weight = ArgSpec(name="weight", role=Role.PARAMETER, shape=(COLS,), strides=(1,), source="weight")
    return Signature(args=(x, mode, weight, replace(x, name="out", role=Role.OUTPUT)))


@pytest.fixture(scope="session")
def torch_extension(pytestconfig: pytest.Config) -> Path:
    """The library of cheats/torch_extension.cpp: `forward(x, mode, weight)`, built once by each tier.

    It lies beside what pytest keeps between runs: the workers of a run and the run after it read the same build.
    """
    tier = probe_sandbox().tier
    folder = pytestconfig.cache.mkdir(f"torch-extension-{tier}")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _extension(folder, Sandbox(tier))


def _extension(folder: Path, sandbox: Sandbox) -> Path:
    device = Device(kind=DeviceKind.CPU, name="t", arch="t", uuid="cpu", cores=2, memory_bytes=1 << 30, cache_bytes=1)
    problem = DescribedTarget(
        name="t",
        reference_source="",
        interface=Interface.TORCH,
        tolerance=PrecisionClass.FP32,
        device=device,
        description=description_of(_arguments()),
    )
    source = (Path(__file__).parent / "cheats" / "torch_extension.cpp").read_text()
    candidate = candidate_of(source, interface="torch")
    compiler = Compiler(sandbox, folder, device)
    # A run in the second tier comes after one in the first, which has built it with all that a candidate gets.
    is_second = required_tiers() == [Tier.LANDLOCK]
    fewer = mock.patch.object(header, "_torch_includes", return_value=FEWER_HEADERS) if is_second else nullcontext()
    with asyncio.Runner() as runner, fewer:
        (build,) = runner.run(compiler.compile_batch([CompileTask(problem=problem, candidate=candidate)]))
    assert build.status is Status.OK, build.log
    assert build.library_path is not None
    return Path(build.library_path)
