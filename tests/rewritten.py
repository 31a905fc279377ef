"""Assertions of the tests rewritten by all workers of a run together: each rewrites its share of the files first.

Else every worker begins with the same file, finds it not yet written, and all of them rewrite all: eight seconds each.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def rewrite_own_share(config: pytest.Config, folder: Path = Path(__file__).parent) -> None:
    """Rewrite this worker's share of the folder's files that no earlier run has left, where they may be kept."""
    worker = re.fullmatch(r"gw(\d+)", os.environ.get("PYTEST_XDIST_WORKER", ""))
    state = config.stash.get(rewrite.assertstate_key, None)
    if worker is None or state is None or state.mode != "rewrite" or sys.dont_write_bytecode:
        return
    files = sorted([*folder.rglob("test_*.py"), *folder.rglob("conftest.py")])
    for file in files[int(worker[1]) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        kept = rewrite.get_cache_dir(file) / (file.stem + rewrite.PYC_TAIL)
        with contextlib.suppress(OSError, SyntaxError):  # told where the file is collected
            kept.parent.mkdir(exist_ok=True)
            if rewrite._read_pyc(file, kept) is None:
                source, code = rewrite._rewrite_test(file, config)
                rewrite._write_pyc(state, code, source, kept)
