"""The state of a running search as its events tell it; every view draws from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ridgeline.checkpoints.report.wording import step_words
from ridgeline.checkpoints.result import BestKernel
from ridgeline.graph.cli.view.outcomes import describe_outcome
from ridgeline.graph.search import events
from ridgeline.tools.records.reference_mode import mode_words
from ridgeline.tools.records.vocabulary import Status
from ridgeline.tools.wording import counted

PREPARING = "preparing the first round"


@dataclass(slots=True, kw_only=True)
class Branch:
    """One branch of the current round, by its latest event."""

    idea_id: str
    stage: str = "write"
    attempt: int = 0
    model: str = ""
    outcome: str = ""
    is_correct: bool = False
    since: int = 0  # the step's number among all branches' steps, in the order in which they began


@dataclass(slots=True, kw_only=True)
class Board:
    """Everything that the views show; `apply` takes the events in."""

    problem: str
    device: str
    models: tuple[str, ...]
    replays_times: bool = False
    clock: Callable[[], float] = time.monotonic
    began_at: float = 0.0
    phase: str = "measuring the reference"
    baselines_ms: dict[str, float | None] = field(default_factory=dict)
    baselines_stored: dict[str, str] = field(default_factory=dict)  # when those kept from earlier were measured
    are_of_certificate: bool = False  # PyTorch's times, so that the best kernel's ratios rest on them
    floor_ms: float | None = None  # of memory
    compute_floor_ms: float = 0.0
    round: int = 0
    max_rounds: int = 0
    rounds_over: int = 0
    is_over: bool = False  # no further round comes, as far as is known
    round_s: list[float] = field(default_factory=list)  # what each finished round took
    ends_at: float | None = None  # when the certificate is expected to be done, once it is under way
    certificate_s: float | None = None  # what it was expected to take as it began
    round_at: float = 0.0  # when the current round began, or the session when that is later
    ideas: dict[str, str] = field(default_factory=dict)
    branches: dict[str, Branch] = field(default_factory=dict)
    steps_begun: int = 0
    best_id: str | None = None
    best_speedup: float | None = None
    best_interval: Sequence[float] | None = None
    best_ms: float | None = None
    idea_by_candidate: dict[str, str] = field(default_factory=dict)
    history: dict[int, float] = field(default_factory=dict)  # best speedup by round
    verdicts: dict[str, bool] = field(default_factory=dict)  # is_correct by candidate
    tokens: int = 0
    fastest: tuple[str, float, Sequence[float] | None] | None = None  # by the figure alone, which may rank behind
    figures: dict[str, tuple[float, Sequence[float] | None, float | None]] = field(default_factory=dict)
    comparing: set[frozenset[str]] = field(default_factory=set)  # pairs of kernels that are timed in turns
    compared: set[frozenset[str]] = field(default_factory=set)  # and those of which the outcome is known
    # the other of the pair, by the kernel that failed there
    failed_beside: dict[str, str] = field(default_factory=dict)
    failed_step: dict[str, str] = field(default_factory=dict)  # of a certificate, by candidate
    usd: float = 0.0
    unpriced: int = 0  # calls whose price is unknown
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # on what is as it should be
    waiting_for: tuple[str, str, int] | None = None  # the device, what holds it, and how many processes that are
    waiting_at: float = 0.0  # when that began
    waited_s: float = 0.0  # for other processes since the certificate began, but for the wait that lasts
    requests: tuple[int, str] | None = None  # how many wait for an answer, and in which folder
    batched: int = 0  # requests that wait in batches
    stopping: str = ""  # a stop was asked for, and how to hasten it; empty once the search has stopped

    def __post_init__(self) -> None:
        self.began_at = self.round_at = self.clock()

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take one event in; an event that this version does not know changes nothing."""
        handler = self.HANDLERS.get(event["event"])
        if handler is not None:
            handler(self, event)

    def elapsed_s(self) -> float:
        """Return the seconds since the search's process began."""
        return self.clock() - self.began_at

    @property
    def place(self) -> str:
        """Return the round that the search is in, and of how many where that is known."""
        return place_words(self.round, self.max_rounds)

    @property
    def behind(self) -> tuple[str, float, Sequence[float] | None] | None:
        """Return the kernel whose figure is higher than the best kernel's, and which ranks behind it; None without one."""
        is_higher = self.fastest is not None and f"{self.fastest[1]:.2f}" != f"{self.best_speedup or 0.0:.2f}"
        return self.fastest if is_higher and self.fastest and self.fastest[1] > (self.best_speedup or 0.0) else None

    def left_s(self) -> float | None:
        """Return a guess at the seconds left; None where there is none yet.

        Of the rounds by the mean of the finished ones; after them of the certificate, by what it is expected to take.
        """
        if self.replays_times:  # a few seconds, which differ from round to round
            return None
        if self.ends_at is not None:
            return max(0.0, self.ends_at + self._waiting_s() - self.clock())
        rounds_left = 0 if self.is_over else self.max_rounds - self.rounds_over
        if not self.round_s or rounds_left <= 0:
            return None
        usual_s = self.expected_s() or 0.0
        return max(0.0, usual_s - (self.clock() - self.round_at)) + usual_s * (rounds_left - 1)

    def expected_s(self) -> float | None:
        """Return what is expected of the certificate under way, else of a round; None where nothing is."""
        if self.ends_at is not None:
            return self.certificate_s
        return sum(self.round_s) / len(self.round_s) if self.round_s else None

    def _waiting_s(self) -> float:
        """Return for how long another process has been waited for by now."""
        return self.clock() - self.waiting_at if self.waiting_for else 0.0

    def timed_branch(self) -> str | None:
        """Return the branch that is timed: of those at the benchmark step, the one that began it first."""
        asking = [(branch.since, name) for name, branch in self.branches.items() if branch.stage == "benchmark"]
        return min(asking)[1] if asking else None

    def settle(
        self, words: str, best: BestKernel | None = None, again_ms: Mapping[str, float | None] | None = None
    ) -> None:
        """Show how a search ended, also one that was asked to stop; `again_ms` has PyTorch's times of a certificate."""
        self.phase, self.stopping, self.ends_at, self.is_over = words, "", None, True
        if best and best.speedup is not None:
            self.set_best(best.id, best.speedup, best.speedup_ci95, best.median_ms)
            self.fastest = None  # the end says why another figure does not count
        if again_ms:
            self.baselines_ms, self.baselines_stored, self.are_of_certificate = dict(again_ms), {}, True

    def best_of_torch(self) -> tuple[str, float] | None:
        """Return the name and milliseconds of the fastest baseline that ran."""
        ran = [(ms, name) for name, ms in self.baselines_ms.items() if ms is not None]
        return (min(ran)[1], min(ran)[0]) if ran else None

    def _on_baseline(self, event: events.BaselineEvent) -> None:
        # the event comes again once the compiled configurations are timed
        self.phase = "PyTorch's configurations are timed" if self.baselines_ms else PREPARING
        self.baselines_ms, self.baselines_stored = dict(event["baselines_ms"]), dict(event.get("stored", {}))
        self.floor_ms, self.compute_floor_ms = event["floor_ms"], event.get("compute_floor_ms", 0.0)

    def _on_timing_pytorch(self, event: events.TimingPyTorch) -> None:
        now, *later = map(mode_words, event["pending"])
        then = f"; then {', '.join(later)}" if later else ""
        self.phase = f"timing PyTorch: {now}, which may take minutes unless it is stored{then}"

    def _on_seeds(self, event: events.SeedsEvent) -> None:
        banked = event.get("banked", 0)
        whose = f", {banked} of them of earlier searches (the seed bank)" if banked else ""
        self.phase = f"judging {counted(event['kernels'], 'seed kernel')}{whose}"

    def _on_ideation(self, event: events.IdeationEvent) -> None:
        self.phase = f"{place_words(event['round'], event['max_rounds'])}: ideas are asked for"
        self.is_over = False

    def _on_comparing(self, event: events.ComparingEvent) -> None:
        self.phase = compared_words(event)
        self.comparing.add(frozenset(event["candidate_ids"]))

    def _on_not_compared(self, event: events.NotComparedEvent) -> None:
        first, second = event["candidate_ids"]
        self.comparing.discard(frozenset((first, second)))
        if event["failed"]:
            self.failed_beside[event["failed"]] = second if event["failed"] == first else first

    def _end_comparing(self) -> None:
        self.compared |= self.comparing
        self.comparing.clear()

    def _on_round_started(self, event: events.RoundStarted) -> None:
        self.round, self.max_rounds, self.is_over = event["round"], event["max_rounds"], False
        self.branches.clear()
        self.phase, self.ends_at = self.place, None
        self.round_at = self.clock()

    def _on_idea(self, event: events.IdeaEvent) -> None:
        self.ideas[event["idea_id"]] = event["title"]

    def _on_branch_stage(self, event: events.BranchStage) -> None:
        name = event["branch"]
        branch = self.branches.setdefault(name, Branch(idea_id=event["idea_id"]))
        branch.stage, branch.attempt = event["stage"], event["attempt"]
        branch.model = event["model"] or branch.model
        self.steps_begun += 1
        branch.since = self.steps_begun

    def _on_candidate_done(self, event: events.CandidateDone) -> None:
        speedup = event["speedup"] if event["status"] == Status.OK else None
        is_correct = speedup is not None
        self.verdicts[event["candidate_id"]] = is_correct
        if event["idea_id"]:
            self.idea_by_candidate[event["candidate_id"]] = event["idea_id"]
        if branch := self.branches.get(event["branch"]):
            branch.stage, branch.outcome = "done", describe_outcome(event)  # until a repair begins
            branch.is_correct = is_correct
        if speedup is not None:
            self.note_speedup(event["candidate_id"], speedup, event["speedup_ci95"], event["median_ms"])
            if _sure(speedup, event["speedup_ci95"]) > self._best_sure():
                self.set_best(event["candidate_id"], speedup, event["speedup_ci95"], event["median_ms"])

    def _on_round_done(self, event: events.RoundDone) -> None:
        self.tokens, self.usd, self.unpriced = event["tokens"], event["usd"], event.get("unpriced_calls", 0)
        self.round_s.append(self.clock() - self.round_at)
        self.rounds_over, self.round_at = event["round"], self.clock()
        self._end_comparing()
        if event["best_speedup"] is not None:
            found = (event["best_speedup"], event["best_speedup_ci95"], event["best_median_ms"])
            self.set_best(event["best_id"], *found)
            self.history[event["round"]] = event["best_speedup"]

    def _on_tune(self, event: events.TuneEvent) -> None:
        self.phase = f"{self.place}: tuning, {event['trial']} of {event['trials']}"

    def _on_certification(self, event: events.CertificationEvent) -> None:
        self.phase, self.waited_s = f"certification: {event['phase']}", 0.0
        self.ends_at, self.certificate_s = self.clock() + event["left_s"], event["left_s"]

    def _on_certify(self, event: events.CertifyEvent) -> None:
        number, of = event.get("place", (0, 0))
        place = f", step {number} of {of}" if of else ""
        self._end_comparing()
        name = event["candidate_id"]
        self.phase = f"certifying {name}{place}: {step_words(event['step'])}"
        if event["passed"] is False and not event.get("skipped"):
            self.failed_step.setdefault(name, step_words(event["step"]))
        if name in self.figures:
            self.set_best(name, *self.figures[name])
        if "left_s" in event:
            self.ends_at = self.clock() + event["left_s"]

    def _on_stopped(self, event: events.StoppedEvent) -> None:
        if event["outcome"] == "stopping":
            self.stopping = event["reason"]
        else:
            self.phase, self.is_over = describe_stop(event, self), True

    def _on_waiting(self, event: events.WaitingEvent) -> None:
        if event["holder"]:
            self.waiting_at = self.waiting_at if self.waiting_for else self.clock()
            self.waiting_for = (event["device"], event["holder"], event["holders"])
        elif self.waiting_for:
            self.waited_s += self._waiting_s()
            if self.ends_at is not None:  # of what it takes without other processes
                self.ends_at += self._waiting_s()
            self.waiting_for = None

    def _on_mailbox(self, event: events.MailboxEvent) -> None:
        self.requests = (len(event["waiting"]), event["folder"]) if event["waiting"] else None

    def _on_batch(self, event: events.BatchEvent) -> None:
        self.batched = len(event["waiting"])

    def _on_warning(self, event: events.WarningEvent) -> None:
        self.warnings.append(event["message"])

    def _on_note(self, event: events.NoteEvent) -> None:
        self.notes.append(event["message"])

    HANDLERS: ClassVar[Mapping[str, Callable[[Board, Any], None]]] = {
        "baseline": _on_baseline,
        "timing_pytorch": _on_timing_pytorch,
        "seeds": _on_seeds,
        "ideation": _on_ideation,
        "round_started": _on_round_started,
        "idea": _on_idea,
        "branch_stage": _on_branch_stage,
        "candidate_done": _on_candidate_done,
        "round_done": _on_round_done,
        "tune": _on_tune,
        "comparing": _on_comparing,
        "not_compared": _on_not_compared,
        "certification": _on_certification,
        "certify": _on_certify,
        "stopped": _on_stopped,
        "waiting": _on_waiting,
        "mailbox": _on_mailbox,
        "batch": _on_batch,
        "warning": _on_warning,
        "note": _on_note,
    }
    """What takes each event in: every one of `SearchEvent`."""

    def _best_sure(self) -> float:
        return _sure(self.best_speedup, self.best_interval)

    def note_speedup(
        self, candidate_id: str, speedup: float, interval: Sequence[float] | None, median_ms: float | None
    ) -> None:
        """Keep the figures of a correct kernel."""
        self.figures[candidate_id] = (speedup, interval, median_ms)
        if self.fastest is None or speedup > self.fastest[1]:
            self.fastest = (candidate_id, speedup, interval)

    def set_best(
        self, candidate_id: str | None, speedup: float, interval: Sequence[float] | None, median_ms: float | None
    ) -> None:
        """Show a kernel as the best one."""
        self.best_id, self.best_speedup, self.best_interval = candidate_id, speedup, interval
        self.best_ms = median_ms


def _sure(speedup: float | None, interval: Sequence[float] | None) -> float:
    """Return the lower end of a speedup's interval, by which the search ranks too."""
    return interval[0] if interval else speedup or 0.0


def compared_words(event: events.ComparingEvent) -> str:
    """Return which two kernels are timed in turns, and why."""
    (first, second), (number, of) = event["candidate_ids"], event["place"]
    return f"timing {first} and {second} in turns, {number} of {of}: the search could not tell them apart"


def place_words(round_: int, max_rounds: int) -> str:
    """Return the number of a round, and of how many where that is known."""
    return f"round {round_} of {max_rounds}" if max_rounds else f"round {round_}"


def describe_stop(event: Mapping[str, Any], board: Board) -> str:
    """Return why a search ends; a search that was asked to stop never reads as `finished`."""
    return str(event["reason"]) if board.stopping else f"{event['outcome']}: {event['reason']}"
