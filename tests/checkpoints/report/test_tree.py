"""The tree of kernels: every right one below the one that it came from, whatever an archive says."""

from __future__ import annotations

from types import SimpleNamespace

from ridgeline.checkpoints.report.tree import DEEPEST, NODES, lineage_tree
from ridgeline.tools.records.vocabulary import Origin, ReasonCode, Status


def test_kernels_stand_below_their_parents_and_the_rest_is_counted(story: SimpleNamespace) -> None:
    make = story.candidate
    candidates = [
        make("seed-a", origin=Origin.SEED, round=0), make("r1i0v0a0", parent_id="seed-a"),
        make("r1i0v1a0", parent_id="seed-a"), make("r1i0v0a0t0", parent_id="r1i0v0a0", origin=Origin.TUNE),
        make("r1i0v0a0t1", parent_id="r1i0v0a0", origin=Origin.TUNE),
        make("r2i0v0a0", parent_id="r1i0v0a0t1", round=2), make("r2i1v0a0", parent_id="r1i0v0a0", round=2),
        make("r2i2v0a0", round=2),
    ]  # fmt: skip
    wrong = story.failed("r1i0v1a0", Status.WRONG, ReasonCode.WRONG_VALUES, "")
    found = {c.id: story.ok(c.id, 2.0) for c in candidates} | {"r1i0v1a0": wrong, "r2i1v0a0": None, "r2i2v0a0": wrong}
    tree = lineage_tree(candidates, found, "r2i0v0a0")
    assert [(node.candidate.id, node.depth, node.is_on_path, node.rest) for node in tree.nodes] == [
        ("seed-a", 0, True, "1 failed"),
        ("r1i0v0a0", 1, True, "1 tuned point, 1 not judged"),
        ("r1i0v0a0t1", 2, True, ""),
        ("r2i0v0a0", 3, True, ""),
    ]
    assert tree.orphans == "1 failed"


def test_a_chain_without_an_end_and_a_circle_are_still_trees(story: SimpleNamespace) -> None:
    count = 3000
    chain = [story.candidate(f"c{n}", parent_id=f"c{n - 1}" if n else None) for n in range(count)]
    circle = [story.candidate("x", parent_id="y"), story.candidate("y", parent_id="x")]
    found = {c.id: story.ok(c.id, 1.5) for c in (*chain, *circle)}
    tree = lineage_tree([*chain, *circle], found, "x")
    assert len(tree.nodes) == NODES and tree.left_out == count - NODES
    assert max(node.depth for node in tree.nodes) == DEEPEST
