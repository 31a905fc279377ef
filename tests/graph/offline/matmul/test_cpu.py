"""Every composition of a contraction computes what its reference computes."""

import itertools

import pytest
from tests.graph.offline.subjects import each_build, some_slow, subject_of

from ridgeline.graph.offline.matmul.cpu.composer import MatmulCpu
from ridgeline.graph.offline.matmul.cpu.structures import Structure

ALL = frozenset(
    {
        Structure.PANELS,
        Structure.DEPTHS,
        Structure.TILES,
        Structure.PREFETCH,
        Structure.SPLIT,
        Structure.DYNAMIC,
        Structure.POLY,
    }
)
NAMES = (
    "odd", "left_turned", "right_turned", "both_turned", "batched", "shared_right", "linear", "scaled", "added", "one_row",
    "bf16", "bf16_turned", "fp16",
)  # fmt: skip


def sources_of(reference, compositions, variation=0):
    composer = MatmulCpu(subject_of(reference))
    return [composer.write_source(frozenset(c), variation) for c in compositions]


@pytest.mark.first_case
@each_build
@pytest.mark.parametrize("name", some_slow(NAMES, {"odd", "both_turned", "batched", "linear", "one_row", "bf16"}))
def test_plain_and_full_compositions_are_correct(bench, products, name, flags):
    extra = (
        [{Structure.PANELS, Structure.DOT}, ALL | {Structure.DOT}]
        if "bf16" in name and Structure.DOT in applicable(products[name])
        else []
    )
    bench.check(products[name], sources_of(products[name], [(), ALL - {Structure.SPLIT}, *extra]), flags)


def applicable(reference):
    return MatmulCpu(subject_of(reference)).applicable()


@pytest.mark.thorough
def test_each_structure_on_panels_is_correct(bench, products):
    singles = [{Structure.PANELS}, *({Structure.PANELS, s} for s in sorted(ALL - {Structure.PANELS}))]
    bench.check(products["deep"], sources_of(products["deep"], singles))


@each_build
def test_every_variation_of_the_tunables_is_correct(bench, products, flags):
    sources = [s for v in (1, 2) for s in sources_of(products["square"], [ALL], v)]
    bench.check(products["square"], sources, flags)


def test_structures_name_what_they_change(products):
    emitted = sources_of(products["deep"], [ALL - {s} for s in sorted(ALL - {Structure.POLY})])
    assert all(a != b for a, b in itertools.pairwise(emitted)) and len(set(emitted)) == len(emitted)


def test_small_products_have_no_use_for_a_split(products):
    assert Structure.SPLIT not in applicable(products["square"]) and Structure.SPLIT in applicable(products["deep"])


def test_tunables_are_declared_on_constants_that_the_code_uses(products):
    (source,) = sources_of(products["deep"], [ALL])
    assert "constexpr int K_BLOCK = 384;  // tune: K_BLOCK = 128 | 256 | 384 | 512 | 768" in source
