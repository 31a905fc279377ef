"""The stages of real kernels: built by the compiler in the sandbox, run there alone, read from what they print."""

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.candidates import candidate_of
from tests.descriptions import description_of

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.build.stages import slot_of, stage_names
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import SandboxError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.profile.stage_clocks import StageClocks, clock_stages, read_stages
from ridgeline.tools.records.problem import ArgSpec, DescribedTarget, Device, Signature
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Role, Status
from ridgeline.tools.runner.plan import runner_plan
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

SIGNATURE = Signature(
    args=(
        ArgSpec(name="x", role=Role.INPUT, shape=(4096,), strides=(1,)),
        ArgSpec(name="out", role=Role.OUTPUT, shape=(4096,), strides=(1,)),
    )
)
RUN = "void run(const float* __restrict__ x, float* __restrict__ out, void* workspace) {"
TWO_STAGES = f"""static float work(const float* x, int passes) {{
  float sum = 0;
  for (int p = 0; p < passes; ++p)
    for (int i = 0; i < 4096; ++i) sum = sum * 0.5f + x[i];
  return sum;
}}
{RUN}
  RIDGELINE_STAGE(long one);
  float a = work(x, 90);
  RIDGELINE_STAGE("short");
  a += work(x, 10);
  for (int i = 0; i < 4096; ++i) out[i] = a;
}}
"""
IN_THREADS = f"""{RUN}
#pragma omp parallel
  {{
    RIDGELINE_STAGE(inside)
    float sum = 0;
    for (int i = 0; i < 400000; ++i) sum = sum * 0.5f + x[i % 4096];
    out[0] = sum;
  }}
  RIDGELINE_STAGE(outside)
  float sum = 0;
  for (int i = 0; i < 400000; ++i) sum = sum * 0.5f + x[i % 4096];
  out[1] = sum;
}}
"""
LIES = f"""#include <cstdio>
#include <cstdlib>
{RUN}
  RIDGELINE_STAGE(honest);
  std::puts("calls 10 1000000\\nstage 5000 1\\nstage {slot_of("honest")} 1e400\\nstage 3 -1\\nstage {slot_of("honest")} 0.05");
  std::fflush(stdout);
  std::_Exit(0);
}}
"""


@pytest.fixture(scope="module")
def device() -> Device:
    return detect_device("cpu")


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    try:
        return Sandbox(probe_sandbox().tier)
    except SandboxError as missing:
        pytest.skip(str(missing))


class Kernels:
    """Builds and clocks sources."""

    def __init__(self, folder: Path, device: Device, sandbox: Sandbox) -> None:
        self._folder, self._sandbox, self._device = folder, sandbox, device
        self._problem = DescribedTarget(
            name="t",
            reference_source="",
            interface=Interface.C,
            tolerance=PrecisionClass.FP32,
            device=device,
            description=description_of(SIGNATURE),
        )

    def build(self, source: str, *, profiled: bool) -> Build:
        task = CompileTask(problem=self._problem, candidate=candidate_of(source), profiled=profiled)
        compiler = Compiler(self._sandbox, self._folder, self._device)
        with asyncio.Runner() as runner:
            (build,) = runner.run(compiler.compile_batch([task]))
        return build

    def clock(self, source: str) -> StageClocks:
        build = self.build(source, profiled=True)
        assert build.status is Status.OK, build.log
        return clock_stages(
            runner_plan(self._problem, build, self._folder).confined,
            stage_names(source),
            signature=SIGNATURE,
            library=Path(build.library_path or ""),
            device=self._device,
            sandbox=self._sandbox,
        )


@pytest.fixture
def kernels(open_path: Path, hosts: Path, device: Device, sandbox: Sandbox) -> Kernels:
    shutil.copytree(hosts, open_path / "host")
    return Kernels(open_path, device, sandbox)


@pytest.mark.timing
@pytest.mark.sandboxed
def test_stages_share_a_calls_time_in_the_order_of_the_source(kernels: Kernels) -> None:
    clocks = kernels.clock(TWO_STAGES)
    assert [stage.name for stage in clocks.stages] == ["long one", "short"]
    assert sum(stage.share for stage in clocks.stages) == pytest.approx(1)
    assert clocks.stages[0].ms > 1.5 * clocks.stages[1].ms > 0  # nine times the work: 7 to 11 times, alone
    assert clocks.call_ms is not None
    assert sum(stage.ms for stage in clocks.stages) == pytest.approx(clocks.call_ms, rel=0.3)


@pytest.mark.timing
@pytest.mark.sandboxed
def test_stage_in_all_threads_counts_as_long_as_one_beside_which_they_wait(kernels: Kernels) -> None:
    inside, outside = kernels.clock(IN_THREADS).stages
    assert (inside.name, outside.name) == ("inside", "outside")
    assert 0.3 < inside.ms / outside.ms < 3  # the same work: 0.9 to 1.6 alone; a sum would grow with cores


@pytest.mark.sandboxed
def test_candidate_that_prints_stages_itself_falsifies_its_own_alone(kernels: Kernels) -> None:
    clocks = kernels.clock(LIES)
    assert [(s.name, s.ms, s.share) for s in clocks.stages] == [("honest", 0.05, 1.0)]


@pytest.mark.sandboxed
def test_candidate_that_crashes_has_no_stages_and_a_reason(kernels: Kernels) -> None:
    clocks = kernels.clock(f"{RUN} RIDGELINE_STAGE(a); *static_cast<volatile int*>(nullptr) = 1; }}\n")
    assert clocks.stages == ()
    assert "did not finish" in clocks.missing


@pytest.mark.sandboxed
def test_stage_that_no_call_reaches_is_left_out(kernels: Kernels) -> None:
    clocks = kernels.clock(f"{RUN} if (x == nullptr) {{ RIDGELINE_STAGE(never); out[0] = 1; }} }}\n")
    assert clocks.missing == "no stage of the source was reached"


@pytest.mark.sandboxed
def test_judged_build_is_the_same_bytes_with_stages_and_without(kernels: Kernels) -> None:
    without = TWO_STAGES.replace("RIDGELINE_STAGE(long one);", "").replace('RIDGELINE_STAGE("short");', "")
    assert "RIDGELINE_STAGE" not in without
    libraries = [kernels.build(source, profiled=False).library_path for source in (TWO_STAGES, without)]
    first, second = (Path(path or "").read_bytes() for path in libraries)
    assert first == second
    clocked = kernels.build(TWO_STAGES, profiled=True).library_path
    assert b"ridgeline_stage_table" in Path(clocked or "").read_bytes()
    assert b"ridgeline_stage_table" not in first


def test_lines_out_of_bounds_are_passed_over() -> None:
    a, b = slot_of("a"), slot_of("b")
    clocks = read_stages(
        f"calls 2 4000000\nstage {a} 1.5\nstage {b} 0.5\nstage 1024 9\nstage {a} x\nstage 77 3\n", ["a", "b"]
    )
    assert [(s.name, s.ms, s.share) for s in clocks.stages] == [("a", 1.5, 0.75), ("b", 0.5, 0.25)]
    assert clocks.call_ms == 2
    assert read_stages("calls 0 5\nstage 1 1\n", ["a"]).missing == "the build with clocks told no times"
    assert read_stages("", ["a"]).stages == ()


def test_cycles_of_kernels_are_shares_of_a_call() -> None:
    a, b = slot_of("a"), slot_of("b")
    clocks = read_stages(f"calls 1 4000000\ncycles {a} 300\ncycles {b} 100\nstage {b} 2\n", ["a", "b"])
    assert [(s.name, s.ms, s.share) for s in clocks.stages] == [("a", 3.0, 0.75), ("b", 1.0, 0.25)]


def test_names_are_read_as_they_are_written() -> None:
    source = 'RIDGELINE_STAGE( load  tiles )\nRIDGELINE_STAGE("b.1"); RIDGELINE_STAGE(b.1)\nRIDGELINE_STAGE(x, y)'
    assert stage_names(source) == ("load tiles", "b.1")
    assert len(stage_names("".join(f"RIDGELINE_STAGE(s{i})" for i in range(100)))) == 32
