"""Reading a contraction and its epilogue from a graph, and the refusals of other graphs."""

import pytest
from tests.graph.offline.subjects import subject_of

from ridgeline.graph.offline.matmul.read import read_contraction
from ridgeline.graph.offline.model import composer_for
from ridgeline.graph.offline.program.ir import NotCovered


def contraction_of(reference):
    return read_contraction(reference.description)


def test_transposed_operand_is_read_where_it_lies(products):
    contraction = contraction_of(products["left_turned"])
    assert (contraction.m, contraction.n, contraction.k) == (100, 130, 300)
    assert (contraction.left.outer_stride, contraction.left.k_stride) == (1, 100)
    assert (contraction.right.outer_stride, contraction.right.k_stride) == (1, 130)


def test_weights_of_a_linear_layer_lie_along_k(products):
    contraction = contraction_of(products["linear"])
    assert (contraction.batch, contraction.m, contraction.right.argument) == (1, 130, "linear_weight")
    assert contraction.right.is_k_major and contraction.right.is_aligned(4)


def test_operand_broadcast_over_batches_is_not_copied(products):
    contraction = contraction_of(products["batched"])
    assert contraction.batch == 6
    assert contraction.left.batch_terms == ((1, 6, 2800),) and contraction.right.batch_terms == ((2, 3, 2000),)


def test_one_right_operand_for_all_batches_makes_one_product(products):
    contraction = contraction_of(products["shared_right"])
    assert (contraction.batch, contraction.m) == (1, 150) and not contraction.right.batch_terms


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("twice", "several products of matrices"),
        ("computed", "computed first: aten.relu.default"),
        ("reduced", "a reduction beside a contraction"),
    ],
)
def test_refusal_names_what_is_not_covered(products, name, says):
    with pytest.raises(NotCovered, match=says):
        read_contraction(products[name].description)


def test_model_composes_contractions(products):
    assert composer_for(subject_of(products["linear"])).base() == {"packed-panels"}
