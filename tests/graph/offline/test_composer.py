"""Compositions as sets of names, whatever the family."""

import pytest

from ridgeline.graph.offline.composer import (
    compatible,
    composition_of,
    header_line,
    merge,
    pointed_at,
    structures_of,
    with_added,
)
from ridgeline.graph.offline.rowwise import RowwiseCpp
from ridgeline.graph.offline.structures import Structure

from .test_model import subject_of


@pytest.fixture
def composer(references):
    return RowwiseCpp(subject_of(references["quickstart"]))


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
    pointers = ((r"crash|memory", ("ring", "stack")), (r"nan", ("stack", "poly")))
    assert pointed_at("Memory fault, then NaN", pointers, ("poly", "ring", "rest")) == ("ring", "stack", "poly", "rest")
    assert pointed_at("?", pointers, ("poly", "ring")) == ("poly", "ring")
