"""Pair the tensors of a `ModelNew` with the reference's: by name, else by value under the public seed.

A KernelBench file only has to compute what the reference computes from the same seed, so it may name its parameters as
it likes. Both are made from the public seed: a tensor of the file that then has the values of one of the reference's
stands for it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

import torch

_SAMPLED = 4096  # values of a tensor that its fingerprint covers
_UNUSED_IN_EVAL = "num_batches_tracked"  # batch norm's counter, which no forward in eval() mode reads
_MOST_NAMES = 4


class WeightsDiffer(Exception):
    """A `ModelNew` does not have the reference's parameters; the message names those that differ."""


def fingerprint(tensor: torch.Tensor) -> str:
    """Return a hash of a tensor's type, its shape and values taken evenly from all of it."""
    flat = tensor.detach().cpu().reshape(-1)
    # in float64: float32 counts to 2^24 only, and would round the last place of a larger tensor past its end
    places = torch.linspace(0, max(flat.numel() - 1, 0), min(flat.numel(), _SAMPLED), dtype=torch.float64)
    kept = flat[places.long()].contiguous()
    content = kept.view(torch.uint8).numpy().tobytes() if kept.numel() else b""
    return hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)} ".encode() + content).hexdigest()[:16]


def reference_names(first_values: Mapping[str, str], model: torch.nn.Module) -> dict[str, str]:
    """Return the reference's name for each tensor of a `ModelNew`'s state_dict that stands for one of the reference's.

    `first_values` has the fingerprints of the reference's tensors under the public seed, from which `model` was just
    made too. A buffer that the reference does not have is left out: it is the module's own, as any attribute is.

    Raises:
        WeightsDiffer: one of the reference's tensors, or a parameter of the module, has no counterpart.
    """
    own = torch.nn.Module.state_dict(model)
    names = {name: name for name in own if name in first_values}
    missing = [name for name in first_values if name not in names and not name.endswith(_UNUSED_IN_EVAL)]
    unknown = [name for name in own if name not in names]
    if missing:
        names |= _paired_by_value(missing, unknown, first_values, own)
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    _expect_none_left(
        [name for name in missing if name not in names.values()],
        [name for name in unknown if name not in names and name in parameters],
    )
    return names


def expect_same_form(own: Mapping[str, torch.Tensor], given: Mapping[str, torch.Tensor]) -> None:
    """Raise WeightsDiffer for the first tensor whose shape or type differs from the one that takes its place."""
    for name, wanted in given.items():
        if own[name].shape != wanted.shape or own[name].dtype != wanted.dtype:
            is_, want = (f"{t.dtype} {tuple(t.shape)}".removeprefix("torch.") for t in (own[name], wanted))
            raise WeightsDiffer(f"ModelNew's `{name}` is {is_}, the reference's {want}: convert in forward")


def _paired_by_value(
    missing: Sequence[str], unknown: Sequence[str], first_values: Mapping[str, str], own: Mapping[str, torch.Tensor]
) -> dict[str, str]:
    """Pair tensors of equal value: first names that differ in punctuation alone, then names that end alike, then in order."""
    names: dict[str, str] = {}
    values = {name: fingerprint(own[name]) for name in unknown}
    for is_pair in (_is_spelled_alike, _ends_alike, lambda _own, _other: True):
        for name in (n for n in unknown if n not in names):
            taken = set(names.values())
            free = (n for n in missing if n not in taken and first_values[n] == values[name])
            match = next((n for n in free if is_pair(name, n)), None)
            if match is not None:
                names[name] = match
    return names


def _is_spelled_alike(own: str, other: str) -> bool:
    return re.sub(r"[._]", "", own) == re.sub(r"[._]", "", other)


def _ends_alike(own: str, other: str) -> bool:
    return own.endswith(other.rpartition(".")[2])


def _expect_none_left(missing: Sequence[str], unknown: Sequence[str]) -> None:
    if not missing and not unknown:
        return
    lacks = f" lacks {_listed(missing)}" if missing else ""
    has = f"{' and' if missing else ''} has {_listed(unknown)}, which the reference has not" if unknown else ""
    raise WeightsDiffer(
        f"ModelNew's state_dict{lacks}{has}: name its tensors as the reference does, or draw them as it does"
    )


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    shown = ", ".join(f"`{name}`" for name in ordered[:_MOST_NAMES])
    return f"{shown} and {len(ordered) - _MOST_NAMES} more" if len(ordered) > _MOST_NAMES else shown
