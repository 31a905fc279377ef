"""The arguments of which an input may hold rows, or numbers: other inputs by their position, parameters and buffers by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

Parameters = Mapping[str, torch.Tensor]
"""Parameters and buffers by name."""
Sources = Mapping[int, Sequence[int | str]]
"""The inputs, in the order in which they are changed, with the arguments of which each may hold some, itself at times."""
