"""Among equals any consistent choice is right where torch specifies none; what no choice gives is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.tools.judge.worker.drawn_secrets import SECRETS
from tests.tools.judge.worker.grading.judged import TRIALS, Judged, Kernel

from ridgeline.tools.judge.worker.grading.excuses.choices import Choices, Way

LOGITS = "torch.randn(32, 256)"
Order = Callable[[torch.Tensor], torch.Tensor]


def first_first(x: torch.Tensor) -> torch.Tensor:
    return torch.sort(x, dim=-1, descending=True, stable=True)[1]


def last_first(x: torch.Tensor) -> torch.Tensor:
    return x.shape[-1] - 1 - first_first(x.flip(-1))


def any_first(x: torch.Tensor) -> torch.Tensor:
    mixed = torch.randperm(x.shape[-1], generator=torch.Generator().manual_seed(5))
    return mixed[first_first(x[..., mixed])]


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return probabilities as a kernel makes them in float32, in the type of what is given."""
    e = torch.exp2((x.float() - x.float().amax(-1, keepdim=True)) * 1.44269504)
    return (e * (1 / e.sum(-1, keepdim=True))).to(x.dtype)


def topk(order: Order, of: Order = lambda x: x) -> Kernel:
    def kernel(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        numbers = of(x)
        places = order(numbers)[..., :8].contiguous()
        return numbers.gather(-1, places), places

    return kernel


def nucleus(order: Order) -> Kernel:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        q = softmax(x)
        places = order(q)
        s = q.gather(-1, places)
        kept = torch.zeros_like(q).scatter(-1, places, torch.where(s.cumsum(-1) - s > 0.9, 0.0, s))
        return kept / kept.sum(-1, keepdim=True)

    return kernel


def first_so_far(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    values = x.cummax(-1)[0]
    is_new = torch.cat([torch.ones_like(values[:, :1], dtype=torch.bool), values[:, 1:] > values[:, :-1]], -1)
    return values, torch.where(is_new, torch.arange(x.shape[-1]), 0).cummax(-1)[0]


def tenth(pick: Order) -> Kernel:
    def kernel(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        value = x.sort(-1)[0][:, 9]
        return value, pick(x == value[:, None])

    return kernel


TOPK, TOPK_OF_SOFTMAX = "return torch.topk(x, 8, -1)", "return torch.topk(x.softmax(-1), 8, -1)"
NUCLEUS = (
    "q = x.softmax(-1)",
    "s, i = torch.sort(q, dim=-1, descending=True)",
    "s = torch.where(s.cumsum(-1) - s > 0.9, 0.0, s)",
    "y = torch.zeros_like(q).scatter(-1, i, s)",
    "return y / y.sum(-1, keepdim=True)",
)
HONEST: dict[str, tuple[tuple[str, ...], str, tuple[Kernel, ...]]] = {
    "topk": ((TOPK,), LOGITS, tuple(map(topk, (first_first, last_first, any_first)))),
    "topk of bf16": ((TOPK,), f"{LOGITS}.bfloat16()", tuple(map(topk, (first_first, last_first, any_first)))),
    "topk of softmax": (
        (TOPK_OF_SOFTMAX,),
        LOGITS,
        tuple(topk(o, softmax) for o in (first_first, last_first, any_first)),
    ),
    "topk of softmax in bf16": (
        (TOPK_OF_SOFTMAX,),
        f"{LOGITS}.bfloat16()",
        (
            topk(first_first, softmax),
            topk(any_first, softmax),
            lambda x: (softmax(x).gather(-1, i := first_first(softmax(x.float()))[:, :8].contiguous()), i),
        ),
    ),
    "nucleus": (NUCLEUS, LOGITS, tuple(map(nucleus, (first_first, last_first)))),
    "argsort": (("return x.argsort(-1, descending=True)",), LOGITS, (first_first, last_first, any_first)),
    "argsort of columns": (
        ("return x.argsort(0, descending=True).int()",),
        LOGITS,
        (lambda x: first_first(x.t()).t().int().contiguous(),),
    ),
    "kthvalue": (
        ("return x.kthvalue(10, -1)",),
        LOGITS,
        (tenth(lambda e: e.int().argmax(-1)), tenth(lambda e: e.shape[-1] - 1 - e.flip(-1).int().argmax(-1))),
    ),
    "cummax": (("return x.cummax(-1)",), LOGITS, (first_so_far, lambda x: tuple(x.cummax(-1)))),
    "argmax": (("return x.softmax(-1).argmax(-1)",), LOGITS, (lambda x: x.argmax(-1),)),
}


@pytest.mark.first_case
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("name", HONEST)
def test_any_order_of_equals_is_right(name: str, secret: bytes) -> None:
    body, inputs, kernels = HONEST[name]
    judged = Judged("x", inputs, *body, secret=secret)
    for kernel in kernels:
        assert judged.refused_in(kernel) == []


def repeating(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return places of which equals all have the first one's."""
    values, places = x.gather(-1, places), places.clone()
    for k in range(1, places.shape[-1]):
        places[:, k] = torch.where(values[:, k] == values[:, k - 1], places[:, k - 1], places[:, k])
    return places


@pytest.mark.parametrize("inputs", [LOGITS, f"{LOGITS}.bfloat16()"])
def test_an_index_that_is_given_twice_among_equals_is_wrong(inputs: str) -> None:
    judged = Judged("x", inputs, "return torch.topk(x, 8, -1)[1]")
    tied = [t for t in TRIALS if inputs != LOGITS or t == "integers"]
    assert set(tied) <= set(judged.refused_in(lambda x: repeating(x, first_first(x)[:, :8])))


def test_an_index_of_another_value_is_wrong_beside_any_order_of_equals() -> None:
    judged = Judged("x", f"{LOGITS}.bfloat16()", "return torch.topk(x, 8, -1)[1]")

    def off_by_one(x: torch.Tensor) -> torch.Tensor:
        places = first_first(x)[:, :8].contiguous()
        values = x.gather(-1, places)
        row = int((values[:, :4].diff(dim=-1) != 0).all(-1).int().argmax())
        places[row, 1] = (places[row, 1] + 1) % x.shape[-1]
        return places

    def exchanged(x: torch.Tensor) -> torch.Tensor:
        places = first_first(x)[:, :8].contiguous()
        row = int((x.gather(-1, places)[:, 3] != x.gather(-1, places)[:, 4]).int().argmax())
        places[row, 3:5] = places[row, 3:5].flip(0)
        return places

    assert judged.refused_in(off_by_one) == list(TRIALS)
    assert set(TRIALS) - {"integers"} <= set(judged.refused_in(exchanged))


def test_a_mask_that_keeps_all_equals_at_the_end_of_a_nucleus_is_wrong() -> None:
    body = (*NUCLEUS[:-1], "return y > 0")
    judged = Judged("x", LOGITS, *body)
    assert judged.refused_in(lambda x: nucleus(first_first)(x) > 0) == []  # type: ignore[operator]

    def all_of_them(x: torch.Tensor) -> torch.Tensor:
        kept = nucleus(first_first)(x)
        least = torch.where(kept > 0, softmax(x), torch.inf).amin(-1, keepdim=True)  # type: ignore[operator]
        return softmax(x) >= least

    assert "integers" in judged.refused_in(all_of_them)


@pytest.mark.parametrize(
    "body", ["return x.argmax(-1)", "return x.max(-1)[1]", "return x.sort(dim=-1, stable=True)[1]"]
)
def test_the_first_of_equals_is_asked_for_where_torch_specifies_it(body: str) -> None:
    judged = Judged("x", LOGITS, body)
    if "sort" in body:
        assert judged.refused_in(lambda x: first_first(-x)) == []
        assert "integers" in judged.refused_in(lambda x: last_first(-x))
    else:
        assert judged.refused_in(lambda x: first_first(x)[:, 0].contiguous()) == []
        assert "integers" in judged.refused_in(lambda x: last_first(x)[:, 0].contiguous())


def test_a_kept_mask_follows_one_order_of_equal_scores() -> None:
    """Non-maximum suppression along a line: of two that are near each other the one with the lower score goes."""
    body = (
        "o = torch.argsort(s, descending=True)",
        "near = (p[:, None] - p[None]).abs() < 0.2",
        "kept = torch.ones(len(s), dtype=torch.bool)",
        "for t in range(len(o)):",
        "    if kept[o[t]]: kept[o[t + 1 :]] &= ~near[o[t], o[t + 1 :]]",
        "return kept",
    )
    judged = Judged("p, s", "torch.randn(48), torch.randn(48)", *body)

    def suppressed(order: Order) -> Kernel:
        def kernel(p: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
            kept = torch.ones(len(s), dtype=torch.bool)
            places = order(s)
            for t, place in enumerate(places):
                if kept[place]:
                    later = places[t + 1 :]
                    kept[later[(p[place] - p[later]).abs() < 0.2]] = False
            return kept

        return kernel

    assert judged.refused_in(suppressed(first_first)) == judged.refused_in(suppressed(last_first)) == []
    assert judged.refused_in(lambda p, s: torch.ones(len(s), dtype=torch.bool)) != []


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sort(-1),
        lambda x: x.sort(0, descending=True),
        lambda x: x.argsort(-1),
        lambda x: x.topk(3, -1),
        lambda x: x.topk(3, 0, largest=False),
        lambda x: x.kthvalue(2, 0, keepdim=True),
        lambda x: x.median(-1),
        lambda x: x.mode(0),
        lambda x: x.cummin(0),
        lambda x: x.max(-1),
        lambda x: (x.argmax(), x.argmin(0)),
        lambda x: (x.max(), x.median()),
    ],
)
@pytest.mark.parametrize("takes_last", [None, False, True])
def test_where_nothing_is_equal_every_way_gives_what_torch_gives(call: Kernel, takes_last: bool | None) -> None:
    x = torch.randn(5, 7, dtype=torch.float64)
    expected = call(x)
    with Choices(Way(takes_last=takes_last)) as choices:
        found = call(x)
    assert not choices.is_free
    for one, two in zip(found, expected, strict=True):
        assert torch.equal(one, two)


def test_an_output_is_followed_where_it_is_an_order_of_equals_and_nowhere_else() -> None:
    x = torch.tensor([[5.0, 5, 1, 5]])
    for given, expected in (
        ([3, 0, 1], [3, 0, 1]),
        ([0, 0, 0], [0, 1, 3]),
        ([9, 3, 1], [3, 1, 0]),
        ([2, 2, 2], [0, 1, 3]),
    ):
        with Choices(Way(takes_last=False, guides=(torch.tensor([given]),))):
            assert x.topk(3)[1].tolist() == [expected]
    with Choices(Way(takes_last=True)) as choices:
        assert x.topk(3)[1].tolist() == [[3, 1, 0]]
    assert choices.is_free and choices.is_found
