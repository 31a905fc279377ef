"""Links between places in timed sets, as the trials `blocked` and `apart` have them: no round is left out later."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.distributions import Distribution, SetKind
from ridgeline.tools.judge.worker.inputs.timed_sets import is_intact
from ridgeline.tools.records.trial_names import APART, BLOCKED

PARENTS = "(torch.rand(8, 512) * torch.arange(512)).long()"
LINKS = "(torch.rand(2, 128, 128) < 0.08)"
PLACES = torch.arange(512)


def timed(found: Made, kind: Distribution, label: str = "timed") -> Tensors:
    """Return the inputs of a timed set of a kind."""
    views = tuple(map(torch.empty_like, found.source.given("a")))
    return found.source.timed_set(label, views, 1, SetKind(kind))


def test_whole_numbers_lie_near_their_places_in_timed_sets() -> None:
    found = made("x, i", "torch.randn(512), torch.randint(512, (2, 4096))", "return x[i].sum(0)")
    near, usual = (
        (i[0] - i[1]).abs() for _, i in (timed(found, kind) for kind in (Distribution.APART, Distribution.BLOCKED))
    )
    assert int(torch.minimum(near, 512 - near).max()) <= 16 < int(torch.minimum(usual, 512 - usual).max())


def test_half_of_the_rows_are_chains_in_timed_sets() -> None:
    found = made("x, i", f"torch.rand(8, 512), {PARENTS}", "return x + x.gather(1, i)")
    largest = found.source.lifts[1][1]
    for label in ("one", "other"):
        parents = timed(found, Distribution.APART, label)[1]
        is_chain = (parents == (PLACES - 1).clamp(0, largest)).all(1)
        assert int(is_chain.sum()) == 4 and bool((parents[~is_chain] > PLACES).any())


@pytest.mark.parametrize("given", [f"{LINKS}.float()", LINKS, f"{LINKS}.int()"])
@pytest.mark.parametrize("kind", [Distribution.BLOCKED, Distribution.APART])
def test_masks_have_few_links_in_timed_sets(given: str, kind: Distribution) -> None:
    found = made("a, x", f"{given}, torch.randn(2, 128, 4)", "return a.to(x.dtype) @ x")
    usual, mask = (timed(found, each)[0] for each in (Distribution.SHIFTED, kind))
    assert mask.dtype == usual.dtype and 0 < int(mask.count_nonzero()) < int(usual.count_nonzero()) / 2
    for axis in (-1, -2):
        assert torch.equal(mask.any(axis), usual.any(axis))


def test_other_inputs_are_apart_beside_links() -> None:
    found = made("x, i", "torch.randn(512, 64), torch.randint(512, (512, 8))", "return x[i].sum(1)")
    x = timed(found, Distribution.APART)[0]
    assert float((x < -4).float().mean()) > 0.3
    assert float((timed(found, Distribution.INTEGERS)[0] < -4).float().mean()) < 0.1


def test_what_the_reference_refuses_stays_in_timed_sets() -> None:
    body = "assert float((i - torch.arange(512).unsqueeze(-1)).abs().double().mean()) > 100", "return x[i].sum(1)"
    found = made("x, i", "torch.randn(512, 64), torch.randint(512, (512, 8))", *body)
    assert APART in found.domain.names and not found.source.links.are_in(APART)
    i = timed(found, Distribution.APART)[1]
    assert float((i - PLACES.unsqueeze(-1)).abs().double().mean()) > 100


def test_inputs_without_links_are_linked_in_no_trial() -> None:
    found = made("x, y", "torch.randn(64, 64), torch.randint(9, (64,))", "return x * y")
    inputs = found.source.nominal("one")
    for trial in (BLOCKED, APART):
        assert not found.source.links.are_in(trial)
        assert found.source.links.changed(trial, inputs, torch.Generator()) is inputs


@pytest.mark.parametrize("kind", [Distribution.BLOCKED, Distribution.APART])
def test_a_set_of_links_is_known_again(kind: Distribution) -> None:
    found = made("a, x, i", f"{LINKS}, torch.randn(2, 128, 4), {PARENTS}", "return (a.float() @ x).sum() + i")
    filling = found.source.distributed(found.source.fill("timed", 4), "timed", {2: SetKind(kind)})
    views = tuple(map(torch.empty_like, found.source.given("a")))
    filling.write(2, views)
    assert is_intact(filling, 2, views) and not is_intact(filling, 1, views)
