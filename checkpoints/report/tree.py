"""The lineage of a search's kernels as a tree: from whom each descends, its tuned points and failures in a word."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
    path = _with_ancestors(known, [best_id] if best_id else [])
    right = [c.id for c in candidates if c.origin is not Origin.TUNE and _is_right(found.get(c.id))]
    shown = _with_ancestors(known, right) | path
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


def _with_ancestors(known: Mapping[str, Candidate], ids: Iterable[str]) -> set[str]:
    """Return these kernels and all that they descend from, as far as they are known."""
    found: set[str] = set()
    for candidate_id in ids:
        current: str | None = candidate_id
        while current is not None and current in known and current not in found:
            found.add(current)
            current = known[current].parent_id
    return found


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
