"""Wording for a run's best kernel, the same in the terminal and in report.html."""

from __future__ import annotations

from typing import Any

Best = dict[str, Any]
"""result.json's `best`."""

UNENDED = ("running", "stopped", "budget")
"""States in which a search may go on."""


def name_of_place(state: str, *, certified: bool) -> str:
    """Return the kernel's title: "winner" when certified, else "fastest"."""
    if certified:
        return "winner"
    return "fastest so far" if state in UNENDED else "fastest"


def doubt(best: Best, *, certified: bool) -> str:
    """Return the reservations about the kernel; none when it is certified."""
    if certified:
        return ""
    is_slower = best.get("speedup") is not None and best["speedup"] < 1
    return "slower than PyTorch, not certified" if is_slower else "not certified"


def seed_words(best: Best, state: str) -> str:
    """Return a sentence when the best kernel is one that the search began with, else an empty string."""
    yet = " yet" if state in UNENDED else ""
    if best.get("origin") == "seed":
        return f"no kernel beat the seed that was given{yet}; this is that seed"
    if best.get("origin") == "bank":
        return f"no kernel beat the one kept from an earlier search{yet}; this is that kernel"
    return ""


def best_configuration(best: Best) -> str:
    """Return the name of PyTorch's best configuration, with the configurations that could not be measured."""
    failed = " and ".join(name.replace("_", " ") for name in best.get("baselines_failed") or ())
    return f"best configuration{f' ({failed} failed: no figure)' if failed else ''}"
