"""The modes in which the judge sees every operation of a reference: torch's own, ready before the first run in one.

Each dispatch of a mode goes through torch._dynamo. Its import takes a core for a second, which would count as the
reference's time, and is incomplete where it happens within a mode.
"""

from __future__ import annotations

import torch._dynamo  # noqa: F401  # imported for what it makes ready
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["TorchDispatchMode"]
