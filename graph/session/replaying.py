"""A search that replays another one: its request, its models' answers and, where asked for, its measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr, ValidationError

from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.recording.file import keep_recording, kept_recording, read_recording
from ridgeline.checkpoints.recording.recording import RecordedRun, Recording, question_of
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import find_run
from ridgeline.checkpoints.steering import Steering
from ridgeline.graph.models.recorded_answers import Answers
from ridgeline.problems.files import ProblemPlace
from ridgeline.problems.mistakes import explain_mistake
from ridgeline.problems.spec import ProblemSpec, load_problem, shipped_problems
from ridgeline.problems.syntax import parse_reference
from ridgeline.tools.errors import ModelError, RunError
from ridgeline.tools.records.keys import SEED_PREFIX
from ridgeline.tools.records.vocabulary import Origin
from ridgeline.tools.wording import counted, option

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.events import OnEvent
    from ridgeline.tools.engine import Engine
    from ridgeline.tools.records.problem import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlace(ProblemPlace):
    """A recording that a problem was read from."""

    recording: Recording


class RecordedProblem(ProblemSpec):
    """A problem as a recording holds it: reference, seeds and building blocks are read from there, not from files."""

    _run: RecordedRun = PrivateAttr()
    _seeds: tuple[tuple[str, str], ...] = PrivateAttr()

    def model_post_init(self, place: Any) -> None:
        """Take what the recording holds beside the problem's fields."""
        super().model_post_init(place)
        self._run = place.recording.run
        seeds = (each for each in place.recording.given if each.origin is Origin.SEED)
        self._seeds = tuple((each.id.removeprefix(SEED_PREFIX), each.source) for each in seeds)

    def reference_source(self, kind: str) -> str:
        """Return the recorded reference, sizes included; ProblemError for another kind of device, or for no reference."""
        self.target(kind)
        parse_reference(self._run.reference_source, f"{self.given}: its reference")
        return self._run.reference_source

    def seed_sources(self, kind: str) -> list[tuple[str, str]]:
        """Return the recorded seeds."""
        return list(self._seeds)

    def seed_paths(self) -> list[Path]:
        """Return none: the recording's globs name nothing here."""
        return []

    def reference_kernels(self, kind: str) -> list[tuple[str, str, str]]:
        """Return none: the recorded building blocks are what models are shown of `references`."""
        self.target(kind)
        return []

    @classmethod
    def of(cls, recording: Recording, path: Path) -> RecordedProblem:
        """Return the problem of a recording that was read from `path`.

        Raises:
            RunError: this version reads no such problem.
        """
        try:
            return cls.stated(recording.run.problem, RecordedPlace(path=path, given=path, recording=recording))
        except ValidationError as error:
            mistake = explain_mistake(error.errors(), ProblemSpec, {})
            raise RunError(f"{path}: its problem cannot be read: {mistake}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A recorded search that is replayed."""

    path: Path  # where it was read
    origin: Path  # where it lay when the replay began
    recording: Recording
    replays_times: bool  # measurements are replayed too
    otherwise: str  # the model that answers what was not recorded; "": none
    is_strict: bool  # a call that was not recorded ends the search
    answers: Answers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "answers", self._answers())

    def _answers(self) -> Answers:
        return Answers(self.recording, where=str(self.path), is_alone=not self.otherwise, is_strict=self.is_strict)

    def problem(self) -> ProblemSpec:
        """Return the recorded problem."""
        return RecordedProblem.of(self.recording, self.path)

    def engine(self, target: Target) -> Engine:
        """Return the engine that measures nothing."""
        from ridgeline.tools.engines.replaying import RecordedReference, ReplayingEngine

        run = self.recording.run
        reference = RecordedReference(target=target, description=run.description, baselines=run.baselines)
        return ReplayingEngine(reference, self.recording.measurements, where=str(self.path))

    def hand_over(self, run_dir: Path, archive: Archive, *, resumes: bool) -> None:
        """Store what a replay needs of its recording, which may not be there when it is resumed elsewhere.

        That is the recording itself and, in a new replay's archive, what the recorded search was given beside its problem:
        the bank's kernels, what it was told, and what its models were shown, building blocks and the device's table, which
        an older recording lacks and this machine's then stands for. A search that another process has begun here since
        is left as it is.
        """
        if resumes != archive.run().has_begun:
            return
        keep_recording(self.recording, run_dir, replaces=not resumes)
        if resumes:
            return
        run = self.recording.run
        archive.save_run(RunRecord(blocks=run.blocks, facts=run.facts or None))
        archive.add_candidates(each for each in self.recording.given if each.origin is Origin.BANK)
        Steering(archive).copy(self.recording.told)

    def to_json(self, archive: Archive | None = None) -> dict[str, Any]:
        """Return result.json's `replay`, the counts by what `archive` holds of the replay's calls."""
        run = self.recording.run
        return {
            "from": str(self.origin.absolute()),
            "run": run.name,
            "times": self.replays_times,
            "measured_on": run.device.name if self.replays_times else None,
            "measured_at": run.started_at if self.replays_times else None,
            "otherwise": self.otherwise or None,
            "strict": self.is_strict,
            **(self._counts(archive) if archive else {}),
        }

    def _counts(self, archive: Archive) -> dict[str, int]:
        """Return how many calls there were, and of these: with another prompt, about something else, not recorded."""
        counts = {"calls": 0, "other_prompts": 0, "other_questions": 0, "not_recorded": 0}
        for call in Journal(archive).calls():
            question = question_of(call.request)
            # one that waited says nothing of what it asked about: no recorded call waits
            found = self.answers.find(call.call_id, question) if question is not None else None
            counts["calls"] += 1
            counts["not_recorded"] += found is None
            counts["other_prompts"] += found is not None and found.prompt_sha256 != call.prompt_sha256
            counts["other_questions"] += found is not None and found.question not in (None, question)
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedReplay:
    """A replay as a request asks for it."""

    path: Path | None
    replays_times: bool
    otherwise: str
    is_strict: bool
    names_models: bool  # the request names models of its own
    resumes: bool


def find_recording(named: Path | str, runs_dir: Path) -> Path:
    """Return the recording that is meant: a file, a run's folder, or the name of a run in `runs_dir`.

    Raises:
        RunError: there is none.
    """
    return Path(named) if Path(named).exists() else find_run(runs_dir, named)


def read_replay(asked: AskedReplay) -> Replay | None:
    """Return what a new search is to replay; None where it replays nothing.

    Raises:
        InputError: the request contradicts itself, or there is no such recording.
    """
    if asked.path is None:
        if (asked.replays_times or asked.otherwise or asked.is_strict) and not asked.resumes:
            raise RunError(
                f"{option('replay_timings')}, {option('replay_else')} and {option('replay_strict')} belong to a replay: "
                f"name its run with {option('replay', 'RUN')}"
            )
        return None
    if asked.names_models:
        raise ModelError(
            f"{option('model')}: a replay has the models of its run; {option('replay_else')} names one for calls that were "
            "not recorded"
        )
    if asked.resumes:
        named = option("replay")
        raise RunError(f"{named}: a replay that has begun goes on with what it replays; leave {named} out")
    return _read(
        asked.path,
        origin=asked.path,
        replays_times=asked.replays_times,
        otherwise=asked.otherwise,
        is_strict=asked.is_strict,
    )


def resumed_replay(run_dir: Path, begun: RunRecord, asked: AskedReplay) -> Replay | None:
    """Return what a search that goes on replays; the model for other calls may be named anew.

    Read is what its folder keeps, else, of a search that an earlier version began, what it began with.
    """
    if begun.replay is None:
        return None
    stored = begun.replay
    otherwise = asked.otherwise or str(stored.get("otherwise") or "")
    is_strict = asked.is_strict or bool(stored.get("strict"))
    origin, replays_times = Path(stored["from"]), bool(stored.get("times"))
    path = kept_recording(run_dir) or origin
    return _read(path, origin=origin, replays_times=replays_times, otherwise=otherwise, is_strict=is_strict)


def _read(path: Path, *, origin: Path, replays_times: bool, otherwise: str, is_strict: bool) -> Replay:
    return Replay(
        path=path,
        origin=origin,
        recording=read_recording(path),
        replays_times=replays_times,
        otherwise=otherwise,
        is_strict=is_strict,
    )


def runs_foreign_reference(problem: ProblemSpec, target: Target, *, replays_times: bool) -> bool:
    """Say whether a search runs a reference that came in a recording: code which neither the user nor Ridgeline wrote.

    A reference is run as the user, outside of the sandbox. One that ships, by its content, is Ridgeline's own; one of a
    problem that the user named is the user's.
    """
    if replays_times or not isinstance(problem, RecordedProblem):
        return False
    kind = target.device.kind.value
    shipped = (load_problem(path) for path in shipped_problems().values())
    known = {each.reference_source(kind) for each in shipped if kind in each.targets}
    return target.reference_source not in known


def tell_replayed(replay: Mapping[str, Any] | None, on_event: OnEvent) -> None:
    """Say once how far the questions of a replay were the recorded ones; another wording alone is no fault."""
    if replay is None:
        return
    calls = counted(replay["calls"], "call")
    if other := replay["other_prompts"]:
        words = "the wording of prompts has changed since it was recorded"
        on_event(
            {
                "event": "note",
                "message": f"replay: {words} ({other} of {calls}); the recorded answers count all the same",
            }
        )
    said = {
        "other_questions": "asked something else than the recorded one, and got its answer all the same",
        "not_recorded": "had no recorded answer",
    }
    found = [f"{replay[name]} {words}" for name, words in said.items() if replay[name]]
    if found:
        on_event({"event": "warning", "message": f"replay: of {calls} {'; '.join(found)}"})
