"""The kernels of `aa/` for its one reference, at a chosen size: FORM:MB, megabytes that one call reads and writes."""

from __future__ import annotations

from pathlib import Path

from kernel import kernel_of

from ridgeline.tools.records.problem import Device, Target
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass

FOLDER = Path(__file__).parent / "aa"
ROW_BYTES = 4096 * 4


def form_problem(case: str, device: Device) -> Target:
    """Return the problem of a case, named after its form and not yet described."""
    form, size = case.split(":")
    rows = max(int(float(size) * 1e6 / 2 / ROW_BYTES), 1)
    reference = (FOLDER / "affine.py").read_text().replace("ROWS = 2048", f"ROWS = {rows}")
    return Target(
        name=form, reference_source=reference, interface=Interface.C, tolerance=PrecisionClass.FP32, device=device
    )


def form_kernel(problem: Target, *, note: str = "") -> Candidate:
    """Return the form's kernel; one with another note is another source, which is built by itself."""
    source = (FOLDER / f"{problem.name}.{problem.language}").read_text()
    return kernel_of(problem, f"{source}// {note}\n" if note else source, name=problem.name)
