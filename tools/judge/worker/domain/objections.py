"""The reasons why a reference gives nothing for a trial to be compared with, or why an argument keeps its values."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Known(StrEnum):
    """A reason that is told from others, by identity: what refuses an argument so is handled in its own way."""

    OUTSIDE = "outside the reference's domain: its output is not finite"
    BEYOND = "its output is beyond the range of the output's type"
    LOST = "the reference's kernels fail on the GPU with these values (a device-side assert?)"


CONSTANT = "its values are a mask or indices, and are always these"
GIVEN_ALIKE = (
    "get_inputs() gives the same mask or indices at each call, so a kernel that ignores them passes; draw them there"
)
AS_DRAWN = "its numbers follow each other in every draw, and the reference writes to places by index"
OTHER_MEANING = "some of its other values stand for something else: an index that counts from the end, or a blank"
REFUSED_DRAWS = "some of its other values are outside the reference's domain"

MORE_DRAWS = 4
"""Further draws on which a way has to be taken, once one was refused: a bound that it just reaches, some draws leave, and
some draws of a matrix are definite by chance."""

Objection = Callable[[str, str], str]
"""Returns why the reference gives nothing for a trial, "" when it does; the second argument names what is tried."""
Tried = Callable[[str, Callable[[], str]], str]
"""Returns what an attempt gives, or why it is left out; the words name it."""
