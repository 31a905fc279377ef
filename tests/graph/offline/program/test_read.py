"""Reading row programs from graphs, and the refusals that name what is not covered."""

import dataclasses

import pytest

from ridgeline.graph.offline.program.ir import NotCovered, Space
from ridgeline.graph.offline.program.read import read_program
from ridgeline.graph.offline.program.schedule import has_moments, has_online_pair, plan_sweeps


def test_quickstart_is_three_sweeps_of_which_one_can_be_saved(references):
    program = references["quickstart"].program
    assert (program.rows, program.cols) == (64, 768)
    assert len(plan_sweeps(program).sweeps) == 3 and len(plan_sweeps(program, moments=True).sweeps) == 2
    assert has_moments(program) and plan_sweeps(program, keep=True).buffers > 0 and not has_online_pair(program)


def test_softmax_is_three_sweeps_of_which_one_can_be_saved(references):
    program = references["softmax"].program
    assert len(plan_sweeps(program).sweeps) == 3 and len(plan_sweeps(program, online=True).sweeps) == 2


def test_layer_norm_over_two_dimensions_is_one_long_row(references):
    assert (references["layer_norm_2d"].program.rows, references["layer_norm_2d"].program.cols) == (32, 300)


def test_mask_broadcast_over_heads_repeats_along_rows(references):
    loads = {v.load.argument: v.load for v in references["masked_softmax"].program.values() if v.load}
    assert loads["mask"].row_terms == ((40, 3, 130),) and loads["mask"].col_stride == 1


def test_outputs_may_be_per_row(references):
    spaces = [o.value.space for o in references["mean_pool"].program.outputs]
    assert spaces == [Space.ROW, Space.ROW, Space.FULL]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("matmul", "aten.addmm.default"),
        ("sorted", "aten.sort.default"),
        ("columns", "other than the last dimensions"),
        ("whole", "a reduction over a whole tensor"),
    ],
)
def test_refusal_names_what_is_not_covered(references, name, says):
    with pytest.raises(NotCovered, match=says):
        read_program(references[name].description)


def test_failed_export_is_passed_on(references):
    described = references["plain"].description
    with pytest.raises(NotCovered, match="no way"):
        read_program(dataclasses.replace(described, reference_graph=None, graph_error="no way"))
