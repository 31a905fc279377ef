"""The example of docs/embedding.md that has nothing left out, run as it stands there."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ridgeline.graph.session import machine
from tests.graph.memory_engine import MemoryEngine

PAGE = Path(__file__).parents[1] / "docs" / "embedding.md"


def test_toolbox_of_an_agent_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @asynccontextmanager
    async def open_engine(device: str) -> AsyncIterator[MemoryEngine]:
        assert device == "cpu"
        yield MemoryEngine()

    monkeypatch.setattr(machine, "open_engine", open_engine)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (example,) = [block for block in blocks if "make_source_toolbox" in block]
    exec(compile(example, str(PAGE), "exec"), {"__name__": "__main__"})
    answer = json.loads(capsys.readouterr().out)
    assert answer["candidate_id"] and (tmp_path / "kernels.sqlite").is_file()
