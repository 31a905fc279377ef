"""Convolutions for a GPU where there is none: they build without a warning, and emulated they compute the right thing."""

import dataclasses
import itertools
import shutil

import numpy as np
import pytest
from tests.graph.offline.conftest import worst_error
from tests.graph.offline.subjects import BASELINES, HOPPER, QUICK, subject_of

from ridgeline.graph.models.requests import Elite, IdeationRequest, TriedIdea
from ridgeline.graph.offline.composer import structures_of
from ridgeline.graph.offline.convolution.cuda.composer import ConvolutionCuda
from ridgeline.graph.offline.convolution.cuda.structures import Structure
from ridgeline.graph.offline.proposals import propose_ideas
from ridgeline.graph.search.sources.tuning import parse_tunables, with_values

from .emulation import on_cpu

pytestmark = pytest.mark.long

COPIES = {Structure.ASYNC, Structure.VECTOR, Structure.RESIDENT}
EMULATED = {
    "square": [(set(), 0), ({Structure.MMA, Structure.VECTOR}, 1), ({Structure.WGMMA, *COPIES}, 0)],
    "pointwise": [({Structure.MMA, Structure.ASYNC}, 0)],
    "dilated": [({Structure.ASYNC}, 2), ({Structure.WGMMA, Structure.RESIDENT}, 1)],
    "wide": [({Structure.MMA}, 2), ({Structure.WGMMA, Structure.POOL}, 0)],
    "ceiling": [({Structure.MMA, Structure.POOL, Structure.ASYNC}, 1), ({Structure.POOL}, 0)],
    "spread_pool": [({Structure.POOL, Structure.MMA, *COPIES}, 0)],
    "residual": [({Structure.MMA}, 1)],
    "brain": [({Structure.MMA, Structure.RESIDENT}, 0), (set(), 1)],
    "alexnet_relu_pool": [({Structure.MMA, Structure.POOL, *COPIES}, 0), ({Structure.WGMMA, Structure.POOL}, 0)],
}
ROUNDED_ERROR = 1e-3


def composer_of(reference, tolerance="tf32"):
    return ConvolutionCuda(subject_of(reference, HOPPER, tolerance))


@pytest.mark.first_case
@pytest.mark.parametrize("name", EMULATED)
def test_emulated_compositions_are_correct(bench, convolutions, name):
    composer = composer_of(convolutions[name])
    sources = [composer.write_source(frozenset(c), variation) for c, variation in EMULATED[name]]
    outputs = bench.run(convolutions[name], [on_cpu(s) for s in sources], QUICK)
    for (composition, variation), made in zip(EMULATED[name], outputs, strict=True):
        allowed = ROUNDED_ERROR if composition & {Structure.MMA, Structure.WGMMA} else 1e-5
        error = worst_error(convolutions[name], made)
        assert error < (8e-3 if name == "brain" else allowed), f"{composition} {variation}: relative error {error}"


@pytest.mark.thorough
def test_emulated_tunables_are_correct(bench, convolutions):
    composer = composer_of(convolutions["ceiling"])
    source = composer.write_source(frozenset({Structure.MMA, Structure.POOL}), 0)
    points = [{t.name: v} for t in parse_tunables(source) for v in t.values]
    assert len(points) > 3
    outputs = bench.run(convolutions["ceiling"], [on_cpu(with_values(source, p)) for p in points], QUICK)
    assert max(worst_error(convolutions["ceiling"], made) for made in outputs) < ROUNDED_ERROR


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no CUDA toolkit")
def test_sources_build_without_a_warning(cuda_bench, convolutions):
    parts = {
        f"{name}_{i}": (convolutions[name], source)
        for name in ("alexnet_relu_pool", "brain")
        for i, source in enumerate(sources_for(convolutions[name]))
    }
    for build in cuda_bench(parts):
        assert build.library_path and "warning" not in build.log, f"{build.reason}\n{build.log}"


def sources_for(reference):
    composer = composer_of(reference)
    usable = set(composer.applicable())
    chosen = [
        usable - {Structure.WGMMA},
        usable - {Structure.MMA},
        usable - {Structure.MMA, Structure.WGMMA, Structure.POOL, Structure.RESIDENT},
    ]
    return [composer.write_source(frozenset(c), 0) for c in chosen]


def test_warpgroups_are_where_a_kernel_starts_on_hopper(convolutions):
    composer = composer_of(convolutions["alexnet_relu_pool"])
    assert composer.base() == {Structure.WGMMA, Structure.VECTOR, Structure.POOL}
    assert composer.expected_gain(Structure.WGMMA) > composer.expected_gain(Structure.MMA)


def test_every_pair_of_structures_is_emitted(convolutions):
    composer = composer_of(convolutions["alexnet_relu_pool"])
    pairs = [frozenset(p) for p in itertools.combinations(composer.applicable(), 2)]
    kept = [p for p in pairs if p not in composer.structures.conflicts]
    assert len({composer.write_source(p, 0) for p in kept}) == len(kept)


def test_tunables_default_to_one_of_their_values(convolutions):
    source = composer_of(convolutions["alexnet"]).write_source(frozenset({Structure.WGMMA, Structure.ASYNC}), 0)
    tunables = {t.name: t for t in parse_tunables(source)}
    assert {"TILE_RESULT_ROWS", "BATCH"} <= set(tunables)
    assert all(t.current in t.values for t in tunables.values())


def test_references_are_not_all_zero(convolutions):
    assert all(np.abs(convolutions[n].arrays["out_0"]).max() > 0.1 for n in EMULATED)


@pytest.fixture
def crowded(convolutions):
    """Return a composer for whose tile a second stage does not fit beside the pool, and its subject."""
    subject = subject_of(convolutions["alexnet_relu_pool"], HOPPER, "tf32")
    composer = ConvolutionCuda(subject)
    composer.layer = dataclasses.replace(composer.layer, channels=4)
    return composer, subject


ASKED = frozenset({Structure.ASYNC, Structure.POOL, Structure.MMA})


def test_header_names_what_was_emitted_where_not_all_fits(crowded):
    source = crowded[0].write_source(ASKED, 0)
    assert structures_of(source) == {Structure.POOL, Structure.MMA} and "cp.async" not in source


def test_a_composition_that_lost_structures_is_not_proposed_again(crowded):
    composer, subject = crowded
    asked = TriedIdea(
        id="r1i0", title="copy ahead", mechanism="tiles ahead of time", category="memory_access",
        parent_id=None, best_candidate_id="r1i0v0a0", best_speedup=2.0, failure="", composition=tuple(ASKED),
    )  # fmt: skip
    emitted = Elite(
        candidate_id="r1i0v0a0",
        idea_title="copy ahead",
        source=composer.write_source(ASKED, 0),
        median_ms=0.5,
        speedup=2.0,
    )
    request = IdeationRequest(
        subject=subject, baselines=BASELINES, round=2, count=100, rng_seed=1, tried=(asked,), elites=(emitted,)
    )
    proposed = [frozenset(idea.composition) for idea in propose_ideas(composer, request)]
    assert len(proposed) > 10
    assert not {ASKED, structures_of(emitted.source)} & set(proposed)
