"""Every composition of a convolution in C++ computes what its reference computes, to fp32's precision."""

import pytest

from ridgeline.graph.offline.convolution.composers import ConvolutionCpp, convolution
from ridgeline.graph.offline.convolution.structures import Cpu
from ridgeline.graph.search.tuning import parse_tunables, with_values

from .subjects import subject_of

NAMES = (
    "alexnet", "alexnet_relu_pool", "square", "pointwise", "dilated", "wide", "ceiling", "spread_pool", "residual", "brain",
)  # fmt: skip


def composer_of(reference):
    composer = convolution(subject_of(reference))
    assert isinstance(composer, ConvolutionCpp)
    return composer


@pytest.mark.parametrize("name", NAMES)
def test_plain_and_full_compositions_are_correct(bench, convolutions, name):
    composer = composer_of(convolutions[name])
    full = frozenset(composer.applicable())
    compositions = [frozenset(), full, full - {Cpu.FILTERS}, full - {Cpu.POOL}]
    sources = [composer.emit(c, variation) for variation, c in enumerate(dict.fromkeys(compositions))]
    bench.check(convolutions[name], sources)


def test_each_structure_is_correct_by_itself(bench, convolutions):
    composer = composer_of(convolutions["alexnet_relu_pool"])
    bench.check(convolutions["alexnet_relu_pool"], [composer.emit(frozenset({s}), 0) for s in composer.applicable()])


def test_every_value_of_the_tunables_is_correct(bench, convolutions):
    composer = composer_of(convolutions["square"])
    sources = [composer.emit(frozenset(composer.applicable()) - {s}, 0) for s in (Cpu.FILTERS, Cpu.DYNAMIC)]
    tuned = [with_values(s, {t.name: v}) for s in sources for t in parse_tunables(s) for v in t.values]
    assert len(tuned) > 8
    bench.check(convolutions["square"], tuned[::2])


def test_the_pool_in_a_thread_needs_no_workspace_for_the_rows(convolutions):
    composer = composer_of(convolutions["alexnet_relu_pool"])
    assert "workspace_bytes" not in composer.emit(frozenset({Cpu.POOL}), 0)
    assert "workspace_bytes" in composer.emit(frozenset(), 0)
