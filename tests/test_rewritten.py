"""A worker rewrites its share of the tests' files before it collects them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.rewritten import rewrite_own_share


@pytest.mark.parametrize(("worker", "shares"), [("gw0", [0, 2]), ("gw1", [1]), ("", [])])
def test_each_worker_keeps_what_it_rewrote_of_its_own_share(
    worker: str, shares: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(f"def test_it():\n    assert {number} == 1\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    rewrite_own_share(pytestconfig, tmp_path)
    kept = sorted(path.name.partition(".")[0] for path in tmp_path.rglob("*.pyc"))
    assert kept == [f"test_{number}" for number in shares]


def test_a_file_that_is_no_python_is_left_to_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "test_it.py").write_text("def (")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "1")
    rewrite_own_share(pytestconfig, tmp_path)
    assert not [*tmp_path.rglob("*.pyc")]
