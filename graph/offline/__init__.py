"""The keyless model: row-wise kernels composed from the reference's graph. See docs/offline.md."""

from ridgeline.graph.offline.model import OfflineModel

__all__ = ["OfflineModel"]
