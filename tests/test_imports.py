"""One installed name, and heavy libraries only where they belong."""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ridgeline"
ROOMS = ("graph", "tools", "problems", "checkpoints")

REFERENCES = ("problems/*/reference.py",)

TORCH_FILES = (
    *(
        "tools/*/worker/*",
        "tools/modelnew/*",
        "problems/live/*",
        "graph/library/winner_module.py",
        "graph/library/other_model.py",
        "graph/shipping/shipped/*",
    ),
    *REFERENCES,
)
"""The processes that hold a reference or a torch candidate, what two of them share, a module for the caller's own process
with what compares the caller's model with the reference, what it and a shipped package call a kernel by, and the references
themselves."""

MCP_FILES = ("graph/mcp/*",)
"""The server, which an extra of the package brings the libraries for."""

LANG_FILES = ("graph/*", "tools/toolbox.py", "checkpoints/storage/saver.py")


def package_files() -> list[Path]:
    return sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


@cache
def imported_roots(path: Path) -> frozenset[str]:
    roots: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            roots.add((node.module or "").split(".")[0])
    return frozenset(roots)


def test_every_library_that_a_module_imports_is_declared() -> None:
    """A library that only another one brings is gone the day that one does without."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}
    optional = {canonicalize_name(Requirement(text).name) for text in project["optional-dependencies"]["mcp"]}
    distributions = metadata.packages_distributions()
    own = {*sys.stdlib_module_names, "ridgeline"}
    imported = {(path, root) for path in package_files() for root in imported_roots(path) - own}
    undeclared = [
        f"{path}: {root}"
        for path, root in sorted(imported)
        if not (declared | (optional if is_among(path, MCP_FILES) else set()))
        & {canonicalize_name(name) for name in distributions.get(root, ())}
    ]
    assert undeclared == []


def is_among(path: Path, patterns: Sequence[str]) -> bool:
    return any(fnmatch(str(path), pattern) for pattern in patterns)


def module_name(path: Path) -> str:
    return "ridgeline." + ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the checkout, with the installed ridgeline when there is one."""
    is_installed = any(True for _ in metadata.distributions(name="ridgeline"))
    environment = os.environ | ({} if is_installed else {"PYTHONPATH": "src"})
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_of_the_checkout_is_the_package_it_is_imported_as(room: str) -> None:
    assert (PACKAGE / room).is_symlink()
    assert (PACKAGE / room).resolve() == ROOT / room


def importers(*roots: str, but: tuple[str, ...] = ()) -> list[str]:
    """Name the modules that import one of these libraries (`name*`: each that begins so), but for some patterns."""
    others = [path for path in package_files() if not is_among(path, but)]
    assert others
    return [f"{path}: {root}" for path in others for root in imported_roots(path) if is_among(Path(root), roots)]


def test_no_module_imports_a_room_by_its_bare_name() -> None:
    assert importers(*ROOMS) == []


def test_torch_is_imported_only_with_a_reference_or_a_torch_candidate() -> None:
    assert importers("torch", but=TORCH_FILES) == []


def test_langgraph_and_langchain_stay_in_their_room() -> None:
    assert importers("langgraph*", "langchain*", but=LANG_FILES) == []


def test_importing_every_other_module_loads_no_torch() -> None:
    modules = [
        module_name(path)
        for path in package_files()
        if not is_among(path, TORCH_FILES) and path.name not in ("run.py", "__main__.py")
    ]
    code = f"import importlib, sys\nfor name in {modules!r}:\n    importlib.import_module(name)\n"
    code += "print('LOADED' if 'torch' in sys.modules else 'ABSENT')"
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "ABSENT"


def test_importing_the_package_loads_nothing_heavy() -> None:
    done = run(
        "-c", "import sys, ridgeline\nprint({'torch', 'langgraph', 'langchain_core', 'numpy'} & set(sys.modules))"
    )
    assert done.stdout.strip() == "set()", done.stderr


def test_the_public_names_load_when_first_used() -> None:
    code = "import ridgeline\nprint([getattr(ridgeline, name).__module__ for name in ('search', 'evaluate', 'make_graph')])"
    done = run("-c", code)
    assert (
        done.stdout.strip()
        == "['ridgeline.graph.library.search', 'ridgeline.graph.library.evaluation', 'ridgeline.graph.build']"
    ), done.stderr


def test_the_public_exceptions_are_those_that_are_raised_and_load_nothing_else() -> None:
    code = (
        "import sys, ridgeline\n"
        "from ridgeline import InputError, EngineError, RidgelineError\n"
        "assert issubclass(InputError, RidgelineError) and issubclass(EngineError, RidgelineError)\n"
        "assert not {'pydantic', 'langgraph', 'torch'} & set(sys.modules)\n"
        "try:\n    ridgeline.open_run('absent')\n"
        "except InputError as error:\n    print(type(error) is ridgeline.RunError)\n"
    )
    done = run("-c", code)
    assert done.stdout.strip() == "True", done.stderr


def test_the_import_linter_sees_every_module() -> None:
    # In a process of its own: grimp reads the package from the path that lint-imports has, not from pytest's.
    code = "import grimp\nprint('\\n'.join(grimp.build_graph('ridgeline', cache_dir=None).modules))"
    done = run("-c", code)
    expected = {module_name(path) for path in package_files() if not is_among(path, REFERENCES)}
    assert expected - set(done.stdout.split()) == set(), done.stderr


def test_the_type_checker_sees_every_module() -> None:
    code = "".join(f"import {module_name(path)}\n" for path in package_files() if not is_among(path, REFERENCES))
    options = ["--config-file=", "--follow-imports=skip", "--no-incremental"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "-c", code],
        cwd=ROOT, env=os.environ | {"MYPYPATH": "src"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_line_runs_from_the_checkout() -> None:
    done = run("-m", "graph.run", "--help")
    assert done.returncode == 0, done.stderr
    assert "resume" in done.stdout


def test_the_command_line_loads_no_module_under_two_names() -> None:
    code = """
import runpy, sys
sys.argv = ["run", "--help"]
try:
    runpy.run_module("graph.run", run_name="__main__")
except SystemExit as stop:
    assert not stop.code
bare = [name for name in sys.modules if name.split(".")[0] in ("graph", "tools", "problems", "checkpoints")]
print("BARE", sorted(set(bare) - {"graph", "graph.run"}))
"""
    done = run("-c", code)
    assert done.stdout.splitlines()[-1:] == ["BARE []"], done.stderr


def test_a_lint_rule_bans_the_bare_names(tmp_path: Path) -> None:
    (tmp_path / "offender.py").write_text("import tools\nfrom graph.build import make_graph\nimport ridgeline.tools\n")
    command = [sys.executable, "-m", "ruff", "check", "--select", "TID251", "--no-cache", "--output-format", "concise"]
    done = subprocess.run(
        [*command, "--config", str(ROOT / "pyproject.toml"), str(tmp_path / "offender.py")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.count("TID251") == 2, done.stdout + done.stderr


def test_completion_offers_everything_public_before_it_is_loaded() -> None:
    code = (
        "import ridgeline, rlcompleter, sys\n"
        "assert set(ridgeline.__all__) <= set(dir(ridgeline)), dir(ridgeline)\n"
        "assert {'search', 'evaluate', 'make_graph'} <= set(dir(ridgeline))\n"
        "assert 'import_module' not in dir(ridgeline)\n"
        "assert not {'langgraph', 'ridgeline.graph.library.search'} & set(sys.modules)\n"
        "completer = rlcompleter.Completer({'ridgeline': ridgeline})\n"
        "print(completer.complete('ridgeline.make', 0))"
    )
    done = run("-c", code)
    assert done.stdout.startswith("ridgeline.make_graph"), done.stderr
