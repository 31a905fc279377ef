"""`ridgeline evaluate`: judge kernel files without a search."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.history.over_pytorch import eager_beside, over_each, without_figure
from ridgeline.checkpoints.report.wording import NAMED_LABELS, failed_words, label_in_words, not_met_words
from ridgeline.graph.cli import EXIT_INTERNAL, EXIT_OK
from ridgeline.graph.cli.console import make_console
from ridgeline.graph.cli.request import PROBLEM_SUFFIXES
from ridgeline.graph.cli.view.figures import format_seconds
from ridgeline.graph.library.evaluation import Evaluation, evaluate
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records.baselines import Baseline
from ridgeline.tools.records.error_map import FIGURE_WORDS, Measure
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.reference_mode import mode_words
from ridgeline.tools.records.vocabulary import Label, PrecisionClass, ReasonCode, Status
from ridgeline.tools.wording import (
    BUSY_TIMES,
    in_brackets,
    in_users_words,
    is_open,
    margin_words,
    medians_words,
    near_one,
    whole_numbers_words,
)


def execute(args: argparse.Namespace) -> int:
    """Print each file's verdict as it comes, as one JSON line with `--json`; 0 whatever the verdicts, 1 where one is missing.

    A file that the machine failed on, or was too busy for, has none: its line says why, and where there are several files
    a last line on stderr names all such ones. Where stderr is a terminal, it shows each step as it begins, else the longest.

    Raises:
        KeyboardInterrupt: a Ctrl-C was told and the judging ended; verdicts that came before it are printed.
    """
    console = make_console()
    unjudged: list[str] = []

    def show(evaluation: Evaluation) -> None:
        line = evaluation.to_dict()
        if evaluation.reason_code is ReasonCode.ENGINE_FAILED:
            unjudged.append(evaluation.file)
        if args.json:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
        else:
            console.print(describe(line), markup=False, soft_wrap=True)

    def tell(text: str) -> None:
        sys.stderr.write(f"ridgeline: {printable(text)}\n")
        sys.stderr.flush()

    files = [Path(file) for file in args.files]
    swapped = next((file for file in files if file.suffix in PROBLEM_SUFFIXES), None)
    if swapped is not None:
        raise ProblemError(f"{swapped}: the problem comes first, then the kernels")
    unsafe = args.unsafe_no_sandbox
    with _interrupt_told(tell):
        evaluate(
            args.problem,
            files,
            device=args.device,
            allow_unsafe=unsafe,
            on_evaluation=show,
            on_wait=tell,
            on_step=_step_teller() if sys.stderr.isatty() else _longest_step_teller(tell),
        )
    if unjudged and len(files) > 1:
        tell(f"not judged: {', '.join(unjudged)}; the line of each says why")
    return EXIT_INTERNAL if unjudged else EXIT_OK


@contextmanager
def _interrupt_told(tell: Callable[[str], object]) -> Iterator[None]:
    """Say at once that a Ctrl-C is obeyed, also where this process was started with the signal ignored, as by a shell's `&`."""

    def handle(*_: object) -> None:
        tell("SIGINT: stopping; what is under way gets no verdict")
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _step_teller() -> Callable[[str], None]:
    """Return what shows a step on stderr, with the time since this call, as a search without a board does."""
    since = time.monotonic()

    def tell(text: str) -> None:
        sys.stderr.write(f"[{format_seconds(time.monotonic() - since):>7}] {printable(text)}\n")
        sys.stderr.flush()

    return tell


def _longest_step_teller(tell: Callable[[str], object]) -> Callable[[str], None]:
    """Return what passes on the steps that may take minutes, so that a log does not stand still without a word."""
    from ridgeline.graph.library.judged_files import TIMING_PYTORCH

    def pass_on(text: str) -> None:
        if text.startswith(TIMING_PYTORCH):
            tell(text)

    return pass_on


def describe(line: dict[str, Any]) -> str:
    """Return a verdict in words."""
    if line["status"] != Status.OK:
        return f"{line['file']}: {line['status']} ({line['reason_code']}): {in_users_words(line['reason'])}"
    low, high = line["speedup_ci95"]
    notes = [_label_words(label, line) for label in line["labels"] if label not in NAMED_LABELS]
    notes += [not_met_words(each["name"], each["reason"]) for each in line["skipped"]]
    labels = f" [{'; '.join(notes)}]" if notes else ""
    unshown = ": no difference is shown" if is_open((low, high)) else ""
    over_best = _over_best(line)
    whole = whole_numbers_words(line["whole_numbers"], (each["name"] for each in line["skipped"]))
    nearest = line["nearest_limit"]
    figure = FIGURE_WORDS[Measure(nearest["measure"])] if nearest else ""
    margin = margin_words(line["margin"], nearest["trial"], figure) if nearest else ""
    return (
        f"{line['file']}: ok, {line['speedup']:.2f}x eager (95 % {low:.2f} to {high:.2f}{unshown}){over_best}, "
        f"{medians_words(line['median_ms'], line['reference_ms'], line['speedup'])}; "
        f"{line['precision_class']}, error {line['rel_error']:.1e}{f', {margin}' if margin else ''}"
        f"{f'; {whole}' if whole else ''}{labels}"
    )


def _label_words(label: str, line: Mapping[str, Any]) -> str:
    """Return a label in words, with the names of the libraries where it is for them."""
    names = ", ".join(line["other_code"]) if label == Label.VENDOR_LIBRARY else ""
    return f"{label_in_words(label)}{f': {names}' if names else ''}"


def _over_best(line: dict[str, Any]) -> str:
    """Return ", 0.80x the fastest of PyTorch (1.00x times max-autotune's 12.6 ms / eager's 15.8 ms, timed without the kernel)".

    The ratio is that over eager times theirs, which are of another run. Where eager is the fastest it says so, and where
    no other configuration ran. Those that failed are named.
    """
    best, entries, precision = line["speedup_vs_best"], line["baselines"], line["precision_class"]
    if best is None:
        return ""
    ratios = over_each(line["speedup"], precision, entries)
    failed = failed_words(
        without_figure(map(Baseline.from_json, entries), PrecisionClass(precision) if precision else None)
    )
    if math.isclose(best, line["speedup"]):
        if len(ratios) < len(entries) and len(ratios) == 1:
            return ", PyTorch's other configurations failed"
        of = " at the kernel's precision" if any(ratio < best for ratio in ratios.values()) else ""
        busy = _busy_words(entries)  # any of them may be faster where no other program takes cores
        return f", which is the fastest of PyTorch{of}{_in_one_bracket(failed, busy)}" if len(ratios) > 1 else ""
    over = f", {near_one(best)}x the fastest of PyTorch"
    named = next((entry for entry in entries if math.isclose(ratios.get(entry["name"], 0.0), best)), None)
    eager = eager_beside(precision, entries)
    if named is None or eager is None:
        return f"{over}{in_brackets(failed)}"
    both = f"{mode_words(named['name'])}'s {named['median_ms']:.3f} ms / eager's {eager['median_ms']:.3f} ms"
    which = f"{line['speedup']:.2f}x times {both}, timed without the kernel"
    return f"{over}{_in_one_bracket(which, _busy_words((named, eager)), failed)}"


def _in_one_bracket(*notes: str) -> str:
    return in_brackets("; ".join(filter(None, notes)))


def _busy_words(entries: Sequence[Mapping[str, Any]]) -> str:
    return BUSY_TIMES if any(entry.get("was_busy") for entry in entries) else ""
