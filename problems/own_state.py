"""The reason against a reference that changes a parameter or a buffer of its own, in a file and as a live module alike."""

from __future__ import annotations


def changes_own(name: str) -> str:
    """Return the reason for which a `forward` is refused that writes this one of its tensors."""
    return (
        f"forward() changes its own `{name}` (batch normalisation in training mode, a cache?): what it gives depends on "
        "earlier calls, which cannot be judged; it runs in eval() mode, so leave `training=True` out"
    )
