"""Every composition computes what its reference computes, to fp32's precision."""

import itertools

import pytest

from ridgeline.graph.offline.emit_cpp import emit
from ridgeline.graph.offline.structures import Structure, applicable, compatible, with_added

THOROUGH = ("quickstart", "masked_softmax")
OTHERS = (
    "rms_gate", "cosine", "log_sum_exp", "softmax", "log_softmax", "layer_norm_2d", "mean_pool", "gallery", "half_norm",
    "swiglu", "per_row", "plain",
)  # fmt: skip


def maximal(program):
    """Return the compositions to which nothing can be added: every conflict resolved one way or another."""
    usable = applicable(program) + ((Structure.STREAM,) if Structure.STREAM not in applicable(program) else ())
    found = set()
    for order in itertools.permutations([s for s in usable if s in CONTESTED]):
        chosen = frozenset(s for s in usable if s not in CONTESTED)
        for structure in order:
            chosen = chosen | {structure} if compatible(chosen | {structure}) else chosen
        found.add(chosen)
    return sorted(found, key=sorted)


CONTESTED = (Structure.ROWS, Structure.LANES, Structure.ONLINE, Structure.DYNAMIC)


def check(bench, reference, compositions):
    from conftest_checks import allowed_error, worst_error

    program = reference.program
    sources = [emit(program, reference.description.signature, c) for c in compositions]
    for chosen, outputs, source in zip(compositions, bench.run(reference, sources), sources, strict=True):
        error = worst_error(reference, outputs)
        assert error < allowed_error(reference), f"{reference.name} {sorted(chosen)}: {error}\n{source}"


@pytest.mark.parametrize("name", THOROUGH)
def test_each_structure_and_pair_is_correct(bench, references, name):
    program = references[name].program
    usable = applicable(program)
    singles = [frozenset({s}) for s in usable]
    pairs = [frozenset(p) for p in itertools.combinations(usable, 2) if compatible(p)]
    check(bench, references[name], [frozenset(), *singles, *pairs[::3]])


@pytest.mark.parametrize("name", OTHERS + THOROUGH)
def test_plain_and_maximal_compositions_are_correct(bench, references, name):
    check(bench, references[name], [frozenset(), *maximal(references[name].program)])


def test_adding_a_structure_replaces_what_it_conflicts_with():
    assert with_added({Structure.ROWS, Structure.POLY}, Structure.LANES) == {Structure.LANES, Structure.POLY}
