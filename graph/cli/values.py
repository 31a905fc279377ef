"""The values of options as argparse reads them from words: each refusal is one line that says what is taken."""

from __future__ import annotations

import argparse
import contextlib

from ridgeline.problems.limits import MOST

EMPTY = "is empty; give it a value or leave it out"


def word(text: str) -> str:
    """Return a word that is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError(EMPTY)
    return text


def parts(text: str) -> list[str]:
    """Return the words of a list with commas, without one that is empty."""
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise argparse.ArgumentTypeError(f"must be names with commas between, as in memory,tuning; got {_shown(text)}")
    return words


def positive(text: str) -> int:
    """Return a whole number above 0."""
    return _whole(text, least=1)


def tokens_or_run(text: str) -> int | str:
    """Return a whole number above 0, or the name of a run that is to be equalled."""
    return positive(text) if text.strip().lstrip("+-").replace(".", "").isdigit() or not text.strip() else text


def natural(text: str) -> int:
    """Return a whole number, 0 or more."""
    return _whole(text, least=0)


def port(text: str) -> int:
    """Return a port's number; 0 for a free one."""
    return _whole(text, least=0, most=65_535)


def setting(text: str) -> int:
    """Return a search's setting, from 1 to MOST."""
    return _whole(text, least=1, most=MOST)


def setting_or_none(text: str) -> int:
    """Return a search's setting, from 0 to MOST."""
    return _whole(text, least=0, most=MOST)


def integer(text: str) -> int:
    """Return any whole number."""
    return _whole(text)


def _whole(text: str, *, least: int | None = None, most: int | None = None) -> int:
    bounds = "" if least is None else f", {least} or more" if most is None else f" from {least} to {most}"
    with contextlib.suppress(ValueError):
        value = int(text)
        if (least is None or value >= least) and (most is None or value <= most):
            return value
    raise argparse.ArgumentTypeError(f"must be a whole number{bounds}, got {_shown(text)}")


def attempts(text: str) -> int:
    """Return how often a request is sent, from 1 to 100."""
    return _whole(text, least=1, most=100)


def timeout(text: str) -> float:
    """Return a timeout in seconds, from 1 to a day."""
    with contextlib.suppress(ValueError):
        value = float(text)
        if 1 <= value <= 86_400:
            return value
    raise argparse.ArgumentTypeError(f"must be a number from 1 to 86400, got {_shown(text)}")


def amount(text: str) -> float:
    """Return a number above 0."""
    with contextlib.suppress(ValueError):
        value = float(text)
        if 0 < value < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"must be a number above 0, got {_shown(text)}")


def _shown(text: str) -> str:
    return f"{text[:40]}…" if len(text) > 40 else text or "nothing"
