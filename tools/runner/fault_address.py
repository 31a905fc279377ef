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

    Sets follow each other, so a far overrun of a set's last tensor lies in the next set's first tensor. With `called_set`,
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
    last = begun[-1]
    if inside >= _end(last):
        behind = [p for p in places if not p.spec.spanned_bytes and last.offset < p.offset <= inside]
        nearest = [p for p in behind if p.offset == max(each.offset for each in behind)]
        return Spot(words=" or ".join(_beyond(p, inside - _end(p)) for p in (*nearest, last)), is_inside=False)
    return Spot(words=_named(last), is_inside=True)


def _beyond(place: Place, skipped: int) -> str:
    return f"{counted(skipped, 'byte') if skipped else 'right'} past the end of {_named(place)}"


def _named(place: Place) -> str:
    """Return a tensor's name in words; an empty one has an address as others have, with no element of its own there."""
    return f"`{place.spec.name}`{'' if place.spec.spanned_bytes else ' (which is empty)'}"


def _end(place: Place) -> int:
    return place.offset + place.spec.spanned_bytes
