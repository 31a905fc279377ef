"""The kinds of a block's contents that the reference refuses: asked once it has refused something.

When a problem is loaded the reference runs on one draw of each kind. One that asserts a range takes some draws and refuses
others. The reference's own runs decide, in the judge, whoever failed on these contents.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.user_code import is_out_of_memory, named_line
from ridgeline.tools.records.problem import SkippedTrial
from ridgeline.tools.records.vocabulary import Role

_NOMINAL = 4
"""Sets with nominal contents that are tried: parameters that the reference refuses, it refuses beside any of them."""


def refused_kinds(
    trial_sets: Mapping[int, str], parameter_kind: str, reference: Reference, memory: ArenaMemory
) -> dict[str, str]:
    """Return the kinds among what the sets hold now that the reference refuses, by name with what it raised.

    There is none where it refuses nominal contents: these are the user's to mend.

    Args:
        trial_sets: the sets that have the contents of a trial, and the name of their kind.
        parameter_kind: the kind of the parameters, "" for ordinary ones.
        reference: the user's, on its device.
        memory: the sets.
    """
    nominal = [index for index in range(memory.n_sets) if index not in trial_sets][:_NOMINAL]
    refused = next((why for index in nominal if (why := _refusal(reference, memory, index))), "")
    if refused:
        return {parameter_kind: refused} if parameter_kind else {}
    pairs = ((kind, _refusal(reference, memory, index)) for index, kind in trial_sets.items())
    return {kind: why for kind, why in pairs if why}


def _refusal(reference: Reference, memory: ArenaMemory, index: int) -> str:
    """Return what the reference raises for a set in its own type or in float64, "" for nothing."""
    inputs: Tensors = memory.inputs[index]
    try:
        with torch.no_grad(), reference.patience.trying():
            reference.run(inputs)
            reference.run_double(inputs, memory.parameters)
    except Exception as error:  # the user's code may raise anything
        if is_out_of_memory(error):
            raise
        return named_line(error.__cause__ or error)
    return ""


def as_skipped(refused: Mapping[str, str]) -> tuple[SkippedTrial, ...]:
    """Return refused kinds as what no candidate meets: "timed row_scaled", "timed order_one of parameters"."""
    return tuple(
        SkippedTrial(name=f"timed {_words(kind)}", reason=f"forward() raised {refused[kind]}") for kind in refused
    )


def _words(kind: str) -> str:
    role, _, name = kind.rpartition(":")
    return f"{name} of parameters" if role == Role.PARAMETER else name
