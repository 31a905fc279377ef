"""The limits that what a problem file states and what the command line states share."""

from __future__ import annotations

MOST = 1_000_000
"""Of anything counted: beyond it is a slip of the hand, and a checkpoint's whole numbers have 64 bits."""
