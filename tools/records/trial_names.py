"""The names of trials, which the judge makes and a verification asks for."""

from __future__ import annotations

from ridgeline.tools.records.vocabulary import Role

NOMINAL = ("nominal_0", "nominal_1")
TWEAKED = ("tweaked_0", "tweaked_1", "tweaked_2")
SHIFTED = "shifted"
"""The trial, and the kind of a timed set, whose numbers are three times as large, and moved to one side."""
ROW_SCALED = "row_scaled"
"""The trial, and the kind of a timed set, whose rows are of many sizes."""
MIXTURE = "mixture"
"""The trial whose inputs are made as those of the timed sets are."""
FEW_OUTLIERS = "few_outliers"
"""The trial whose inputs are made as those of a timed set that gets outliers: beside few large rows the others show."""
INTEGERS = "integers"
"""The trial of small whole numbers, on a set that was used before."""
OUTLIERS = "outliers"
"""The trial, and the kind of a timed set, with few numbers far above all others."""
BLOCKED = "blocked"
"""The trial, and the kind of a timed set, in which runs of rows and of columns are lifted."""
APART = "apart"
"""The trial in which runs of rows share hardly a column, and whole numbers and masks link near places; only where an input
has as many rows and columns, or such links. It is the kind of a timed set where there are links."""
TRANSFORMED = (*TWEAKED, SHIFTED, ROW_SCALED, BLOCKED, INTEGERS, OUTLIERS, FEW_OUTLIERS, MIXTURE)
CROWDED = "crowded"
"""The trial in which most numbers of an input are one of them; only where there are inputs that may be so."""
CROWDED_HIGH = "crowded_high"
"""The trial in which most numbers of an input are its largest; only where there are inputs that may be so."""
CROWDS = (CROWDED, CROWDED_HIGH)
MOVED_COPY = "moved_copy"
"""The trial in which inputs of one form are nearly copies of the first of them, moved; only where there are such."""
PARALLEL_ROWS = "parallel_rows"
"""The trial in which rows of an input equal another argument's, or are parallel or opposite; only where any may be."""
MORE_PARALLEL_ROWS = "more_parallel_rows"
"""The same of half of the rows, where so many leave the output to rounding: an output has to be finite there, no more."""
FINITE_ALONE = (MORE_PARALLEL_ROWS,)
"""The trials that ask of an output only that it is finite where it should be: its values are left to rounding."""
SOLID = "solid"
"""The trial whose masks, labels and numbers have connected areas; only where there are inputs that may have some."""
CORRIDOR = "corridor"
"""The trial whose masks are winding corridors, one of several of one shape nearly empty; only where there are such masks."""
SHARED_NUMBERS = "shared_numbers"
"""The trial in which whole numbers of one input come in another one too; only where there are two that may share some."""
NOT_FINITE = "not_finite"
"""The trial whose inputs hold NaN or infinities, many in some rows; only where the reference asks for them, and takes some."""
ONE_NAN, ONE_INFINITE = "one_nan", "one_infinite"
"""The trials in which one number of one of these inputs is NaN, or an infinity."""
ONE_NOT_FINITE = (ONE_NAN, ONE_INFINITE)
TINY_NUMBERS = "tiny_numbers"
"""The trial in some of whose rows, and at single places, inputs are tiny; only where there are inputs that may be so."""
ARRANGED = (
    *(MOVED_COPY, PARALLEL_ROWS, MORE_PARALLEL_ROWS, SOLID, CORRIDOR, SHARED_NUMBERS, TINY_NUMBERS, NOT_FINITE),
    *ONE_NOT_FINITE,
)
NEAR_ONE = "near_one"
"""The trial whose numbers are near one in size; only where much of a nominal output vanishes beside the rest of its row."""
ORDER_ONE = "order_one"
"""The trial in which parameters that are small, or zero, are of order one; only where there are such."""
LARGE_INPUTS = "large_inputs"
"""The trial whose inputs are larger, by the largest factor that leaves the output as well conditioned as it was."""
SMALL_INPUTS = "small_inputs"
"""The trial whose inputs are smaller, by the smallest factor that leaves it so: what drives a state keeps it from lasting."""
LARGE_MATRICES = "large_matrices"
"""As `large_inputs`, of parameters and buffers with two dimensions or more."""
LARGE_VECTORS = "large_vectors"
"""The same of the other ones, which are brought to one size."""
SMALL_PARAMETERS = "small_parameters"
"""The trial whose parameters and buffers of one sign are smaller, by the smallest factor that leaves the output so: rates,
dampings."""
LARGE_SCALARS = "large_scalars"
"""As `large_inputs`, of floating-point scalars."""
SMALL_SCALARS = "small_scalars"
"""As `small_inputs`, of floating-point scalars."""
SMALL_APART = "small_apart"
"""The trial whose parameters and buffers of one sign, and floating-point scalars, are smaller beside the inputs of `apart`."""
LARGE_BLOCKED = "large_blocked"
"""As `large_matrices`, beside the inputs of `blocked`: what stays alike from row to row keeps a gate open."""
NEAR_IDENTITY = "near_identity"
"""The trial whose square matrices, inputs, parameters and buffers, are near a multiple of the identity: as near as goes."""
SMALL_NEAR_IDENTITY = "small_near_identity"
"""The same near a shifted identity, beside smaller other arguments: what drives a state keeps it from lasting."""
LARGE_DIAGONALS = "large_diagonals"
"""The trial whose square matrices have diagonals as large as goes, and keep their other numbers."""
NEAR_IDENTITIES = (NEAR_IDENTITY, SMALL_NEAR_IDENTITY, LARGE_DIAGONALS)
BANDED, BANDED_HIGH = "banded", "banded_high"
"""The trials whose square matrices have less, and more, than usual beyond the diagonal and its neighbours: steps of a walk, and
of the shortest one, lead along a line."""
BANDS = (BANDED, BANDED_HIGH)
OF_SQUARES = (*NEAR_IDENTITIES, *BANDS)
NEAR_ROWS = "near_rows"
"""The trial half of whose inputs' rows are near others, as near as goes; only where rows meet in the output."""
NARROW = "narrow"
"""The trial whose inputs' numbers are near their mean, as near as goes; only where that does more than scale the output."""
NEAR_SINGULAR = "near_singular"
"""The trial whose symmetric matrices that may be definite are nearly singular, as nearly as goes; only where the same holds."""
BETWEEN = (NARROW, NEAR_SINGULAR)
RAISED_MATRICES, LOWERED_MATRICES = "raised_matrices", "lowered_matrices"
"""The trials whose matrices, parameters and buffers of either sign, are moved to one side as a whole, as far as that goes."""
RAISED_VECTORS, LOWERED_VECTORS = "raised_vectors", "lowered_vectors"
"""The same of the other ones, and of floating-point scalars that are not positive: logits and logarithms of rates."""
RAISED = (RAISED_MATRICES, RAISED_VECTORS)
MOVED_MATRICES = (RAISED_MATRICES, LOWERED_MATRICES)
MOVED_VECTORS = (RAISED_VECTORS, LOWERED_VECTORS)
MOVED = (*MOVED_MATRICES, *MOVED_VECTORS)
FAR_CHOICES = "far_choices"
"""The trial with another one's parameters or scalars, and larger inputs, beside which choices depend most on far parts of the
inputs; only where an output jumps, and usual choices depend on near ones."""
SIZED_SCALARS = (LARGE_SCALARS, SMALL_SCALARS, SMALL_APART, *MOVED_VECTORS)
SILENT_LATE, SILENT_EARLY = "silent_late", "silent_early"
"""The trials whose inputs are zero but for a first, or a last, part of every dimension: what comes there has to last."""
SILENT = (SILENT_LATE, SILENT_EARLY)
UNEVEN = ("uneven_0", "uneven_1")
"""The trials in which one secret argument, or a share of many, is larger beside the others, and smaller."""
HELD_LATE, HELD_EARLY = "held_late", "held_early"
"""The trials whose inputs are one number but for a first, or a last, part of every dimension: only where what comes there lasts
beside that number, and not beside zero."""
HELD = (HELD_LATE, HELD_EARLY)
EARLY = (SILENT_EARLY, HELD_EARLY)
QUIET = (*SILENT, *HELD)
SIZED = (
    LARGE_INPUTS,
    SMALL_INPUTS,
    LARGE_MATRICES,
    LARGE_VECTORS,
    SMALL_PARAMETERS,
    LARGE_SCALARS,
    SMALL_SCALARS,
    SMALL_APART,
    LARGE_BLOCKED,
    *OF_SQUARES,
    NEAR_ROWS,
    *BETWEEN,
    *MOVED,
    FAR_CHOICES,
    *UNEVEN,
    *QUIET,
)
"""The trials of a size that is found for each reference. Where larger arguments merely scale the output, most of them there are
not. Those of QUIET there are all the same, whose size is how much is silent; of UNEVEN each choice is looked at by itself."""
ALONE = "alone"
"""A trial `alone_NAME` differs from its base in one argument; `alone_1`, `alone_2`, … in a share of many arguments."""
SCALARS = "scalars"
"""The trial in which floating-point scalars have other values of their size; only where there are such."""
AS_MADE = "as_made"
"""The trial whose inputs are as `get_inputs` gives them, and whose parameters and buffers as the module makes them: only there
do numbers meet that are equal in both. There is none where these never vary."""
TIMED = (*(trial for trial in SIZED if trial not in SILENT), NEAR_ONE, *ARRANGED, SCALARS, AS_MADE)
"""The trials that timed blocks meet as they are, since no timed set and no block's parameters are of their kind otherwise."""
MIXED_SIGNS, FEW_SIGNS, OPPOSITE_SIGNS = "mixed_signs", "few_signs", "opposite_signs"
SIGNED = (MIXED_SIGNS, FEW_SIGNS, OPPOSITE_SIGNS)
"""The trials in which arguments of one sign have other signs; only where there are such."""
GIVEN = NOMINAL[1]
"""The trial whose inputs are all as `get_inputs` gives them, those too that it always gives alike."""

_TRIAL = "trial"


def as_kind(trial: str) -> str:
    """Return the name of the kind of contents that one of TIMED is."""
    return f"{_TRIAL}:{trial}"


def trial_of_kind(kind: str) -> str:
    """Return which of TIMED a kind of contents is, "" for any other kind."""
    return kind.removeprefix(as_kind("")) if kind.startswith(as_kind("")) else ""


def part_of(trial: str, role: Role) -> str:
    """Return the name of that part of a trial of signs that changes inputs alone, or parameters alone."""
    return f"{trial}:{role}"


def trial_of(part: str) -> str:
    """Return the trial that a part belongs to."""
    return part.partition(":")[0]
