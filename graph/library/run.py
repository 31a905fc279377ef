"""A run as a program reads it: rounds, ideas and candidates as typed values, rows for a table, its page for a notebook."""

from __future__ import annotations

import copy
import html
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.idea_results import IdeaResult, idea_results
from ridgeline.checkpoints.history.lineage import findings
from ridgeline.checkpoints.report.run_page import run_page
from ridgeline.checkpoints.result import build_result, choose_best, evaluation_line
from ridgeline.checkpoints.runs.folders import find_run, state_now
from ridgeline.checkpoints.stored_certificate import StoredCertificate, certifies
from ridgeline.graph.library.evaluation import Evaluation
from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.options import RUNS
from ridgeline.tools.errors import InputError, RunError
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.results import Evaluation as StoredEvaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Category, IdeaOutcome, Origin
from ridgeline.tools.wording import in_users_words

PAGE_HEIGHT_PX = 720


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRound:
    """One round of a search."""

    round: int
    ideas: int
    candidates: int  # written by models
    ok: int  # of these
    tuned: int
    best_id: str | None  # of this round
    best_speedup: float | None
    best_so_far: float | None  # the speedup of the search's best kernel at the end of the round
    tokens: int
    usd: float
    wall_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdea:
    """One idea, and what came of it."""

    id: str
    round: int
    title: str
    mechanism: str
    category: Category
    author: str  # a model's name, "offline" or "user"
    predicted_gain: float
    parent_id: str | None
    second_parent_id: str | None
    outcome: IdeaOutcome | None  # None: no implementation was judged
    gain: float | None  # over its parent; None where it has none, or no right kernel
    best_id: str | None
    candidates: int
    failure: str  # why it has no right kernel; "" with one


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCandidate:
    """One kernel of a search, with its source and its verdict."""

    id: str
    round: int
    origin: Origin
    idea_id: str | None
    parent_id: str | None
    author: str  # the model that wrote it; "" of a seed or a tuned variant
    language: str  # "cpp", "cu" or "py"
    source: str = field(repr=False)
    evaluation: Evaluation | None  # None: not judged yet
    _tunables: tuple[tuple[str, str], ...] = field(repr=False)

    @property
    def tunables(self) -> dict[str, str]:
        """Return the values that tuning chose, by name."""
        return dict(self._tunables)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it was when it was opened; nothing of it can be changed. Open it again to see how a search went on.

    It can be pickled, hashed and turned into plain data by `dataclasses.asdict`.
    """

    path: Path
    problem: str
    device: str | None
    state: str  # as in result.json, or "running", or "interrupted, resumable"
    rounds: tuple[RunRound, ...]
    ideas: tuple[RunIdea, ...]
    candidates: tuple[RunCandidate, ...]
    best: RunCandidate | None  # with the certificate's figures where there are some
    _result: dict[str, Any] = field(hash=False)
    _certificate: dict[str, Any] | None = field(hash=False)
    _archive: Path  # the file of what was read

    @property
    def result(self) -> dict[str, Any]:
        """Return the content of result.json as it would be written now."""
        return copy.deepcopy(self._result)

    @property
    def certificate(self) -> dict[str, Any] | None:
        """Return the content of certificate.json; None where nothing was certified."""
        return copy.deepcopy(self._certificate)

    @property
    def is_certified(self) -> bool:
        """Say whether the best kernel passed its certificate."""
        stored = StoredCertificate.from_json(self._certificate) if self._certificate else None
        return certifies(stored, self.best.id if self.best else None)

    @property
    def best_source(self) -> str | None:
        """Return the best kernel's source."""
        return self.best.source if self.best else None

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row for each candidate, in the order in which they came; None for what it does not have."""
        titles = {idea.id: idea.title for idea in self.ideas}
        return [_row(candidate, titles.get(candidate.idea_id or "")) for candidate in self.candidates]

    def to_pandas(self) -> Any:
        """Return `rows` as a pandas DataFrame.

        Raises:
            RunError: pandas is not installed.
        """
        try:
            pandas = importlib.import_module("pandas")  # none of Ridgeline's own requirements
        except ImportError:
            raise RunError("to_pandas: pandas is not installed; pip install pandas, or take rows()") from None
        return pandas.DataFrame(self.rows(), columns=list(ROW))

    def to_html(self) -> str:
        """Return the page of report.html as it would be written now, which loads nothing else.

        The run is read again for it, so it must still be where it was.
        """
        with Archive.open_read_only(self._archive) as archive:
            return run_page(archive).html

    def __repr__(self) -> str:
        best = self.best.evaluation if self.best else None
        found = f"best {best.speedup:.2f}x eager" if best and best.speedup else "no kernel"
        return f"Run({str(self.path)!r}: {self.problem}, {self.state}, {len(self.candidates)} candidates, {found})"

    def _repr_html_(self) -> str:
        """Return the page as a notebook shows it: in a frame without scripts, whose styles stay its own.

        Of a run that is gone it is one line: a cell that shows a run is no place for a traceback.
        """
        try:
            page = self.to_html()
        except InputError as error:
            return f"<p>{html.escape(repr(self))}<br>{html.escape(str(error))}</p>"
        style = f"width:100%;height:{PAGE_HEIGHT_PX}px;border:0"
        return f'<iframe sandbox="" srcdoc="{html.escape(page)}" style="{style}"></iframe>'


ROW = (
    *("id", "round", "origin", "idea_id", "idea", "parent_id", "author", "status", "reason_code", "reason", "speedup"),
    *("speedup_low", "speedup_high", "speedup_vs_best", "median_ms", "reference_ms", "precision_class", "rel_error"),
    *("margin", "labels", "tunables"),
)
"""The columns of `Run.rows`."""
_OF_EVALUATION = ("speedup", "speedup_vs_best", "median_ms", "reference_ms", "rel_error", "margin")


def _row(candidate: RunCandidate, idea: str | None) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(ROW)
    row |= {name: getattr(candidate, name) for name in ("id", "round", "idea_id", "parent_id", "author")}
    row |= {"origin": candidate.origin.value, "idea": idea, "tunables": candidate.tunables, "labels": []}
    if (judged := candidate.evaluation) is not None:
        low, high = judged.speedup_ci95 or (None, None)
        row |= {name: getattr(judged, name) for name in _OF_EVALUATION}
        row |= {
            "status": judged.status.value,
            "reason": in_users_words(judged.reason),
            "reason_code": judged.reason_code.value,
            "speedup_low": low,
            "speedup_high": high,
            "precision_class": judged.precision_class.value if judged.precision_class else None,
            "labels": [label.value for label in judged.labels],
        }
    return row


def open_run(path: Path | str) -> Run:
    """Return a run, finished or not: its folder, the name of one in `runs`, a search id, or an exported archive.

    Nothing is locked or written; a search that goes on meanwhile is not disturbed.

    Raises:
        RunError: there is no such run, or it is damaged; one line says how to fix it.
    """
    given: Path = checked("run", path)
    is_archive = given.is_file()
    with Archive.open_read_only(given if is_archive else find_run(RUNS, given)) as archive:
        return _read(archive, given if is_archive else archive.path.parent)


def _read(archive: Archive, path: Path) -> Run:
    run, result, baselines = archive.run(), build_result(archive), archive.baselines()
    best, found = choose_best(archive), findings(archive)
    return Run(
        path=path,
        problem=run.problem_name,
        device=run.device_name,
        state=str(state_now(archive.path.parent, run)),
        rounds=tuple(_round(entry) for entry in result["history"]),
        ideas=tuple(_idea(each) for each in idea_results(archive)),
        candidates=tuple(_candidate(c, found.get(c.id), baselines) for c in archive.candidates()),
        best=_candidate(best.candidate, best.evaluation, baselines) if best else None,
        _result=result,
        _certificate=archive.certificate_json(),
        _archive=archive.path.absolute(),
    )


def _round(entry: Mapping[str, Any]) -> RunRound:
    return RunRound(**{name: entry[name] for name in RunRound.__dataclass_fields__})


def _idea(result: IdeaResult) -> RunIdea:
    idea = result.idea
    same = ("id", "round", "title", "mechanism", "category", "predicted_gain", "parent_id", "second_parent_id")
    return RunIdea(
        **{name: getattr(idea, name) for name in same},
        author=idea.model,
        outcome=result.outcome,
        gain=result.gain,
        best_id=result.best.candidate_id if result.best else None,
        candidates=result.candidates,
        failure=result.failure,
    )


def _candidate(candidate: Candidate, found: StoredEvaluation | None, baselines: Baselines | None) -> RunCandidate:
    same = ("id", "round", "origin", "idea_id", "parent_id", "language", "source")
    return RunCandidate(
        **{name: getattr(candidate, name) for name in same},
        author=candidate.model,
        _tunables=tuple(candidate.tunables.items()),
        evaluation=Evaluation.of_line(evaluation_line(candidate.id, found, baselines)) if found else None,
    )
