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
from ridgeline.graph.offline.convolution.cpu import structures as convolution_cpu
from ridgeline.graph.offline.convolution.cuda import structures as convolution_cuda
from ridgeline.graph.offline.matmul.cpu import structures as matmul_cpu
from ridgeline.graph.offline.matmul.cpu.structures import Structure as MatmulStructure
from ridgeline.graph.offline.matmul.cuda import structures as matmul_cuda
from ridgeline.graph.offline.rowwise.cpu import structures as rowwise_cpu
from ridgeline.graph.offline.rowwise.cpu.composer import RowwiseCpu
from ridgeline.graph.offline.rowwise.cpu.structures import Structure
from ridgeline.graph.offline.rowwise.cuda import structures as rowwise_cuda
from ridgeline.tools.records.vocabulary import ReasonCode


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
        pointers=(
            (frozenset({ReasonCode.CRASHED, ReasonCode.WRONG_VALUES}), ("ring", "stack")),
            (frozenset({ReasonCode.WRONG_VALUES}), ("stack", "poly")),
        ),
        last_suspects=("poly", "ring", "rest"),
    )
    assert structures.suspects(ReasonCode.WRONG_VALUES) == ("ring", "stack", "poly", "rest")
    assert structures.suspects(ReasonCode.CRASHED) == ("ring", "stack", "poly", "rest")
    assert structures.suspects(ReasonCode.NONE) == ("poly", "ring", "rest")


STRUCTURES = {
    "row-wise on a CPU": rowwise_cpu.STRUCTURES,
    "row-wise on a GPU": rowwise_cuda.STRUCTURES,
    "matmul on a CPU": matmul_cpu.STRUCTURES,
    "matmul on a GPU": matmul_cuda.STRUCTURES,
    "convolution on a CPU": convolution_cpu.STRUCTURES,
    "convolution on a GPU": convolution_cuda.STRUCTURES,
}


@pytest.mark.parametrize("structures", STRUCTURES.values(), ids=STRUCTURES)
def test_each_end_of_a_kernel_has_suspects_of_its_own(structures):
    crash, timeout = pointed_at(structures, ReasonCode.CRASHED), pointed_at(structures, ReasonCode.CALL_TIMEOUT)
    wrong = pointed_at(structures, ReasonCode.WRONG_VALUES)
    assert crash and timeout and wrong
    assert crash != timeout != wrong != crash
    assert pointed_at(structures, ReasonCode.NONE) == ()


def test_a_crash_suspects_nothing_that_only_a_timeout_points_at_and_the_other_way_round():
    structures = matmul_cpu.STRUCTURES
    crash, timeout = (pointed_at(structures, c) for c in (ReasonCode.CRASHED, ReasonCode.CALL_TIMEOUT))
    assert MatmulStructure.DYNAMIC in timeout and MatmulStructure.DYNAMIC not in crash
    assert MatmulStructure.TILES in crash and MatmulStructure.TILES not in timeout


def pointed_at(structures, code):
    """Return what a code points at, without the others, which follow in the order of suspicion."""
    groups = [group for codes, group in structures.pointers if code in codes]
    pointed = tuple(dict.fromkeys(s for group in groups for s in group))
    assert structures.suspects(code)[: len(pointed)] == pointed
    return pointed
