"""Names the tensor at or near a faulting address, in words for a person or a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ridgeline.tools.judge.replies import Place
from ridgeline.tools.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Location of an address among the tensors of its region, in words."""

    words: str  # "`x`", "8 bytes past the end of `out`"
    is_inside: bool  # of a tensor


def locate(places: Sequence[Place], offset: int, *, n_sets: int, called_set: int | None = None) -> Spot:
    """Return where an offset of a region lies; `places` are the region's tensors.

    Sets follow each other, so an overrun of a set's last tensor lies in the next set's first tensor. With `called_set`,
    the only set that the candidate was called on, such an address is told as an overrun.
    """
    if not places:
        return Spot(words="memory that belongs to no tensor", is_inside=False)
    stride = places[0].set_stride  # the same for every tensor of a region; 0 where all sets share them
    set_index = called_set if called_set is not None else min(max(offset // (stride or 1), 0), n_sets - 1)
    inside = offset - set_index * stride
    ordered = sorted((p for p in places if p.spec.spanned_bytes), key=lambda p: p.offset) or places
    begun = [place for place in ordered if place.offset <= inside]
    if not begun:
        return Spot(
            words=f"{counted(ordered[0].offset - inside, 'byte')} before `{ordered[0].spec.name}`", is_inside=False
        )
    past = inside - begun[-1].offset - begun[-1].spec.spanned_bytes
    name = f"`{begun[-1].spec.name}`"
    if past >= 0:
        return Spot(words=f"{counted(past + 1, 'byte')} past the end of {name}", is_inside=False)
    behind = begun[-2] if len(begun) > 1 and inside == begun[-1].offset == _end(begun[-2]) else None
    hint = f" (its start, right behind the end of `{behind.spec.name}`)" if behind else ""
    return Spot(words=name + hint, is_inside=True)


def _end(place: Place) -> int:
    return place.offset + place.spec.spanned_bytes
