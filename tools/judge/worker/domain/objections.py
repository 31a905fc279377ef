"""The reasons why a reference gives nothing for a trial to be compared with."""

from __future__ import annotations

from collections.abc import Callable

OUTSIDE = "outside the reference's domain: its output is not finite"
LOST = "the reference's kernels fail on the GPU with these values (a device-side assert?)"

Objection = Callable[[str, str], str]
"""Returns why the reference gives nothing for a trial, "" when it does; the second argument names what is tried."""
Tried = Callable[[str, Callable[[], str]], str]
"""Returns what an attempt gives, or why it is left out; the words name it."""
