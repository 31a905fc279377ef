"""The words of a `ridgeline show` that tests ask for."""

from __future__ import annotations

import argparse


def asked_for(**words: object) -> argparse.Namespace:
    """Return the parsed words of a `show` that serves no page."""
    return argparse.Namespace(**{"web": False, "port": None, "counters": False} | words)
