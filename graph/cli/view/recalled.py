"""The board of a resumed search, as its archive tells it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.runs.folders import UNFINISHED
from ridgeline.graph.cli.view.board import PREPARING
from ridgeline.graph.search.ranking.elites import read_standings
from ridgeline.tools.records.vocabulary import SEARCHED, Status

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.cli.view.board import Board


def recall(board: Board, archive: Archive) -> None:
    """Fill the board of a resumed search from its archive; this session's events go on from there."""
    totals, rounds = Journal(archive).totals(), archive.rounds()
    board.tokens, board.usd, board.unpriced = totals.tokens, totals.usd, totals.unpriced
    board.ideas = {idea.id: idea.title for idea in archive.ideas()}
    board.idea_by_candidate = {c.id: c.idea_id for c in archive.candidates() if c.idea_id}
    for found in archive.evaluations():
        if found.purpose in SEARCHED:
            is_correct = found.status is Status.OK and found.speedup is not None
            board.verdicts[found.candidate_id] = is_correct
            if is_correct and found.speedup is not None:
                median_ms = found.timing.median_ms if found.timing else None
                noted = (found.candidate_id, found.speedup, found.speedup_interval, median_ms)
                board.note_speedup(*noted)
    board.verdicts |= {f.candidate_id: False for f in archive.engine_failures() if f.purpose in SEARCHED}
    for best in read_standings(archive)[:1]:
        interval = best.evaluation.speedup_interval
        board.set_best(best.candidate.id, best.speedup, interval, best.median_ms)
    board.history = {each.round: each.best_speedup for each in rounds if each.best_speedup is not None}
    ends_s = [0.0, *(each.wall_s or 0.0 for each in rounds)]
    board.round_s = [end_s - begin_s for begin_s, end_s in pairwise(ends_s)]
    _recall_place(board, archive, rounds_over=len(rounds))


def _recall_place(board: Board, archive: Archive, *, rounds_over: int) -> None:
    """Set PyTorch's times and the round that the search is in."""
    if baselines := archive.baselines():
        board.baselines_ms = {entry.name: entry.median_ms for entry in baselines.entries}
        board.baselines_stored = baselines.stored()
        board.floor_ms, board.compute_floor_ms = baselines.floor.floor_ms, baselines.floor.compute_floor_ms
        board.phase = PREPARING
    board.rounds_over = rounds_over
    board.round = max([rounds_over, *(idea.round for idea in archive.ideas())])
    board.max_rounds = max(board.round, int((archive.run().settings or {}).get("rounds", 0)))
    board.is_over = archive.run().state not in UNFINISHED  # until a round begins, which none may
    if board.round:
        verb = "after" if board.round == rounds_over else "going on with"
        looking = ": looking for what is left to do" if board.is_over else ""
        board.phase = f"{verb} round {board.round} of {board.max_rounds}{looking}"
