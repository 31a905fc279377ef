"""Numbers with their nouns, speedups with their intervals, options as their reader gives them, the system's errors, and
the word that was meant."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ridgeline.tools.records.trial_words import with_contents
from ridgeline.tools.records.vocabulary import Label


def counted(number: int, noun: str) -> str:
    """Return "1 kernel", "3 branches", "2 replies", "4,200 tokens"; `noun` is the singular."""
    if number == 1:
        return f"1 {noun}"
    plural = re.sub(r"([^aeiou])y$", r"\1ie", noun) + ("es" if noun.endswith(("ch", "sh", "x")) else "s")
    return f"{number:,} {plural}"


CALLER, PROGRAM = "RIDGELINE_CALLER", "program"
"""The variable and its value by which a program that starts `ridgeline` has messages worded as for itself."""
FOR_COMMAND_LINE = "--for-command-line"
"""The argument of a process of Ridgeline's own that is to word options as of the command line."""
_for_command_line = [False]
_IN_PYTHON = {"model": "models"}
"""Options that have another name as an argument."""


@contextlib.contextmanager
def worded_for_command_line(*, is_so: bool = True) -> Iterator[None]:
    """Word options in messages as of the command line, or of Python, until the block ends.

    So it is in all threads of this process, which has one reader: messages come from threads that outlive their starts.
    """
    before, _for_command_line[:] = _for_command_line[:], [is_so]
    try:
        yield
    finally:
        _for_command_line[:] = before


def own_wording() -> list[str]:
    """Return the arguments with which a process that this one starts words options as this one does."""
    return [FOR_COMMAND_LINE] if _for_command_line[0] else []


def option(name: str, value: object = None) -> str:
    """Return an option as who reads the message gives it: `--device cpu`, and to a program `device='cpu'`.

    `name` is the argument's, but for that of a model. A `value` of True is that of a switch.
    """
    if _for_command_line[0]:
        stated = "" if value is None or value is True else f" {value}"
        return f"--{name.replace('_', '-')}{stated}"
    name = _IN_PYTHON.get(name, name)
    return name if value is None else f"{name}={value!r}"


def resuming(problem: str, run_dir: Path) -> str:
    """Return how a run is resumed of which the problem has to be named."""
    if _for_command_line[0]:
        return f"ridgeline run {problem} --resume {run_dir}"
    return f"search({problem!r}, resume=True, run_dir={str(run_dir)!r})"


def usd_words(usd: float, unpriced: int) -> str:
    """Return what calls cost, "$1.20"; `unpriced` of them have no known price, so that their cost is in no sum."""
    if not unpriced:
        return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.3f}"
    return f"${usd:.2f} and {counted(unpriced, 'call')} of unknown price" if usd else "price unknown"


def margin_words(margin: float | None, trial: str, figure: str) -> str:
    """Return "62 % of the nearest limit (shifted, a row's error)", "" where no margin is known."""
    return "" if margin is None else f"{100 * margin:.2g} % of the nearest limit ({in_users_words(trial)}, {figure})"


def in_users_words(said: str) -> str:
    """Return a sentence of the judge for a person: of "nominal_0: error 2e-5, gate 1e-5" both names are the judge's own.

    What another trial's inputs are is told behind its name.
    """
    return _GATE.sub("limit ", _NOMINAL.sub("inputs like those of get_inputs()", with_contents(said)))


_NOMINAL, _GATE = re.compile(r"\bnominal_\d+\b"), re.compile(r"\bgate (?=\d)")


def medians_words(median_ms: float | None, reference_ms: float | None, speedup: float | None) -> str:
    """Return "0.8612 ms against 2.0236 ms", and why these are not in the ratio of the speedup where a reader would ask.

    Of a kernel without a time it is "time not measured".
    """
    if median_ms is None:
        return "time not measured"
    if reference_ms is None:
        return f"{median_ms:.4f} ms"
    words = f"{median_ms:.4f} ms against {reference_ms:.4f} ms"
    if speedup is None:
        return words
    quotient = reference_ms / median_ms if median_ms > 0 else speedup
    if abs(quotient - speedup) <= UNASKED * speedup:
        return words
    return f"{words} (each one's median; {speedup:.2f}x is the median of the ratios of neighbouring timings)"


UNASKED = 0.01
"""A quotient of two medians may be this far from the speedup, as a share of it, before a reader is told why."""


def ratio_words(ratio: float, interval: Sequence[float] | None, *, unit: str = "") -> str:
    """Return "2.51x eager (1.64 to 3.10)": a ratio, what it is over (`unit`), and its 95 % interval where it has one."""
    over = f" {unit}" if unit else ""
    return f"{ratio:.2f}x{over} ({interval[0]:.2f} to {interval[1]:.2f})" if interval else f"{ratio:.2f}x{over}"


def is_open(interval: Sequence[float]) -> bool:
    """Say whether a ratio's 95 % interval holds 1, so that it leaves open which of the two is the faster one."""
    return interval[0] <= 1 <= interval[1]


def stored_words(stored_on: str | None) -> str:
    """Return "stored, measured on 2026-05-04 10:12" of a figure that is kept from earlier; "" of a fresh one (None)."""
    if stored_on is None:
        return ""
    return f"stored, measured on {stored_on}" if stored_on else "stored"


def said_by(error: OSError) -> str:
    """Return what the system says of an error, in small letters: "no space left on device"."""
    return (error.strerror or str(error)).lower()


def remedy_for(why: str, otherwise: str) -> str:
    """Return what to do about a refusal to write, by `said_by`'s words: a process's own limit holds in every folder."""
    return "raise the limit of file size (`ulimit -f`)" if why == os.strerror(errno.EFBIG).lower() else otherwise


BUSY_TIMES = "measured while other programs took cores"


def baseline_note(entry: Mapping[str, Any]) -> str:
    """Return what a reader must know of a time of PyTorch's, an entry of result.json: when it was measured, and beside what."""
    notes = (stored_words(entry.get("stored_on")), BUSY_TIMES if entry.get("was_busy") else "")
    return "; ".join(filter(None, notes))


def in_brackets(words: str) -> str:
    """Return words in brackets behind what they are about; "" of none."""
    return f" ({words})" if words else ""


def near_one(ratio: float) -> str:
    """Return a ratio with two digits behind the point, and three near 1, where a third one says which side it is on."""
    return f"{ratio:.{3 if abs(ratio - 1) < NEAR_ONE else 2}f}"


NEAR_ONE = 0.05


def did_you_mean(word: str, known: Iterable[str], *, before: str = "", after: str = "") -> str:
    """Return "did you mean show?" between two texts, for a word that is near a known one; else ""."""
    near = get_close_matches(word, known, n=1)
    return f"{before}did you mean {near[0]}?{after}" if near else ""


def whole_numbers_words(ranges: Sequence[Mapping[str, Any]], not_met: Iterable[str] = ()) -> str:
    """Return which whole numbers inputs held in trials: "whole numbers tried: idx 0 to 4095"; "" for no such input.

    `not_met` has the names of what was not tried: "not_varied pos" of an input that was only as it is given, "only_as_drawn
    pos" of one that was only as each call gives it.
    """
    tried = {of: TRIED[label] for label, _, of in (name.partition(" ") for name in not_met) if label in TRIED}
    each = ", ".join(
        f"{told['name']} {told['low']} to {told['high']}{in_brackets(tried.get(told['name'], ''))}" for told in ranges
    )
    return f"whole numbers tried: {each}" if each else ""


TRIED: Mapping[str, str] = {
    Label.NOT_VARIED: "only as given",
    Label.ONLY_AS_DRAWN: "only as get_inputs() draws it",
}
"""With which values an input was tried that has a label instead of others."""
