"""CUDA for row programs: what fits together, what is said of it, and that nvcc takes it without a warning."""

import dataclasses
import shutil

import pytest
from tests.graph.offline.subjects import HOPPER, some_slow, subject_of

from ridgeline.graph.offline.composer import compatible, merge, structures_of
from ridgeline.graph.offline.program.ir import Load
from ridgeline.graph.offline.program.schedule import plan_sweeps
from ridgeline.graph.offline.rowwise.cuda.composer import RowwiseCuda
from ridgeline.graph.offline.rowwise.cuda.geometry import alignment, width_of
from ridgeline.graph.offline.rowwise.cuda.keeps import keep_row
from ridgeline.graph.offline.rowwise.cuda.structures import Structure
from ridgeline.graph.search.sources.tuning import parse_tunables
from ridgeline.tools.records.problem import Signature
from ridgeline.tools.records.vocabulary import ReasonCode

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


def composer_of(reference, *, rows=None, cols=None, device=HOPPER):
    """Return the composer of a reference, its rows made longer or more where the graph allows."""
    return RowwiseCuda(subject_of(resized(reference, rows, cols), device))


def resized(reference, rows, cols):
    if rows is None:
        return reference
    described = reference.description
    before, after = list(described.signature.args[0].shape), [rows, cols]
    graph = described.reference_graph
    nodes = [{**n, "shape": after if n.get("shape") == before else rest(n, rows)} for n in graph["nodes"]]
    nodes = [{**n, "strides": [cols, 1] if n.get("shape") == after else n.get("strides")} for n in nodes]
    args = [dataclasses.replace(a, shape=(rows, cols), strides=(cols, 1)) for a in described.signature.args]
    signature = Signature(args=tuple(args))
    graph = {**graph, "nodes": nodes}
    return dataclasses.replace(
        reference, description=dataclasses.replace(described, reference_graph=graph, signature=signature)
    )


def rest(node, rows):
    return [rows, *node["shape"][1:]] if node.get("shape") else node.get("shape")


@pytest.fixture
def softmax(references):
    return composer_of(references["softmax"], rows=4096, cols=65536)


@pytest.fixture
def long_rows(references):
    return composer_of(references["softmax"], rows=16, cols=1 << 22)


def test_long_row_in_registers_takes_a_cluster_that_leaves_room_for_two_blocks(softmax):
    source = softmax.write_source(frozenset({Structure.VECTOR, Structure.REGISTERS}), 0)
    assert "constexpr int CLUSTER = 4;  // tune: CLUSTER = 2 | 4 | 8" in source
    assert "constexpr int THREADS = 512;" in source and "__cluster_dims__" in source


def test_row_that_no_cluster_holds_takes_the_whole_grid(long_rows):
    source = long_rows.write_source(frozenset({Structure.VECTOR, Structure.REGISTERS}), 0)
    assert "cudaLaunchAttributeCooperative" in source and "constexpr int TEAMS = 1;" in source


def test_few_long_rows_start_split_and_short_ones_with_a_warp(long_rows, references):
    assert long_rows.base() == {Structure.VECTOR, Structure.SPLIT}
    assert composer_of(references["softmax"], rows=4096, cols=512).base() == {
        Structure.VECTOR,
        Structure.WARP,
        Structure.REGISTERS,
    }


def test_odd_columns_leave_nothing_to_load_as_vectors(references):
    composer = composer_of(references["softmax"], rows=37, cols=1001)
    assert Structure.VECTOR not in composer.applicable() and Structure.ASYNC not in composer.applicable()


def test_older_architecture_has_no_clusters_and_no_bulk_copies(references):
    device = dataclasses.replace(HOPPER, arch="sm_80", cores=108)
    composer = composer_of(references["softmax"], rows=4096, cols=65536, device=device)
    assert not {Structure.CLUSTER, Structure.ASYNC} & set(composer.applicable())
    assert "__cluster_dims__" not in composer.write_source(frozenset({Structure.REGISTERS}), 0)


def test_row_that_no_grid_holds_is_read_again(references):
    composer = composer_of(references["softmax"], rows=4, cols=1 << 24)
    assert not {Structure.REGISTERS, Structure.SHARED, Structure.ASYNC} & set(composer.applicable())
    assert "keep0" not in composer.write_source(frozenset({Structure.REGISTERS}), 0)


def test_source_names_its_structures_and_declares_tunables(softmax):
    composition = frozenset({Structure.VECTOR, Structure.REGISTERS, Structure.ASYNC})
    source = softmax.write_source(composition, 0)
    assert structures_of(source) == composition
    assert {"THREADS", "VEC", "UNROLL", "CLUSTER", "AHEAD"} == {t.name for t in parse_tunables(source)}


def test_kept_row_and_ring_of_copied_rows_are_never_in_one_kernel(softmax):
    """Both would start where shared memory does; of rows shared by a cluster the ring overwrote the kept row."""
    source = softmax.write_source(
        frozenset(
            {Structure.SHARED, Structure.VECTOR, Structure.ASYNC, Structure.ONLINE, Structure.STREAM, Structure.FAST}
        ),
        0,
    )
    assert structures_of(source) == {
        Structure.SHARED,
        Structure.VECTOR,
        Structure.ONLINE,
        Structure.STREAM,
        Structure.FAST,
    }
    assert "keep0" in source and "rl_bulk" not in source


def test_variations_start_their_tunables_elsewhere(softmax):
    assert len({softmax.write_source(softmax.base(), v) for v in range(3)}) == 3


def test_no_structure_is_expected_to_slow_a_kernel(softmax):
    assert all(softmax.expected_gain(s) >= 1.0 for s in softmax.applicable())


def test_where_registers_hold_a_long_row_cheaper_arithmetic_is_expected_to_bring_more_than_saved_sweeps(softmax):
    assert {Structure.VECTOR, Structure.REGISTERS} == softmax.base()
    small = [softmax.expected_gain(s) for s in (Structure.FAST, Structure.STREAM, Structure.PERSIST)]
    assert min(small) > max(softmax.expected_gain(s) for s in (Structure.ONLINE, Structure.ASYNC, Structure.CLUSTER))


def test_split_rows_are_expected_to_gain_most_by_fewer_sweeps(long_rows):
    others = (Structure.GRID, Structure.REGISTERS, Structure.SHARED, Structure.CLUSTER)
    assert long_rows.expected_gain(Structure.ONLINE) > max(long_rows.expected_gain(s) for s in others)


def test_failure_points_at_structures_and_names_all_in_the_end(softmax):
    assert softmax.structures.suspects(ReasonCode.CUDA_ERROR)[0] == Structure.ASYNC
    assert softmax.structures.suspects(ReasonCode.WRONG_VALUES)[0] == Structure.MOMENTS
    assert set(softmax.structures.suspects(ReasonCode.NONE)) == set(Structure)


def test_exponentials_take_the_place_of_the_inputs_they_were_made_from(softmax):
    keeps = keep_row(plan_sweeps(softmax.program))
    assert (
        keeps.slots == 1 and [len(r) for r in keeps.reads] == [0, 1, 1] and [len(w) for w in keeps.writes] == [1, 1, 0]
    )


def test_alignment_is_what_every_row_starts_at():
    assert alignment(Load(argument="x", dtype="float32", row_terms=((1, 8, 1002),), col_stride=1)) == 8
    assert alignment(Load(argument="x", dtype="float32", offset=4, row_terms=((1, 8, 64),), col_stride=1)) == 16
    assert alignment(Load(argument="m", dtype="bool", row_terms=((1, 8, 100),), col_stride=1)) == 4
    assert width_of(4194304, 132) == 31776 and width_of(1001, 1) == 1001


def largest(composer, start):
    for structure in composer.applicable():
        start = start | {structure} if compatible(composer, start | {structure}) else start
    return start


@needs_nvcc
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", some_slow(["softmax", "quickstart"], {"quickstart"}))
def test_nvcc_takes_the_structures_without_a_warning(cuda_bench, references, softmax, long_rows, name):
    composer = softmax if name == "softmax" else composer_of(references[name])
    chosen = [
        composer.base(),
        *(
            largest(composer, frozenset({s}))
            for s in (Structure.REGISTERS, Structure.SHARED, Structure.WARP, Structure.ASYNC)
        ),
    ]
    sources = [composer.write_source(c, 0) for c in dict.fromkeys(chosen) if c <= set(composer.applicable())]
    if name == "softmax":
        sources += [
            long_rows.write_source(merge(long_rows, long_rows.base(), {s}), 0)
            for s in (Structure.GRID, Structure.REGISTERS, Structure.ONLINE)
        ]
    for build in cuda_bench({f"c{i}": (references[name], source) for i, source in enumerate(sources)}):
        assert build.library_path and "warning" not in build.log, f"{build.reason}\n{build.log}"
