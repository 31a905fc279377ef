"""Every composition computes what its reference computes, to fp32's precision."""

import itertools

import pytest
from tests.graph.offline.subjects import NARROW, WIDE, each_build, some_slow, subject_of

from ridgeline.graph.offline.rowwise.cpu.choices import Choices
from ridgeline.graph.offline.rowwise.cpu.composer import RowwiseCpu
from ridgeline.graph.offline.rowwise.cpu.source import write_source
from ridgeline.graph.offline.rowwise.cpu.structures import CONFLICTS, WIDE_BITS, Structure, applicable

THOROUGH = ("quickstart", "masked_softmax")
OTHERS = (
    "rms_gate", "cosine", "log_sum_exp", "softmax", "log_softmax", "layer_norm_2d", "mean_pool", "gallery", "half_norm",
    "swiglu", "per_row", "plain",
)  # fmt: skip
QUICK = {"quickstart", "masked_softmax", "log_sum_exp", "cosine", "per_row", "plain", "swiglu", "half_norm"}
CONTESTED = (Structure.ROWS, Structure.LANES, Structure.ONLINE, Structure.DYNAMIC)


def compatible(structures):
    return not any(conflict <= frozenset(structures) for conflict in CONFLICTS)


def maximal(program):
    """Return the compositions to which nothing can be added: every conflict resolved one way or another."""
    usable = {*applicable(program, WIDE_BITS), Structure.STREAM}  # the references are too small to stream by themselves
    found = set()
    for order in itertools.permutations(s for s in CONTESTED if s in usable):
        chosen = frozenset(usable - set(CONTESTED))
        for structure in order:
            chosen = chosen | {structure} if compatible(chosen | {structure}) else chosen
        found.add(chosen)
    return sorted(found, key=sorted)


def sources_of(reference, compositions, choices=None):
    program, signature = reference.program, reference.description.signature
    return [write_source(program, signature, frozenset(c), choices) for c in compositions]


@pytest.mark.parametrize("name", some_slow(THOROUGH, {"quickstart"}))
def test_each_structure_and_pair_is_correct(bench, references, name):
    usable = applicable(references[name].program, WIDE_BITS)
    pairs = [p for p in itertools.combinations(usable, 2) if compatible(p)]
    bench.check(references[name], sources_of(references[name], [[s] for s in usable] + pairs[::4]))


@pytest.mark.first_case
@each_build
@pytest.mark.parametrize("name", some_slow(OTHERS + THOROUGH, QUICK))
def test_plain_and_maximal_compositions_are_correct(bench, references, name, flags):
    bench.check(references[name], sources_of(references[name], [(), *maximal(references[name].program)]), flags)


@each_build
def test_every_default_of_the_tunables_is_correct(bench, references, flags):
    choices = Choices(row_block=4, lanes=8, online_block=64, stream_tile=64, prefetch_rows=4, chunk=4)
    for name in ("log_sum_exp", "layer_norm_2d"):
        bench.check(references[name], sources_of(references[name], maximal(references[name].program), choices), flags)


def test_tunables_are_declared_on_constants_that_the_code_uses(references):
    (source,) = sources_of(references["quickstart"], [[Structure.LANES, Structure.PREFETCH]])
    assert "constexpr int64_t LANES = 4;  // tune: LANES = 2 | 4 | 8" in source
    assert "PREFETCH_ROWS * 1" in source and source.count("LANES") > 4


def test_narrow_vectors_ask_for_a_compiler_flag(references):
    (source,) = sources_of(references["quickstart"], [[Structure.NARROW]])
    assert "// flags: -mprefer-vector-width=256" in source


def test_narrow_vectors_are_of_use_only_where_the_device_has_wider_ones(references):
    wide, narrow = (RowwiseCpu(subject_of(references["quickstart"], facts=f)).applicable() for f in (WIDE, NARROW))
    assert set(wide) - set(narrow) == {Structure.NARROW}
