"""What tests of the judge's own process share: draws that depend on nothing that ran before."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def own_draws() -> None:
    """Begin each test at the same draw: else the tests that ran before on this worker decide what it is given."""
    torch.manual_seed(0)
