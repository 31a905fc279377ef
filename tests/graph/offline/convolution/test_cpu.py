"""Every composition of a convolution in C++ computes what its reference computes, to fp32's precision."""

import pytest
from tests.graph.offline.subjects import each_build, subject_of

from ridgeline.graph.offline.convolution.cpu.composer import ConvolutionCpu
from ridgeline.graph.offline.convolution.cpu.structures import Structure
from ridgeline.graph.search.sources.tuning import parse_tunables, with_values

NAMES = (
    "alexnet", "alexnet_relu_pool", "square", "pointwise", "dilated", "wide", "ceiling", "spread_pool", "residual", "brain",
)  # fmt: skip


def composer_of(reference):
    return ConvolutionCpu(subject_of(reference))


@pytest.mark.first_case
@each_build
@pytest.mark.parametrize("name", NAMES)
def test_plain_and_full_compositions_are_correct(bench, convolutions, name, flags):
    composer = composer_of(convolutions[name])
    full = frozenset(composer.applicable())
    compositions = [frozenset(), full, full - {Structure.FILTERS}, full - {Structure.POOL}]
    sources = [composer.write_source(c, variation) for variation, c in enumerate(dict.fromkeys(compositions))]
    bench.check(convolutions[name], sources, flags)


@pytest.mark.thorough
def test_each_structure_is_correct_by_itself(bench, convolutions):
    composer = composer_of(convolutions["alexnet_relu_pool"])
    bench.check(
        convolutions["alexnet_relu_pool"], [composer.write_source(frozenset({s}), 0) for s in composer.applicable()]
    )


@pytest.mark.thorough
@each_build
def test_every_value_of_the_tunables_is_correct(bench, convolutions, flags):
    composer = composer_of(convolutions["square"])
    sources = [
        composer.write_source(frozenset(composer.applicable()) - {s}, 0) for s in (Structure.FILTERS, Structure.DYNAMIC)
    ]
    tuned = [with_values(s, {t.name: v}) for s in sources for t in parse_tunables(s) for v in t.values]
    assert len(tuned) > 8
    bench.check(convolutions["square"], tuned[::2], flags)


def test_the_pool_in_a_thread_needs_no_workspace_for_the_rows(convolutions):
    composer = composer_of(convolutions["alexnet_relu_pool"])
    assert "workspace_bytes" not in composer.write_source(frozenset({Structure.POOL}), 0)
    assert "workspace_bytes" in composer.write_source(frozenset(), 0)
