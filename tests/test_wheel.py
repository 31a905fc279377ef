"""What an installed Ridgeline is: one name, with its data, beside whatever else a host calls `tools` and `graph`."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

ROOT = Path(__file__).parents[1]
ROOMS = ("graph", "tools", "problems", "checkpoints")
BESIDE = (
    "docs",
    "examples",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "constraints.txt",
    "langgraph.json",
)
SOURCES = (*ROOMS, *BESIDE, "src", "pyproject.toml", "MANIFEST.in", "tests")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the checkout: setuptools writes into the tree it builds, and packs what an earlier build left there."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, copy / name, symlinks=True, ignore=ignore)
        else:
            shutil.copy(source, copy / name)
    (copy / "examples" / "host_app" / "runs").mkdir(exist_ok=True)
    (copy / "examples" / "host_app" / "runs" / "host.sqlite").write_text("left by somebody who tried the example")
    return copy


@pytest.fixture(scope="module")
def wheel(checkout: Path) -> Path:
    """Build the wheel."""
    copy = checkout
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(copy / "dist"), str(copy)], check=True, capture_output=True)
    return next((copy / "dist").glob("ridgeline-*.whl"))


@pytest.fixture(scope="module")
def sdist(checkout: Path) -> Path:
    """Build the source distribution and unpack it."""
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(checkout / "dist")]
    subprocess.run([*command, str(checkout)], check=True, capture_output=True)
    packed = next((checkout / "dist").glob("ridgeline-*.tar.gz"))
    with tarfile.open(packed) as archive:
        archive.extractall(checkout / "unpacked", filter="data")
    return checkout / "unpacked" / packed.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the wheel into a folder that stands before the checkout on the path."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(installed: Path, cwd: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"PYTHONPATH": str(installed), "RIDGELINE_HOME": str(cwd / "home")}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.thorough
def test_the_wheel_holds_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        roots = {name.split("/")[0] for name in archive.namelist()}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"ridgeline"}
    assert len(roots) == 2


def test_the_wheel_holds_every_module_and_every_data_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    suffixes = (".py", ".yaml", ".cpp", ".cu", ".h", ".hpp", ".json", ".j2")
    ours = {
        f"ridgeline/{path.relative_to(ROOT)}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.suffix in suffixes and "__pycache__" not in path.parts
    }
    assert ours - packed == set()
    assert "ridgeline/py.typed" in packed


def test_the_source_distribution_holds_what_the_wheel_is_made_of_and_the_pages(wheel: Path, sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("ridgeline/")}
    assert {name for name in packed if not (sdist / "src" / name).is_file()} == set()
    beside = [path for name in BESIDE for path in (ROOT / name, *(ROOT / name).rglob("*")) if path.is_file()]
    wanted = {path.relative_to(ROOT) for path in beside}
    wanted = {path for path in wanted if not {"__pycache__", "runs"} & {*path.parts}}
    assert {str(path) for path in wanted if not (sdist / path).is_file()} == set()
    assert not (sdist / "examples" / "host_app" / "runs").exists()
    assert not (sdist / "tests").exists(), "some of them without the others, and without what they use"


def test_the_metadata_is_valid_and_complete(installed: Path) -> None:
    text = next(installed.glob("*.dist-info/METADATA")).read_text()
    metadata = Metadata.from_email(text, validate=True)
    assert metadata.description_content_type == "text/markdown"
    assert str(metadata.description).startswith("# Ridgeline\n") and metadata.license_files == ["LICENSE"]
    assert (
        metadata.author and metadata.summary and metadata.keywords and metadata.classifiers and metadata.requires_python
    )
    assert metadata.license_expression == "Apache-2.0"
    ours = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)}
    assert ours <= set(metadata.classifiers)


def test_the_wheel_names_the_console_script(installed: Path) -> None:
    entry_points = next(installed.glob("*.dist-info/entry_points.txt")).read_text()
    assert "ridgeline = ridgeline.graph.cli:main" in entry_points


def test_the_shipped_problems_load_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = (
        "from ridgeline.problems import spec\n"
        "shipped = spec.shipped_problems()\n"
        "seeds = {name: spec.load_problem(path).seed_sources('cpu') for name, path in shipped.items()}\n"
        "print(spec.__file__, sorted(seeds))"
    )
    done = run(installed, tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    assert str(installed) in done.stdout
    assert "quickstart" in done.stdout


@pytest.mark.slow  # a whole search, baselines, torch.compile and certificate included
@pytest.mark.timeout(600)
def test_quickstart_runs_from_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    start = "import sys; from ridgeline.graph.cli import main; sys.exit(main())"
    arguments = ["--model", "offline", "--rounds", "1", "--ideas", "1", "--implementations", "1", "--bank", "none"]
    arguments += ["--tune-trials", "0"]
    problem = installed / "ridgeline" / "problems" / "quickstart" / "problem.yaml"
    done = run(installed, tmp_path, "-c", start, "run", str(problem), *arguments, "--run-dir", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert "quickstart" in json.dumps(result["problem"])
    assert result["best"]["speedup"] > 0


@pytest.mark.slow  # 20 s; tests/graph/library/test_search.py runs such a host from the checkout
@pytest.mark.timeout(600)
def test_a_host_with_its_own_tools_and_graph_searches_and_judges_a_kernel(installed: Path, tmp_path: Path) -> None:
    """A search that stops at the first look, and one kernel: every kind of process starts, without a certificate."""
    (tmp_path / "tools.py").write_text("NAME = 'the host has tools of its own'\n")
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "__init__.py").write_text("NAME = 'the host has a graph of its own'\n")
    (tmp_path / "app.py").write_text(
        "import graph, tools\n"
        "import ridgeline\n"
        "from ridgeline.problems.spec import load_problem, shipped_problems\n\n\n"
        "if __name__ == '__main__':\n"
        "    spec = load_problem(shipped_problems()['quickstart'])\n"
        "    kernels = spec.seed_paths()\n"
        "    at_once = spec.search.model_copy(update={'floor_margin': 1e9})\n"
        "    spec = spec.model_copy(update={'search': at_once, 'seeds': []})\n"
        "    result = ridgeline.search(spec, models=['offline'], rounds=1, run_dir='run')\n"
        "    assert result.state == 'at_floor', result\n"
        "    for judged in ridgeline.evaluate(spec, kernels):\n"
        "        print('JUDGED', judged.status, judged.precision_class)\n"
        "    assert graph.NAME.startswith('the host') and tools.NAME.startswith('the host')\n"
    )
    done = run(installed, tmp_path, "app.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"JUDGED (ok|untrusted) fp32", done.stdout), done.stdout  # a busy machine's clocks may disagree


EXAMPLES = {
    "agent_tool": ("main.py", "search_tool", "The search is done."),
    "host_app": ("main.py", "search_node", "quickstart: finished, "),
    "mcp_agent": ("agent.py", "ClientSession", '"name": "quickstart_kernel"'),
    "sub_agent": ("main.py", "subagent", "The sub-agent is done."),
}
"""The file that starts each example, a name that it imports, and words that it ends with."""


IMPORT_EACH = """
import os, runpy, sys
import ridgeline, ridgeline.graph.build
assert not {"main", "agent", "graph", "tools"} & set(sys.modules)
for file in sys.argv[1:]:
    child = os.fork()  # an example has modules of its own, named as another's are
    if not child:
        os.chdir(os.path.dirname(file))
        print(os.path.basename(os.getcwd()), ridgeline.__file__, *runpy.run_path(os.path.basename(file), run_name="looked_at"))
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0, file
"""
"""Looks at examples, each in a copy of one process: what most of them import takes two seconds."""


def copied(name: str, folder: Path) -> Path:
    """Copy an example out of the checkout and return the file that starts it."""
    shutil.copytree(ROOT / "examples" / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "runs"))
    return folder / name / EXAMPLES[name][0]


def test_every_example_is_tried() -> None:
    assert {folder.name for folder in (ROOT / "examples").iterdir() if folder.is_dir()} == set(EXAMPLES)


@pytest.mark.thorough
def test_an_example_finds_all_that_it_imports_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "-c", IMPORT_EACH, *(str(copied(name, tmp_path)) for name in EXAMPLES))
    assert done.returncode == 0, done.stderr
    looked_at = [line.split() for line in done.stdout.splitlines()]
    assert [name for name, *_ in looked_at] == list(EXAMPLES)
    for name, home, *names in looked_at:
        assert Path(home).is_relative_to(installed) and EXAMPLES[name][1] in names


@pytest.mark.slow  # a real search each
@pytest.mark.sandboxed
@pytest.mark.timing
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_to_its_end_from_the_wheel(installed: Path, tmp_path: Path, name: str) -> None:
    example = copied(name, tmp_path)
    done = run(installed, example.parent, example.name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert EXAMPLES[name][2] in done.stdout
