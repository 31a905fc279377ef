"""Vectors may have any sign, pairs the same one; what no signs give is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.tools.judge.worker.drawn_secrets import SECRETS
from tests.tools.judge.worker.grading.judged import TRIALS, Judged, Kernel

from ridgeline.tools.judge.worker.grading.cases.vector_signs import VectorSigns, gives_vectors
from ridgeline.tools.records.vocabulary import PrecisionClass

SYMMETRIC, TALL = "torch.randn(64, 3, 3)", "torch.randn(16, 7, 4)"
Tensors = tuple[torch.Tensor, ...]
Pair = Callable[[torch.Tensor], Tensors]


def signs(shape: tuple[int, ...]) -> torch.Tensor:
    """Return signs, about half of them -1, the same ones for each call."""
    return torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(7)) * 2.0 - 1.0


def eigh(x: torch.Tensor) -> Tensors:
    """Return eigenvalues and vectors by rotations (Jacobi)."""
    a, n = x @ x.mT, x.shape[-2]
    v = torch.eye(n).expand_as(a).clone()
    for _ in range(8):
        for p in range(n):
            for q in range(p + 1, n):
                theta = 0.5 * torch.atan2(2 * a[:, p, q], a[:, q, q] - a[:, p, p])
                r = torch.eye(n).expand_as(a).clone()
                r[:, p, p] = r[:, q, q] = theta.cos()
                r[:, p, q] = theta.sin()
                r[:, q, p] = -theta.sin()
                a, v = r.mT @ a @ r, v @ r
    values, order = a.diagonal(dim1=1, dim2=2).sort(-1)
    return values, v.gather(2, order[:, None, :].expand_as(v)).contiguous()


def svd(x: torch.Tensor) -> Tensors:
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    sign = signs(s.shape)
    return u * sign[..., None, :], s, vh * sign[..., None]


def qr(x: torch.Tensor) -> Tensors:
    """Return a decomposition whose R has a diagonal above zero, as Gram and Schmidt's has."""
    q, r = torch.linalg.qr(x)
    sign = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0)
    return q * sign[..., None, :], r * sign[..., None]


def whole_svd(x: torch.Tensor) -> Tensors:
    """Return a decomposition in which the basis of what has no singular value is another one."""
    u, s, vh = torch.linalg.svd(x)
    mixed = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(3)))[0]
    u[..., 4:] = u[..., 4:] @ mixed
    sign = signs(s.shape)
    u[..., :4] *= sign[..., None, :]
    return u, s, vh * sign[..., None]


def with_null_space(x: torch.Tensor) -> Tensors:
    """Return eigenvectors whose basis of the null space is another one."""
    values, v = torch.linalg.eigh(x @ x.mT)
    mixed = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(3)))[0]
    v[..., :3] = v[..., :3] @ mixed
    return values, v.contiguous()


HONEST: dict[str, tuple[str, str, Kernel]] = {
    "eigh": ("return torch.linalg.eigh(x @ x.mT)", SYMMETRIC, eigh),
    "vectors alone": ("return torch.linalg.eigh(x @ x.mT)[1]", SYMMETRIC, lambda x: eigh(x)[1]),
    "largest first": (
        "return torch.linalg.eigh(x @ x.mT)[1].flip(-1)[..., :2]",
        SYMMETRIC,
        lambda x: eigh(x)[1].flip(-1)[..., :2].contiguous(),
    ),
    "what is made of vectors": (
        "return (v := torch.linalg.eigh(x @ x.mT)[1]), (v ** 3).sum(-2)",
        SYMMETRIC,
        lambda x: ((v := eigh(x)[1]), (v**3).sum(-2)),
    ),
    "null space": ("return torch.linalg.eigh(x @ x.mT)", "torch.randn(16, 5, 2)", with_null_space),
    "svd": ("return torch.linalg.svd(x, full_matrices=False)", TALL, svd),
    "whole svd": ("return torch.linalg.svd(x)", TALL, whole_svd),
    "square svd": ("return torch.linalg.svd(x)", "torch.randn(16, 4, 4)", svd),
    "svd of one side": ("return torch.linalg.svd(x)[2]", TALL, lambda x: svd(x)[2]),
    "qr": ("return torch.linalg.qr(x)", TALL, qr),
    "r": ("return torch.linalg.qr(x, mode='r')[1]", TALL, lambda x: qr(x)[1]),
}


@pytest.mark.first_case
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("name", HONEST)
def test_vectors_of_any_sign_are_right(name: str, secret: bytes) -> None:
    body, inputs, kernel = HONEST[name]
    assert Judged("x", inputs, body, secret=secret).refused_in(kernel) == []


def flipped(pair: Pair, which: int, dim: int) -> Pair:
    """Return a kernel one of whose outputs has one vector of the other sign; `dim` is that along which vectors lie."""

    def kernel(x: torch.Tensor) -> Tensors:
        outputs = [output.clone() for output in pair(x)]
        outputs[which].select(dim, 1)[3] *= -1
        return tuple(outputs)

    return kernel


def changed(pair: Pair, change: Callable[[torch.Tensor], object], which: int = 1) -> Pair:
    def kernel(x: torch.Tensor) -> Tensors:
        outputs = [output.clone() for output in pair(x)]
        change(outputs[which])
        return tuple(outputs)

    return kernel


def zeroed(v: torch.Tensor) -> None:
    v[3, :, 1] = 0


def noisy(v: torch.Tensor) -> None:
    v[3, :, 1] = torch.nn.functional.normalize(torch.tensor([1.0, -2.0, 3.0]), dim=0)


def exchanged(v: torch.Tensor) -> None:
    v[3] = v[3][:, [1, 0, 2]]


def swapped_all(v: torch.Tensor) -> None:
    v.copy_(v[..., [1, 0, 2]])


EIGH = ("return torch.linalg.eigh(x @ x.mT)", SYMMETRIC)
SVD = ("return torch.linalg.svd(x, full_matrices=False)", TALL)
QR = ("return torch.linalg.qr(x)", TALL)
WRONG: dict[str, tuple[tuple[str, str], Kernel]] = {
    "zero vector": (EIGH, changed(eigh, zeroed)),
    "noise": (EIGH, changed(eigh, noisy)),
    "zeros": (EIGH, changed(eigh, lambda v: v.zero_())),
    "two exchanged": (EIGH, changed(eigh, exchanged)),
    "all exchanged": (EIGH, changed(eigh, swapped_all)),
    "one element": (EIGH, changed(eigh, lambda v: v[3, 1].mul_(-1))),
    "u alone": (SVD, flipped(svd, 0, -1)),
    "vh alone": (SVD, flipped(svd, 2, -2)),
    "negative values": (SVD, changed(svd, lambda s: s[3].mul_(-1))),
    "q alone": (QR, flipped(qr, 0, -1)),
    "r alone": (QR, flipped(qr, 1, -2)),
    "other r": (QR, changed(qr, lambda r: r.mul_(1.001))),
    "signs that differ between outputs": (
        ("return (v := torch.linalg.eigh(x @ x.mT)[1]), (v ** 3).sum(-2)", SYMMETRIC),
        lambda x: ((v := eigh(x)[1]), -(v**3).sum(-2)),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_signs_give_is_wrong(name: str) -> None:
    (body, inputs), kernel = WRONG[name]
    assert Judged("x", inputs, body).refused_in(kernel) == list(TRIALS)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("torch.linalg.eigh(x)", True),
        ("from torch.linalg import eigh", True),
        ("torch.linalg_eigh(x)", True),
        ("torch._linalg_eigh(x)", True),
        ("torch.linalg.svd(x)", True),
        ("torch.pca_lowrank(x)", True),
        ("torch.linalg.qr(x)", True),
        ("x @ self.weight", False),
        ("labels[neighbours].mean(1)", False),
        ("x * HEIGHT / height", False),
    ],
)
def test_a_weight_and_a_neighbour_are_no_vectors(source: str, expected: bool) -> None:
    assert gives_vectors(source) is expected


def test_a_sign_of_pytorchs_own_is_no_error_of_its_own() -> None:
    for body, inputs in (EIGH, SVD, QR):
        judged = Judged("x", inputs, body)
        own = judged.book.own_errors(judged.book.case("nominal_1"), PrecisionClass.FP32)
        assert own is not None
        assert max(errors.overall for errors in own) < 1e-5


@pytest.mark.parametrize("shape", [(3, 4, 4), (3, 6, 4), (3, 4, 6), (4, 4)])
@pytest.mark.parametrize("complete", [False, True])
def test_with_guides_of_any_sign_products_stay_what_they_were(shape: tuple[int, ...], complete: bool) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    u, s, vh = torch.linalg.svd(x, full_matrices=complete)
    q = torch.linalg.qr(x, mode="complete" if complete else "reduced")[0]
    with VectorSigns((-u, vh, q * signs(q.shape[-1:]))) as found:
        u2, s2, vh2 = torch.linalg.svd(x, full_matrices=complete)
        q2, r2 = torch.linalg.qr(x, mode="complete" if complete else "reduced")
    k = s.shape[-1]
    assert found.is_found
    torch.testing.assert_close(u2[..., :k], -u[..., :k])
    torch.testing.assert_close((u2[..., :k] * s2[..., None, :]) @ vh2[..., :k, :], x)
    torch.testing.assert_close(q2, q * signs(q.shape[-1:]))
    torch.testing.assert_close(q2 @ r2, x)
    assert torch.equal(s, s2)
