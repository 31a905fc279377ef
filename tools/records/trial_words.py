"""The contents of each trial in a few words, for a person who reads in which one a kernel failed.

docs/trials.md says how they are made.
"""

from __future__ import annotations

import re

from ridgeline.tools.records import trial_names as names

LATE = "right for its first calls only: "
"""The beginning of the sentence where the same trial was passed before."""
CONTENTS = {
    "tweaked_0": "one row of every input replaced",
    "tweaked_1": "part of a row of every input replaced, and a row of every parameter",
    "tweaked_2": "part of a row of every input replaced, and a number of every parameter",
    names.SHIFTED: "inputs 3x + 2",
    names.ROW_SCALED: "each row of another size",
    names.BLOCKED: "runs of rows and of columns lifted",
    names.APART: "runs of rows that share hardly a column",
    names.INTEGERS: "small whole numbers",
    names.OUTLIERS: "few numbers far above all others",
    names.FEW_OUTLIERS: "numbers far above all others, in few rows",
    names.MIXTURE: "a mixture of two draws",
    names.CROWDED: "most numbers of an input are one of them",
    names.CROWDED_HIGH: "most numbers of an input are its largest",
    names.MOVED_COPY: "inputs nearly copies of one another, moved",
    names.PARALLEL_ROWS: "rows that equal another argument's, or are parallel or opposite to them",
    names.MORE_PARALLEL_ROWS: "half of the rows equal another argument's, or are parallel or opposite to them",
    names.SOLID: "masks, labels and numbers in connected areas",
    names.CORRIDOR: "masks that are winding corridors",
    names.SHARED_NUMBERS: "whole numbers that inputs share or repeat, marks among them, and limits among floats",
    names.TINY_NUMBERS: "tiny numbers in some rows and at single places",
    names.NOT_FINITE: "NaN and infinities in some rows of inputs",
    names.ONE_NAN: "one NaN in an input",
    names.ONE_INFINITE: "one infinity in an input",
    names.NEAR_ONE: "numbers near one in size",
    names.ORDER_ONE: "small parameters brought to order one",
    names.LARGE_INPUTS: "larger inputs",
    names.SMALL_INPUTS: "smaller inputs",
    names.LARGE_MATRICES: "larger matrices among the parameters",
    names.LARGE_VECTORS: "larger vectors among the parameters",
    names.SMALL_PARAMETERS: "smaller parameters of one sign",
    names.LARGE_SCALARS: "larger scalars",
    names.SMALL_SCALARS: "smaller scalars",
    names.SMALL_APART: "smaller parameters and scalars, and runs of rows that share hardly a column",
    names.LARGE_BLOCKED: "larger matrices, and runs of rows and of columns lifted",
    names.NEAR_IDENTITY: "square matrices near the identity",
    names.SMALL_NEAR_IDENTITY: "square matrices near a shifted identity, all else smaller",
    names.LARGE_DIAGONALS: "square matrices with large diagonals",
    names.BANDED: "square matrices with little beyond the diagonal's neighbours",
    names.BANDED_HIGH: "square matrices with much beyond the diagonal's neighbours",
    names.NEAR_ROWS: "half of the rows near others",
    names.NARROW: "numbers near their mean",
    names.NEAR_SINGULAR: "symmetric matrices nearly singular",
    names.RAISED_MATRICES: "matrices moved up as a whole",
    names.LOWERED_MATRICES: "matrices moved down as a whole",
    names.RAISED_VECTORS: "vectors and scalars moved up as a whole",
    names.LOWERED_VECTORS: "vectors and scalars moved down as a whole",
    names.FAR_CHOICES: "choices that depend on far parts of the inputs",
    names.SILENT_LATE: "inputs zero after a first part",
    names.SILENT_EARLY: "inputs zero before a last part",
    names.HELD_LATE: "inputs one number after a first part",
    names.HELD_EARLY: "inputs one number before a last part",
    **dict.fromkeys(names.UNEVEN, "one argument larger beside the others, or smaller"),
    names.AS_MADE: "inputs as drawn, parameters as the module makes them",
    names.SCALARS: "other values of the scalars",
    names.MIXED_SIGNS: "half of the signs changed",
    names.FEW_SIGNS: "few signs changed",
    names.OPPOSITE_SIGNS: "all signs changed",
}
"""By trial that has one name; the nominal ones are told by other words (`tools/wording.py`)."""

_ALONE, _EXTRA = rf"{names.ALONE}_\w+", r"extra_\d+"
_BEGINNING = re.compile(
    rf"^((?:{LATE})?(?:{'|'.join([*CONTENTS, _ALONE, _EXTRA])}))(?=(?: \(secret \d+\))?: )",
)


def with_contents(said: str) -> str:
    """Return a failed comparison's sentence with the contents of its trial, by whose name it begins, behind that name."""
    found = _BEGINNING.match(said)
    return said if found is None else f"{found[1]} ({contents_of(found[1].removeprefix(LATE))}){said[found.end() :]}"


def contents_of(trial: str) -> str:
    """Return what a trial's contents are, "" for one that is told by other words."""
    if re.fullmatch(_ALONE, trial):
        return "one argument alone of another draw"
    return "further inputs like those of get_inputs()" if re.fullmatch(_EXTRA, trial) else CONTENTS.get(trial, "")
