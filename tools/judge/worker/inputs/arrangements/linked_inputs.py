"""The inputs that hold links between places, as the trials `blocked` and `apart`, and the timed sets of these kinds, have them.

Whole numbers lie near their places or are chains, and masks keep links between near places alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.arrangements.chains import Chain, chains_of, with_links
from ridgeline.tools.judge.worker.inputs.arrangements.lifts import mask_apart
from ridgeline.tools.judge.worker.inputs.arrangements.links import Ends, links_of
from ridgeline.tools.judge.worker.inputs.arrangements.mask_links import changed_at, near_links
from ridgeline.tools.records.trial_names import APART, BLOCKED


class LinkedInputs:
    """The links of one reference's inputs."""

    def __init__(self, first: Tensors, ranges: Mapping[int, Ends]) -> None:
        """Find them by one draw of the inputs, and the ends of those of whole numbers."""
        self.near = links_of(first, ranges)
        """The inputs of whole numbers that lie near their places in the trial `apart`."""
        self.may_be_chains, self.chains = chains_of(first, ranges), dict[int, Chain]()
        """Those that name places of their own dimension, and those that are chains there; none until it is known which."""
        self.masks: dict[str, dict[int, Ends]] = {BLOCKED: {}, APART: {}}
        """The masks with links between near places alone in each trial; none until it is known which may."""

    def are_in(self, trial: str) -> bool:
        """Return whether any input changes in a trial."""
        return bool(self.masks.get(trial) or (trial == APART and (self.near or self.chains)))

    def changed(self, trial: str, inputs: Tensors, generator: torch.Generator) -> Tensors:
        """Return inputs whose links are as a trial has them; the very same one where an input has none."""
        if not self.are_in(trial):
            return inputs
        if trial == BLOCKED:
            return changed_at(inputs, self.masks[BLOCKED], near_links, generator)
        in_groups = changed_at(inputs, self.masks[APART], mask_apart, generator)
        return with_links(in_groups, generator, near=self.near, chains=self.chains)
