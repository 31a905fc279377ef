"""What the family recognises as a contraction with an epilogue, and what it says when it does not."""

import pytest

from ridgeline.graph.offline.epilogue import epilogue_made, epilogue_text
from ridgeline.graph.offline.ir import NotCovered
from ridgeline.graph.offline.matmul.contraction import recognise
from ridgeline.graph.offline.model import composer_for

from .subjects import subject_of


def contraction_of(reference):
    return recognise(reference.description)


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


def test_epilogue_reads_what_is_added(products):
    epilogue = contraction_of(products["linear"]).epilogue
    text = epilogue_text(epilogue, cuda=True)
    assert "linear_bias_data[col]" in text and "residual_data[row * 150 + col]" in text and "std::erf" in text
    assert epilogue_made(epilogue) == "Epilogue{linear_bias_data, residual_data}"
    assert epilogue.has_transcendental and not epilogue.is_plain


def test_epilogue_takes_scalars_and_a_bias_over_rows(products):
    text = epilogue_text(contraction_of(products["scaled"]).epilogue, cuda=False, inline=True)
    assert "bias_data[row]" in text and "double alpha_value;" in text and "rl_tanh(" in text


def test_added_term_is_scaled(products):
    text = epilogue_text(contraction_of(products["added"]).epilogue, cuda=False)
    assert "c_data[row * 35 + col]" in text and "0.5f" in text and "2.0f" in text


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
        recognise(products[name].description)


def test_model_composes_contractions(products):
    assert composer_for(subject_of(products["linear"])).base() == {"packed-panels"}
