"""Problems made of a folder of KernelBench's files, which stay the user's: read as text, copied where the user says.

KernelBench (Ouyang et al., 2025, arXiv:2502.10517) keeps its problems as `KernelBench/levelN/NUMBER_NAME.py`, each with
`Model`, `get_inputs` and `get_init_inputs`: the form of a reference here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ridgeline.problems import names
from ridgeline.problems.files import read_text
from ridgeline.problems.new import REFERENCE_NAME, new_problem
from ridgeline.problems.spec import FILE_NAME, ToleranceClass, load_problem
from ridgeline.problems.syntax import missing_packages, parse_reference
from ridgeline.tools.errors import ProblemError

FOLDER = "KernelBench"

_LEVEL = re.compile(r"level(\d+)")
_FILE = re.compile(r"(\d+)_(.+)\.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBenchFile:
    """One problem file: `level2/12_Gemm_Multiply_LeakyReLU.py`."""

    level: int
    number: int
    path: Path

    @property
    def id(self) -> str:
        """Return what KernelBench's own tables call it: level and number."""
        return f"{self.level}/{self.number}"

    @property
    def problem_name(self) -> str:
        """Return a problem's name that no other file has: `kb2_12_gemm_multiply_leakyrelu`."""
        words = re.sub(r"[^a-z0-9]+", "_", self.path.stem.partition("_")[2].lower())
        return f"kb{self.level}_{self.number}_{words}"[: names.LONGEST].rstrip("_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Import of one file: its problem, or the reason why there is none."""

    file: KernelBenchFile
    problem: Path | None  # its problem.yaml
    code: str = ""  # "": it may run; else a word to count the reason by
    reason: str = ""


def kernelbench_files(path: Path, levels: tuple[int, ...] = ()) -> list[KernelBenchFile]:
    """Return the problem files under `path`, by level and number.

    Args:
        path: the repository, its folder `KernelBench`, a folder `levelN`, or one file in such a folder.
        levels: only these; all of them when empty.

    Raises:
        ProblemError: there is none.
    """
    if not path.exists():
        raise ProblemError(
            f"{path}: does not exist; give a copy of KernelBench's repository, a level's folder or a file"
        )
    found = [file for file in _found(path) if not levels or file.level in levels]
    if not found:
        wanted = " or ".join(f"level{level}" for level in levels) or "levelN"
        raise ProblemError(
            f"{path}: holds no {wanted}/NUMBER_NAME.py; give a copy of KernelBench's repository, or make a problem of a "
            "file of your own with `ridgeline new NAME --from FILE`"
        )
    return sorted(found, key=lambda file: (file.level, file.number, file.path.name))


def _found(path: Path) -> Iterator[KernelBenchFile]:
    if path.is_file():
        yield from _named(path.absolute())
        return
    root = path / FOLDER if (path / FOLDER).is_dir() else path
    folders = [root.absolute()] if _LEVEL.fullmatch(root.absolute().name) else sorted(root.absolute().glob("level*"))
    for folder in folders:
        for file in folder.glob("*.py"):
            yield from _named(file)


def _named(path: Path) -> Iterator[KernelBenchFile]:
    level, file = _LEVEL.fullmatch(path.parent.name), _FILE.fullmatch(path.name)
    if level and file:
        yield KernelBenchFile(level=int(level[1]), number=int(file[1]), path=path)


def import_file(file: KernelBenchFile, out: Path, tolerance: ToleranceClass = "fp32") -> Imported:
    """Make a problem of one file in `out/levelN/NAME`, or say why none can be made; one that is there is kept.

    Raises:
        ProblemError: the folder is there with another reference or tolerance, or cannot be written.
    """
    try:
        source = read_text(file.path, "import")
        tree = parse_reference(source, file.path.name)
    except ProblemError as error:
        return Imported(file=file, problem=None, code="form", reason=str(error))
    folder = out / f"level{file.level}"
    problem = folder / file.problem_name / FILE_NAME
    if problem.exists():
        _check_same(problem, source, tolerance)
    else:
        problem = new_problem(file.problem_name, file.path, folder, tolerance=tolerance)
    missing = missing_packages(tree)
    if missing:
        text = f"imports {', '.join(missing)}, not installed here; install it beside Ridgeline"
        return Imported(file=file, problem=problem, code="package", reason=text)
    return Imported(file=file, problem=problem)


def _check_same(problem: Path, source: str, tolerance: str) -> None:
    kept = load_problem(problem)
    if read_text(problem.parent / REFERENCE_NAME, f"{problem}: reference") != source:
        raise ProblemError(f"{problem.parent}: made of another file of this name; remove it or choose another --out")
    if kept.tolerance != tolerance:
        raise ProblemError(
            f"{problem}: has tolerance {kept.tolerance}, not {tolerance}; change it there, or choose another --out"
        )
