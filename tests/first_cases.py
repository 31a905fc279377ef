"""Tests of which a short run takes the first case alone."""

from __future__ import annotations

import pytest

MARK, OTHERS = "first_case", "thorough"


class FirstCases:
    """Marks every case but the first of a test marked `first_case` as `thorough`: `-m "not thorough"` leaves those out."""

    @pytest.hookimpl(tryfirst=True)  # before `-m` is applied
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark the cases."""
        begun: set[str] = set()
        for item in items:
            if not item.get_closest_marker(MARK):
                continue
            name = item.nodeid.partition("[")[0]
            if name in begun:
                item.add_marker(OTHERS)
            begun.add(name)
