"""Epilogues as structs of C++: their members, their loads and their arithmetic."""

from ridgeline.graph.offline.matmul.read import read_contraction
from ridgeline.graph.offline.text.epilogue import epilogue_made, epilogue_text


def epilogue_of(reference):
    return read_contraction(reference.description).epilogue


def test_epilogue_reads_what_is_added(products):
    epilogue = epilogue_of(products["linear"])
    text = epilogue_text(epilogue, cuda=True)
    assert "linear_bias_data[col]" in text and "residual_data[row * 150 + col]" in text and "std::erf" in text
    assert epilogue_made(epilogue) == "Epilogue{linear_bias_data, residual_data}"
    assert epilogue.has_transcendental and not epilogue.is_plain


def test_epilogue_takes_scalars_and_a_bias_over_rows(products):
    text = epilogue_text(epilogue_of(products["scaled"]), cuda=False, inline=True)
    assert "bias_data[row]" in text and "double alpha_value;" in text and "rl_tanh(" in text


def test_added_term_is_scaled(products):
    text = epilogue_text(epilogue_of(products["added"]), cuda=False)
    assert "c_data[row * 35 + col]" in text and "0.5f" in text and "2.0f" in text
