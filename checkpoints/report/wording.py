"""Wording for a run's best kernel, the same in the terminal and in report.html."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from ridgeline.checkpoints.history.gains import Gain, Proof
from ridgeline.checkpoints.report.figures import span_text
from ridgeline.checkpoints.result import STATE_WORDS, BestKernel
from ridgeline.checkpoints.run_record import OFFLINE
from ridgeline.checkpoints.runs.folders import RESUMABLE
from ridgeline.checkpoints.steering import USER
from ridgeline.tools.records.reference_mode import mode_words
from ridgeline.tools.records.vocabulary import Label, Origin, RunState, Status
from ridgeline.tools.wording import TRIED, in_brackets, in_users_words, is_open, near_one, ratio_words

RANKING = "A round's best kernel is the one whose 95 % interval has the highest lower end."
"""The rule by which checkpoints/ranking.py orders kernels, for a reader who sees a higher figure further down."""

IDEAS_GAIN = (
    "gain: of an idea's best kernel over its parent kernel, not over eager PyTorch as predicted and best may be"
)
"""What the gains of a list of ideas are over, for a reader who sees a figure over eager PyTorch beside each."""

IDEAS_BEST = (
    "best: of an idea's kernels the one whose interval has the highest lower end; another's figure may be higher"
)
"""The rule of a list of ideas, for a reader who knows a higher figure of one of its kernels."""

COMPARED = (
    "At the end those whose intervals reach the highest one are timed in turns with it; the fastest there comes first."
)
"""How the kernel to be certified is chosen among those that the search could not tell apart."""

EAGER_TIMES = (
    "Eager PyTorch is timed by itself as a search begins, or within the hour before, by itself again for a certificate, "
    "and in turns with each kernel; a speedup is over the last."
)
"""Which of a run's times of eager PyTorch is which, for a reader who meets two of them."""

OVER_BEST = (
    "the speedup over eager PyTorch times the best configuration's time / eager's, which were timed without the kernel"
)
"""How a ratio over PyTorch's best configuration is formed, for a reader who divides the times beside it."""

LABEL_WORDS: Mapping[str, str] = {
    Label.LAUNCH_BOUND: "so short that starting it dominates",
    Label.BUSY_MACHINE: "other programs took cores while it was timed, so its times are unreliable",
    Label.NONDETERMINISTIC: "its results differ a little from call to call",
    Label.SHAPE_SPECIALISED: "made for this shape, wrong at some or all others tried",
    Label.QUARANTINED: "a gain too large to be believed yet",
    Label.AUDITED: "an unusual gain, confirmed by a second measurement",
    Label.NO_SANDBOX: "ran without isolation",
    Label.REDUCED_PRECISION: "arithmetic below the reference's",
    Label.TRIAL_SKIPPED: "one kind of test input was left out",
    Label.VENDOR_LIBRARY: "a library works for it, or lies ready in its process",
    Label.NOT_VARIED: "an argument held the same values in every test, so a kernel may ignore it",
    Label.ONLY_AS_DRAWN: "an argument was tried only as get_inputs() draws it, so a kernel may rely on what its draws share",
    Label.NOT_SANITIZED: "no memory checker looked at it; its certificate says what one needs",
    Label.EAGER_IN_JUDGE: "eager PyTorch was timed in the judge, where it may be faster than in a process like the kernel's",
    Label.PARAMETER_WITHOUT_EFFECT: "an argument hardly changes an output, so it may be ignored there",
    Label.CONSTANT_OUTPUT: "an output was the same in every test, so it may have been written without work",
}
"""A label in a few words."""

STEP_WORDS: Mapping[str, str] = {
    "build": "build",
    "verify": "verification",
    "sanitize": "memory checks",
    "time": "re-timings",
    "baselines": "PyTorch again",
    "audit": "audit",
    "compare": "comparison with the seed",
    "own_work": "own work",
    "other_shapes": "other shapes",
}
"""The certificate's steps for a reader, by their names in certificate.json and in events."""

AUTHORS: Mapping[str, str] = {USER: "you", OFFLINE: "offline"}
"""Who an idea came from, where that is no language model."""


def step_words(name: str) -> str:
    """Return the words for a step of the certificate, wherever a reader meets it; a foreign name as it is."""
    return STEP_WORDS.get(name, name)


def author_words(model: str) -> str:
    """Return by whom an idea came: "you", "offline", or its model's name."""
    return AUTHORS.get(model, model or "unknown")


def stage_words(ideas: int, named: int) -> str:
    """Return how many of the ideas whose parent's times by stage were known name its largest stage; "" of none."""
    if not ideas:
        return ""
    aim = "aim" if named > 1 else "aims"
    return f"{named or 'none'} of {ideas:,} ideas that start from a kernel with timed stages {aim} at its longest stage"


def replay_words(replay: Mapping[str, Any] | None) -> str:
    """Return what of a search is replayed, from where; "" of one that replays nothing."""
    if not replay:
        return ""
    answers = f"answers are replayed from {replay['run']}, and nothing was paid"
    if not replay["times"]:
        return answers
    return (
        f"{answers}; times are replayed: measured on {replay['measured_on']} in a run of {replay['measured_at']}, "
        "so nothing is certified"
    )


def ending(state: str, reason: str | None) -> str:
    """Return how a search ended, or what it still does; `reason` is the stop rule that ended its rounds."""
    if state == RunState.RUNNING and reason:
        return f"its rounds are over ({reason}), the best kernels are compared and certified"
    if state == RunState.RUNNING:
        return "still running: this is what it has found so far"
    words = next((words for known, words in STATE_WORDS.items() if known == state), state)
    if state == RunState.STALLED and reason:
        return f"finished: {reason}"
    return f"{words} ({reason})" if state in (RunState.BUDGET, RunState.AT_FLOOR) and reason else words


def name_of_place(state: str, *, certified: bool) -> str:
    """Return the kernel's title: "winner" when certified, else "fastest"."""
    if certified:
        return "winner"
    return "fastest so far" if state in RESUMABLE else "fastest"


def doubt(speedup: float | None, interval: Sequence[float] | None, *, certified: bool) -> str:
    """Return the reservations about a kernel of this speedup over eager; none when it is certified.

    "Slower" is said where the whole 95 % interval lies below 1; of a figure below 1 alone no difference is shown.
    """
    if certified:
        return ""
    if speedup is None or speedup >= 1:
        return "not certified"
    if interval and is_open(interval):
        return f"no difference from PyTorch is shown: the interval {span_text(interval)} holds 1; not certified"
    return "slower than PyTorch, not certified"


def why_uncertified(
    best: BestKernel,
    state: str,
    failures: Mapping[str, str],
    *,
    replay: Mapping[str, Any] | None = None,
    is_certifying: bool = False,
) -> str:
    """Return why the best kernel has no certificate; `failures` are of the kernels whose certification was tried.

    `is_certifying`: of a search that runs, the rounds are over.
    """
    if best.id in failures:
        return failures[best.id]
    if replay and replay["times"]:
        return "its times are replayed, and nothing was measured again"
    if best.speedup is not None and best.speedup <= 1:
        is_shown = not (best.speedup_ci95 and is_open(best.speedup_ci95))
        return "it is not faster than eager PyTorch" if is_shown else "no difference from eager PyTorch is shown"
    if state == RunState.RUNNING and is_certifying:
        return "its certificate is not done yet"
    if state == RunState.RUNNING:
        return "the search goes on; kernels are certified when its rounds are over"
    if state == RunState.WAITING:
        return "the search waits; kernels are certified when its rounds are over"
    if state in RESUMABLE:
        return "the search ended before it was certified"
    return "no kernel was certified as faster than eager PyTorch"


def others_tried(best_id: str | None, failures: Mapping[str, str]) -> str:
    """Return in short which other kernels were tried and got no certificate, those that looked fastest; "" for none."""
    others = [f"{name}: {reason}" for name, reason in failures.items() if name != best_id]
    more = [f"and {len(others) - _OTHERS_TOLD} more"] if len(others) > _OTHERS_TOLD else []
    return "; ".join([*others[:_OTHERS_TOLD], *more])


_OTHERS_TOLD = 2


def seed_words(best: BestKernel, state: str) -> str:
    """Return a sentence when the best kernel is one that the search began with, else an empty string."""
    yet = " yet" if state in RESUMABLE else ""
    if best.origin == Origin.SEED:
        return f"no kernel beat the seed that was given{yet}; this is that seed"
    if best.origin == Origin.BANK:
        return f"no kernel beat the one kept from an earlier search{yet}; this is that kernel"
    return ""


def unproven_words(best: BestKernel) -> str:
    """Return, for the headline of the best kernel, over what it has no proven gain; "" where each gain is proven.

    A ratio whose 95 % interval includes 1 leaves open which of the two is the faster one.
    """
    eager, over_seed = best.speedup_ci95, best.speedup_vs_seed_ci95
    over = ["it"] if best.speedup is not None and eager and is_open(eager) else []
    if best.speedup_vs_seed is not None and over_seed and over_seed[0] <= 1 and best.origin != Origin.SEED:
        figure = interval_words(best.speedup_vs_seed, over_seed)
        if over_seed[1] < 1:
            return "; ".join(
                [*(f"no proven gain over {name}" for name in over), f"slower than the best seed kernel: {figure}"]
            )
        over.append(f"the best seed kernel: {figure}")
    return f"no proven gain over {' and over '.join(over)}" if over else ""


class OverPyTorch(Protocol):
    """A kernel's speedups over eager PyTorch and over PyTorch's best configuration; None where one has no figure."""

    @property
    def speedup(self) -> float | None: ...
    @property
    def speedup_ci95(self) -> Sequence[float] | None: ...
    @property
    def speedup_vs_best(self) -> float | None: ...


def best_of_torch_words(kernel: OverPyTorch, configuration: str) -> tuple[str, bool] | None:
    """Return how a kernel stands to PyTorch's best configuration, and whether it is proven faster; None without a figure.

    `configuration` is its name. The ratio is that over eager times one of PyTorch's own times, so its interval is at least
    as wide as that one's.
    """
    ratio = kernel.speedup_vs_best
    if not ratio:
        return None
    figure, doubts = f"{near_one(ratio)}x", over_best_doubt(kernel)
    is_said_of_eager = ratio >= 1 and (kernel.speedup_ci95 or [2])[0] <= 1  # no proven gain, which implies it here
    if not doubts or is_said_of_eager:
        return f"{figure} {configuration}", True
    return f"{doubts} {configuration}: {figure}", False


def over_best_doubt(kernel: OverPyTorch) -> str:
    """Return "no proven gain over", "no faster than" or "slower than" of PyTorch's best; "" of a proven gain or no figure."""
    ratio, speedup, interval = kernel.speedup_vs_best, kernel.speedup, kernel.speedup_ci95
    if not ratio:
        return ""
    low, high = (end * ratio / speedup for end in interval or (speedup, speedup)) if speedup else (1, 1)
    if low > 1:
        return ""
    if high < 1:
        return "slower than"
    return "no faster than" if ratio < 1 else "no proven gain over"


def best_of_torch_doubt(kernel: OverPyTorch, configuration: str) -> str:
    """Return that a kernel which is faster than eager is not so over PyTorch's best; "" where it is, or not even over eager."""
    low = kernel.speedup_ci95[0] if kernel.speedup_ci95 else kernel.speedup
    told = best_of_torch_words(kernel, configuration)
    return told[0] if told and not told[1] and (low or 0) > 1 else ""


def interval_words(ratio: float, interval: Sequence[float] | None) -> str:
    """Return "2.51x (95 % 1.64 to 3.10)": a ratio, with its interval where it has one."""
    span = f" (95 % {span_text(interval)})" if interval else ""
    return f"{ratio:.2f}x{span}"


NO_SPEEDUP = "speedup over eager PyTorch not measured"


def over_eager_words(speedup: float | None, interval: Sequence[float] | None) -> str:
    """Return "2.51x (95 % 1.64 to 3.10) as fast as eager PyTorch", or that this was not measured."""
    return NO_SPEEDUP if speedup is None else f"{interval_words(speedup, interval)} as fast as eager PyTorch"


def figure_words(figures: Mapping[str, Any]) -> str:
    """Return what the search found of a kernel: "2.51x eager (1.64 to 3.10), 0.8612 ms", else how it ended and why.

    `figures` are those of history/lineage.py.
    """
    if figures["status"] is None:
        return "not judged"
    if figures["status"] != Status.OK:
        return f"{figures['status']} ({figures['reason_code']}): {in_users_words(figures['reason'])}".rstrip(": ")
    if figures["speedup"] is None:
        return "right, not timed"
    ratio = ratio_words(figures["speedup"], figures["speedup_ci95"], unit="eager")
    return ratio if figures["median_ms"] is None else f"{ratio}, {figures['median_ms']:.4f} ms"


PROOF_WORDS: Mapping[Proof, str] = {
    Proof.FASTER: "faster",
    Proof.SLOWER: "slower",
    Proof.OPEN: "no proven gain",
}
"""What the interval of a gain proves; every page that shows one takes these words."""
PROOF_MARKS: Mapping[Proof, str] = {Proof.FASTER: "▲", Proof.SLOWER: "▼", Proof.OPEN: "≈"}
"""The same as a mark, for who does not see its colour."""
PROOF_CSS: Mapping[Proof, str] = {Proof.FASTER: "won", Proof.SLOWER: "lost", Proof.OPEN: "open"}
"""The same as a class of templates/style.css."""


def proof_words(gain: Gain) -> str:
    """Return what is proven of a gain: "faster", "slower", "no proven gain", also that it has no interval."""
    if gain.interval is None:
        return f"{PROOF_WORDS[gain.proof]}: no interval"
    return PROOF_WORDS[gain.proof]


def labels_in_words(labels: Sequence[str]) -> str:
    """Return labels with their meaning: "shape_specialised: made for this shape, …"."""
    return "; ".join(map(label_in_words, labels))


def label_in_words(label: str) -> str:
    """Return one label with its meaning; a foreign one as it is."""
    return f"{label}: {LABEL_WORDS[label]}" if label in LABEL_WORDS else label


def not_met_words(name: str, reason: str) -> str:
    """Return what no kernel of a problem meets: "shifted skipped", "not_varied: mask was tried only as given: …".

    `name` and `reason` are of a verdict's `skipped`, where an argument's or an output's name is behind its label.
    """
    label, _, of = name.partition(" ")
    if not of or label not in NAMED_LABELS:
        return f"{name} skipped"
    tried = f" was tried {TRIED[label]}" if label in TRIED else ""
    return ": ".join(filter(None, (label, f"{of}{tried}", " ".join(reason.split()))))


NAMED_LABELS = (Label.TRIAL_SKIPPED, *TRIED, Label.PARAMETER_WITHOUT_EFFECT, Label.CONSTANT_OUTPUT)
"""Labels that come with the names of trials, arguments or outputs."""


def best_configuration(without_figure: Iterable[str] = ()) -> str:
    """Return the name of PyTorch's best configuration, with the configurations that could not be measured."""
    return f"best configuration{in_brackets(failed_words(without_figure))}"


def failed_words(without_figure: Iterable[str]) -> str:
    """Return "torch.compile failed: no figure" of the configurations that could not be measured, "" of none."""
    failed = " and ".join(map(mode_words, without_figure))
    return f"{failed} failed: no figure" if failed else ""
