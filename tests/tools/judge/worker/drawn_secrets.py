"""Secrets under which honest kernels are right: every run tries the first, `make soak` all of them."""

from __future__ import annotations

import pytest

SECRETS = (b"one", *(pytest.param(secret, marks=pytest.mark.slow) for secret in (b"two", b"three")))
