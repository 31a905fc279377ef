"""The lineage of a search's kernels as a tree: from whom each descends, its tuned points and failures in a word."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Status
from ridgeline.tools.wording import counted

NODES = 400
"""Kernels that the tree shows; the others are counted."""
DEEPEST = 14
"""A kernel further down is drawn at this depth: beyond it a phone has no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One kernel of the tree, at its depth."""

    candidate: Candidate
    depth: int
    rest: str  # what of its children is not shown: "7 tuned points, 2 failed"
    is_on_path: bool  # the best kernel, or one of its ancestors


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The kernels in the order of a walk, parents before their children."""

    nodes: tuple[Node, ...]
    orphans: str  # of the kernels without a parent, those that are not shown: "2 failed"
    left_out: int


def lineage_tree(candidates: Sequence[Candidate], found: Mapping[str, Evaluation | None], best_id: str | None) -> Tree:
    """Return the tree of the right kernels, and of those that others descend from."""
    known = {c.id: c for c in candidates}
    path = _path(known, best_id)
    shown = _shown(candidates, known, found, path)
    children: dict[str | None, list[Candidate]] = defaultdict(list)
    hidden: dict[str | None, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        parent = candidate.parent_id if candidate.parent_id in known else None
        (children if candidate.id in shown else hidden)[parent].append(candidate)
    nodes: list[Node] = []
    stack = [(candidate, 0) for candidate in reversed(children[None])]
    seen: set[str] = set()
    while stack:
        candidate, depth = stack.pop()
        if candidate.id in seen:
            continue
        seen.add(candidate.id)
        nodes.append(
            Node(
                candidate=candidate,
                depth=min(depth, DEEPEST),
                rest=_rest(hidden[candidate.id], found),
                is_on_path=candidate.id in path,
            )
        )
        stack += [(child, depth + 1) for child in reversed(children[candidate.id])]
    first = _cut(nodes)
    return Tree(nodes=first, orphans=_rest(hidden[None], found), left_out=len(nodes) - len(first))


def _path(known: Mapping[str, Candidate], best_id: str | None) -> set[str]:
    """Return the best kernel and its ancestors."""
    path: set[str] = set()
    while best_id is not None and best_id in known and best_id not in path:
        path.add(best_id)
        best_id = known[best_id].parent_id
    return path


def _shown(
    candidates: Sequence[Candidate],
    known: Mapping[str, Candidate],
    found: Mapping[str, Evaluation | None],
    path: set[str],
) -> set[str]:
    """Return the ids of the written kernels that are right, and of all that a shown one descends from."""
    own = {c.id for c in candidates if c.origin is not Origin.TUNE and _is_right(found.get(c.id))} | path
    shown: set[str] = set()
    for candidate_id in own:
        current: str | None = candidate_id
        while current is not None and current in known and current not in shown:
            shown.add(current)
            current = known[current].parent_id
    return shown


def _is_right(evaluation: Evaluation | None) -> bool:
    return evaluation is not None and evaluation.status is Status.OK


def _rest(children: Sequence[Candidate], found: Mapping[str, Evaluation | None]) -> str:
    """Return how many children are not shown, by what they are."""
    kinds = Counter(_kind(child, found.get(child.id)) for child in children)
    words = (counted(kinds["tuned"], "tuned point"), f"{kinds['failed']} failed", f"{kinds['open']} not judged")
    return ", ".join(text for text, kind in zip(words, ("tuned", "failed", "open"), strict=True) if kinds[kind])


def _kind(candidate: Candidate, evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return "open"
    return "tuned" if candidate.origin is Origin.TUNE and _is_right(evaluation) else "failed"


def _cut(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the first NODES kernels, and the best one's path whatever its place."""
    return tuple(node for place, node in enumerate(nodes) if place < NODES or node.is_on_path)
