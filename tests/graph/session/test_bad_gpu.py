"""What the command line says of a GPU that cannot be used: one line with the next step and exit code 2, no traceback."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from tests.graph.cli.command_line import REFERENCE, ROOT, ridgeline_anew

from ridgeline.tools.build.toolchain import compiler_path
from ridgeline.tools.records.vocabulary import DeviceKind

needs_nvcc = pytest.mark.skipif(compiler_path(DeviceKind.CUDA) is None, reason="needs nvcc")
KERNEL = "void run(const float* x, float* out, void*, cudaStream_t stream) {}\n"


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "kernel.cu").write_text(KERNEL)
    path = tmp_path / "problem.yaml"
    path.write_text("name: mine\nreference: reference.py\ntargets: {cpu: {}, cuda: {}}\n")
    return path


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder with a driver of one GPU that does not exist; RIDGELINE_FAKE_… say how it answers."""
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("fake_driver.cpp")
    for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
        subprocess.run(["g++", "-shared", "-fPIC", str(source), "-o", str(folder / library)], check=True)
    return str(folder)


def told(problem: Path, *words: str, **environment: str) -> str:
    """Return the one line with which judging a file ends, or searching when the words ask for it."""
    folder = problem.parent
    command = ("run", str(problem)) if "--model" in words else ("evaluate", str(problem), str(folder / "kernel.cu"))
    end = ridgeline_anew(*command, "--device", "cuda", *words, cwd=folder, **environment)
    assert end.returncode == 2, end.stderr
    assert "Traceback" not in end.stdout + end.stderr
    (line,) = end.stderr.splitlines()
    return line


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has a GPU")
def test_no_gpu(problem: Path) -> None:
    line = "ridgeline: device cuda: no NVIDIA driver (libcuda.so.1) on this machine; use --device cpu"
    assert told(problem) == told(problem, "--model", "offline") == line


def test_a_driver_that_shows_no_gpu(problem: Path, fake_driver: str) -> None:
    assert told(problem, LD_LIBRARY_PATH=fake_driver, RIDGELINE_FAKE_INIT="100") == (
        "ridgeline: device cuda: the driver shows no GPU: see nvidia-smi and what CUDA_VISIBLE_DEVICES hides, or use "
        "--device cpu"
    )


@needs_nvcc
def test_a_driver_older_than_the_toolkit(problem: Path, fake_driver: str) -> None:
    line = told(problem, LD_LIBRARY_PATH=fake_driver, RIDGELINE_FAKE_CUDA="10020")
    assert line.startswith("ridgeline: Fake GPU: its driver (535.104.05, CUDA 10.2) is older than the toolkit (CUDA ")
    assert line.endswith("or put the nvcc of a CUDA 10 toolkit first in PATH")


@needs_nvcc
def test_a_gpu_that_the_toolkit_does_not_build_for(problem: Path, fake_driver: str) -> None:
    line = told(problem, LD_LIBRARY_PATH=fake_driver, RIDGELINE_FAKE_CAPABILITY="20")
    assert "does not build for sm_20: put the nvcc of an earlier one first in PATH, or use --device cpu" in line


def test_no_nvcc(problem: Path, fake_driver: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "g++").symlink_to("/usr/bin/g++")
    code = (
        "import sys; from ridgeline.tools.build import toolchain; toolchain._Nvcc.folder = '/nonexistent'; "
        "from ridgeline.graph.cli import main; sys.exit(main())"
    )
    end = subprocess.run(
        [sys.executable, "-c", code, "evaluate", str(problem), str(tmp_path / "kernel.cu"), "--device", "cuda"],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": str(tmp_path / "bin"), "LD_LIBRARY_PATH": fake_driver},
        capture_output=True,
        text=True,
    )
    assert (end.returncode, end.stderr) == (
        2,
        "ridgeline: no nvcc on this machine: install the CUDA toolkit, put its bin folder into PATH, or use --device cpu\n",
    )


@needs_nvcc
def test_a_gpu_busy_with_another_process(problem: Path, fake_driver: str) -> None:
    line = told(problem, LD_LIBRARY_PATH=fake_driver, RIDGELINE_FAKE_PROCESSES="1")
    assert line == (
        "ridgeline: GPU GPU-11111111-1111-1111-1111-111111111111 is busy with another process: pid 4100000000, 3072 MiB; "
        "end it, or choose another GPU with cuda:N"
    )


@pytest.mark.thorough
@needs_nvcc
@pytest.mark.skipif("+cpu" not in metadata.version("torch"), reason="this PyTorch is built with CUDA")
def test_a_pytorch_without_cuda(problem: Path, fake_driver: str) -> None:
    line = told(problem, LD_LIBRARY_PATH=fake_driver)
    assert line.startswith("ridgeline: device cuda: this PyTorch (") and "is built without CUDA: install one" in line
