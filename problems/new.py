"""A problem folder made from a reference: what `ridgeline new` writes."""

from __future__ import annotations

import ast
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from ridgeline.problems import names
from ridgeline.problems.files import read_text
from ridgeline.problems.folders import why_refused
from ridgeline.problems.schema import SCHEMA_PATH
from ridgeline.problems.spec import FILE_NAME, ToleranceClass, load_problem
from ridgeline.problems.syntax import named_dtypes, parse_reference, top_level_numbers
from ridgeline.tools.errors import ProblemError

REFERENCE_NAME = "reference.py"

TEMPLATE = """\
# Every key, its default and its meaning: docs/problem.md in Ridgeline's repository
# For an editor and a validator, the JSON schema: {schema}
name: {name}
reference: {reference}
interface: c          # c: plain native source | torch: extension source | module: Python file
tolerance: {tolerance}       # loosest class accepted: fp64 | fp32 | tf32 | fp16 | bf16 | fp8 | crfm
targets:
  # sizes replace the reference's top-level constants on that device{constants}
  cpu: {{sizes: {{}}}}
  cuda: {{sizes: {{}}}}
seeds: []             # kernels to start from, such as seeds/*.cpp
ideas: []             # your own ideas in plain words
search: {{rounds: 5, ideas: 4, implementations: 2, repairs: 2, strategy: branch}}
"""


def new_problem(
    name: str,
    reference: Path,
    out: Path = Path(),
    *,
    tolerance: ToleranceClass | None = None,
    check: Callable[[str, str], object] = lambda _source, _tolerance: None,
) -> Path:
    """Write `out/name/` with a copy of the reference and a problem.yaml that runs; return the latter's path.

    The folder appears whole or not at all. Without a tolerance the reference's own types say it. `check`
    gets the reference's text and the tolerance before anything is written, and may raise; it may take long, and so comes
    after every other mistake.

    Raises:
        ProblemError: a bad name, a reference without its parts, a folder that is already there, or a disk that refuses.
    """
    if not re.fullmatch(names.PATTERN, name):
        raise ProblemError(f"{name}: name must be {names.IN_WORDS}")
    source = read_text(reference, "reference")
    tree = parse_reference(source, str(reference))
    folder = out / name
    if folder.exists() or folder.is_symlink():
        raise ProblemError(f"{folder}: already exists; choose another name or remove it")
    if why := why_refused(folder):
        raise ProblemError(f"{folder}: {why}; choose another --out")
    chosen = tolerance or own_tolerance(named_dtypes(tree))
    check(source, chosen)
    try:
        publish(folder, {REFERENCE_NAME: source, FILE_NAME: _problem_yaml(name, tree, chosen)})
    except OSError as error:
        raise ProblemError(f"{folder}: cannot be written ({error.strerror}); choose another --out") from None
    return folder / FILE_NAME


def _problem_yaml(name: str, tree: ast.Module, tolerance: str) -> str:
    numbers = ", ".join(f"{key}: {value}" for key, value in top_level_numbers(tree).items())
    return TEMPLATE.format(
        name=name,
        schema=SCHEMA_PATH,
        reference=REFERENCE_NAME,
        tolerance=tolerance,
        constants=f": {numbers}" if numbers else "",
    )


def own_tolerance(dtypes: set[str]) -> str:
    """Outputs of 16 bits cannot be closer than their own rounding; who names float64 asks for its digits."""
    usual = "fp64" if dtypes & {"float64", "double"} else "fp32"
    half = "fp16" if dtypes & {"float16", "half"} else usual
    return "bf16" if "bfloat16" in dtypes else half


def publish(folder: Path, files: dict[str, str]) -> None:
    """Write a problem's files, by name, into a new or empty folder, which then holds all of them or none.

    Raises:
        ProblemError: they are no problem.
        OSError: the disk refuses.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for file_name, text in files.items():
            (draft / file_name).write_text(text, encoding="utf-8")
        load_problem(draft / FILE_NAME)
        draft.chmod(0o755)  # mkdtemp gives 0700, a folder that the sandbox's user could not read
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
