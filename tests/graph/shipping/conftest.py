"""One process that outlines references for all the packages of a run: importing torch is what takes its seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pytest
from tests.warm_judge import WarmJudges

from ridgeline.graph.shipping import ship
from ridgeline.tools.judge.outline_process import OutlineProcess


@pytest.fixture(scope="session")
def outlines(warm_judges: WarmJudges) -> Iterator[OutlineProcess]:
    with warm_judges.starting():
        process = OutlineProcess(with_calls=True)
    with process:
        yield process


@pytest.fixture(scope="module", autouse=True)
def _warm_outlines(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ship with that process; each reference runs in a child of its own there. The command line starts its own."""

    def opened(**terms: Any) -> nullcontext[OutlineProcess]:
        assert terms == {"with_calls": True}
        return nullcontext(request.getfixturevalue("outlines"))

    with mock.patch.object(ship, "OutlineProcess", opened):
        yield
