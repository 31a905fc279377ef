"""CUDA for contractions: what fits together, and that nvcc takes it without a warning or a spill."""

import dataclasses
import shutil

import pytest
from tests.graph.offline.subjects import HOPPER, subject_of

from ridgeline.graph.offline.composer import merge, structures_of, with_added
from ridgeline.graph.offline.matmul.cuda.composer import MatmulCuda
from ridgeline.graph.offline.matmul.cuda.structures import Structure
from ridgeline.graph.offline.matmul.cuda.warpgroups import sides_of
from ridgeline.graph.search.sources.tuning import parse_tunables

pytestmark = pytest.mark.long

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
FULL = frozenset({Structure.WARPGROUP, Structure.GROUPED, Structure.PERSISTENT, Structure.WIDE, Structure.CLUSTER})
BUILT = (
    ("odd", "fp32", {Structure.VECTOR}),
    ("linear", "fp32", {Structure.ASYNC, Structure.GROUPED, Structure.PERSISTENT}),
    ("bf16", "bf16", {Structure.TENSOR, Structure.SPLIT}),
    ("fp16", "fp16", FULL),
    ("odd", "tf32", {Structure.WARPGROUP, Structure.WIDE}),
)
BUILT_TOO = (
    ("left_turned", "tf32", {Structure.TENSOR, Structure.ASYNC}),
    ("fp16", "fp16", {Structure.TENSOR, Structure.ASYNC, Structure.WIDE}),
    ("square", "tf32", FULL),
    ("bf16_turned", "bf16", {Structure.WARPGROUP}),
)
"""More of the same structures and types, which `make soak` builds."""


def composer_of(reference, tolerance="tf32", device=HOPPER):
    return MatmulCuda(subject_of(reference, device, tolerance))


def test_fp32_tolerance_keeps_fp32_products_off_the_tensor_cores(products):
    assert not {Structure.TENSOR, Structure.WARPGROUP} & set(composer_of(products["square"], "fp32").applicable())
    assert {Structure.TENSOR, Structure.WARPGROUP} <= set(composer_of(products["square"]).applicable())
    assert Structure.WARPGROUP in composer_of(products["fp16"], "fp32").applicable()


def test_warpgroups_need_their_architecture(products):
    ampere = dataclasses.replace(HOPPER, arch="sm_80")
    assert composer_of(products["square"], device=ampere).base() == {Structure.TENSOR}


def test_many_tiles_on_warpgroups_start_grouped_with_wide_stores_and_stay_resident_next(products):
    composer = composer_of(products["fp16"], "fp16")
    composer.contraction = dataclasses.replace(composer.contraction, m=4096, n=4096, k=4096)
    assert composer.base() == {Structure.WARPGROUP, Structure.GROUPED, Structure.WIDE}
    assert composer.expected_gain(Structure.PERSISTENT) > composer.expected_gain(Structure.CLUSTER) == 1.0


def test_operand_that_tf32_descriptors_do_not_read_comes_from_registers(products):
    first, second, from_registers = sides_of(composer_of(products["square"]).contraction)
    assert not first.is_left and from_registers and not second.is_repacked


def test_operand_at_an_odd_pitch_is_repacked(products):
    composer = composer_of(products["odd"])
    assert all(side.is_repacked for side in sides_of(composer.contraction)[:2])
    assert "workspace_bytes" in composer.write_source(frozenset({Structure.WARPGROUP}), 0)


def test_a_unit_replaces_what_feeds_another(products):
    merged = merge(
        composer_of(products["fp16"], "fp16"),
        {Structure.TENSOR, Structure.ASYNC, Structure.GROUPED},
        {Structure.WARPGROUP},
    )
    assert merged == {Structure.WARPGROUP, Structure.GROUPED}
    assert (
        with_added(
            composer_of(products["fp16"], "fp16"),
            {Structure.TENSOR, Structure.ASYNC, Structure.GROUPED},
            Structure.WARPGROUP,
        )
        == merged
    )


def test_source_says_what_it_is_composed_of(products):
    source = composer_of(products["square"]).write_source(FULL, 0)
    assert structures_of(source) == FULL
    assert {"BN", "CONSUMERS", "MAX_STAGES", "GROUP"} == {t.name for t in parse_tunables(source)}


def test_variations_start_their_tunables_elsewhere(products):
    composer = composer_of(products["fp16"], "fp16")
    assert len({composer.write_source(frozenset({Structure.TENSOR, Structure.ASYNC}), v) for v in range(3)}) == 3


@pytest.mark.thorough
@needs_nvcc
@pytest.mark.timeout(300)
@pytest.mark.parametrize("built", [BUILT, pytest.param(BUILT_TOO, marks=pytest.mark.slow)], ids=["each", "more"])
def test_nvcc_builds_every_unit_without_a_warning(cuda_bench, products, built):
    parts = {}
    for number, (name, tolerance, composition) in enumerate(built):
        source = composer_of(products[name], tolerance).write_source(frozenset(composition), number % 3)
        parts["_".join((name, tolerance, *sorted(composition))).replace("-", "_")] = (products[name], source)
    assert len(parts) == len(built)
    for build in cuda_bench(parts):
        assert build.library_path and "warning" not in build.log, f"{build.reason}\n{build.log}"
