"""The offline model: kernels composed from a reference's graph. See docs/offline.md."""

from ridgeline.graph.offline.model import OfflineModel

__all__ = ["OfflineModel"]
