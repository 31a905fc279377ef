"""Compositions as sets of names, whatever the family."""

import pytest
from tests.graph.offline.subjects import subject_of

from ridgeline.graph.offline.composer import (
    Structures,
    compatible,
    composition_of,
    header_line,
    merge,
    structures_of,
    with_added,
)
from ridgeline.graph.offline.rowwise.cpu.composer import RowwiseCpu
from ridgeline.graph.offline.rowwise.cpu.structures import Structure


@pytest.fixture
def composer(references):
    return RowwiseCpu(subject_of(references["quickstart"]))


def test_adding_a_structure_replaces_what_it_conflicts_with(composer):
    assert with_added(composer, {"row-block", "poly-math"}, "accumulators") == {"accumulators", "poly-math"}
    assert merge(composer, {"row-block"}, {"accumulators", "prefetch"}) == {"accumulators", "prefetch"}
    assert not compatible(composer, ("row-block", "accumulators"))


def test_a_header_line_is_read_back_in_the_familys_order(composer):
    line = header_line(composer, ("prefetch", "row-buffer"))
    assert line == "// ridgeline-offline: row-buffer prefetch"
    assert structures_of(line + "\nint x;") == {Structure.KEEP, Structure.PREFETCH}
    assert structures_of("int x;") is None


def test_a_foreign_source_counts_as_the_base_and_unknown_names_are_left_out(composer):
    assert composition_of(composer, "int x;") == composer.base() == composition_of(composer, None)
    assert composition_of(composer, "// ridgeline-offline: prefetch warp-per-row\n") == {"prefetch"}


def test_a_failure_points_at_each_structure_once_and_at_all_in_the_end():
    structures = Structures(
        texts={},
        tunable=frozenset(),
        varying=(),
        pointers=((r"crash|memory", ("ring", "stack")), (r"nan", ("stack", "poly"))),
        last_suspects=("poly", "ring", "rest"),
    )
    assert structures.suspects("Memory fault, then NaN") == ("ring", "stack", "poly", "rest")
    assert structures.suspects("?") == ("poly", "ring", "rest")
