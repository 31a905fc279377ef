"""Arguments with other last bits, beside which an output shows how well conditioned it is."""

from __future__ import annotations

import functools
from dataclasses import replace

from ridgeline.tools.judge.worker.domain.sizes.usual_trial import Arguments
from ridgeline.tools.judge.worker.grading.cases.class_errors import TF32_LAST_BIT, moved_in_type
from ridgeline.tools.judge.worker.inputs.arrangements.square_matrices import with_diagonals_of
from ridgeline.tools.judge.worker.inputs.held import with_held_of
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.trial_contents import TrialContents
from ridgeline.tools.records.trial_names import HELD, NEAR_IDENTITIES


def with_other_last_bits(arguments: Arguments, trial: str, source: SecretSource, contents: TrialContents) -> Arguments:
    """Return a trial's arguments, about half of whose numbers lose some last bits.

    Numbers that are held stay, and diagonals that keep a state: each step would move it to the same side.
    """
    inputs, parameters = moved_in_type(arguments.inputs, arguments.parameters, at_least=TF32_LAST_BIT)
    inputs = with_held_of(arguments.inputs, inputs, trial) if trial in HELD else inputs
    if trial in NEAR_IDENTITIES:
        kept = functools.partial(with_diagonals_of, shift=contents.shift_of(trial))
        pairs, square = enumerate(zip(arguments.inputs, inputs, strict=True)), source.square(trial)
        inputs = tuple(kept(was, t) if i in square else t for i, (was, t) in pairs)
        given = arguments.parameters
        parameters |= {n: kept(given[n], parameters[n]) for n in source.weights.square}
    return replace(arguments, inputs=inputs, parameters=parameters)
