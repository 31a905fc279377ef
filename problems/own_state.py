"""The reasons against a reference that changes what is its own, in a file and as a live module alike."""

from __future__ import annotations


def changes_own(name: str) -> str:
    """Return the reason for which a `forward` is refused that writes this one of its tensors."""
    return (
        f"forward() changes its own `{name}` (batch normalisation in training mode, a cache?): what it gives depends on "
        "earlier calls, which cannot be judged; it runs in eval() mode, so leave `training=True` out"
    )


def changes_attribute(name: str) -> str:
    """Return the reason for which a `forward` is refused whose result depends on this attribute, which it changes."""
    return (
        f"forward() changes `self.{name}`, and what it gives depends on that: on earlier calls, which cannot be judged"
    )
