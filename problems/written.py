"""By what a reference that Ridgeline itself wrote, of a live module, is known."""

from __future__ import annotations

MARK = ", exported in eval mode by ridgeline.ProblemSpec.from_module."
"""The end of its first line."""


def is_of_live_module(reference: str) -> bool:
    """Say whether a reference is one of those: the parts of its model hold tensors, and are of no classes of their own."""
    return reference.partition("\n")[0].endswith(MARK)
