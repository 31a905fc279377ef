"""Every cheat of interface torch in its sandboxed runner: one library, of which each candidate is a copy with a name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ridgeline.tools.records.results import Build, Verdict
from ridgeline.tools.records.vocabulary import Interface, Status

from .catalogue import Case, Form, cases
from .court import Court

CASES = cases(Form.TORCH)
CONTROLS = [case for case in CASES if case.end.control]
RUNNERS_OWN = {"crash", "view_of_input", "static_buffer", "weights_cached", "input_modified", "broadcast_row",
               "switches_flags", "patched_clock", "exit_in_constructor", "calls_torch"}  # fmt: skip
"""Told by the runner itself, which tests/tools/runner/worker/test_worker.py tries every time; the way through the
judge is slow."""
PARAMETERS = [pytest.param(c, marks=[pytest.mark.slow] if c.name in RUNNERS_OWN else [], id=c.name) for c in CASES]
CHOSEN = b"chosen:honest".ljust(64, b"\0")
SIDES = 2  # importing torch takes a core for two seconds: two candidates at once


@pytest.fixture(scope="module")
def courts(torch_extension: Path) -> Iterator[list[Court]]:
    with tempfile.TemporaryDirectory(prefix="ridgeline-torch-cheats-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        made = []
        for side in range(SIDES):
            place = Path(folder) / str(side)
            place.mkdir(mode=0o755)
            made.append(Court(place, Interface.TORCH, references=("scaled",)))
            for case in CASES:
                _add_copy(made[-1], torch_extension, case.name)
        yield made
        for court in made:
            court.close()


@pytest.fixture(scope="module")
def verdicts(courts: list[Court], request: pytest.FixtureRequest) -> dict[str, Verdict]:
    """Judge all that were asked for at once."""
    asked = [item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")]
    chosen = [case for case in CASES if case in asked]

    def judge(side: int) -> list[tuple[str, Verdict]]:
        return [(case.name, _verdict(courts[side], case)) for case in chosen[side::SIDES]]

    with ThreadPoolExecutor(SIDES) as pool:
        return dict(pair for pairs in pool.map(judge, range(SIDES)) for pair in pairs)


def _verdict(court: Court, case: Case) -> Verdict:
    found = court.verify(case.name)
    assert isinstance(found, Verdict)
    return found


def _add_copy(court: Court, library: Path, name: str) -> None:
    original = library.read_bytes()
    assert original.count(CHOSEN) == 1
    folder = court.folder / name
    folder.mkdir(mode=0o755)
    copy = folder / "kernel.so"
    copy.write_bytes(original.replace(CHOSEN, b"chosen:" + name.encode().ljust(len(CHOSEN) - len(b"chosen:"), b"\0")))
    copy.chmod(0o755)
    court.add(name, Build(key=name, status=Status.OK, library_path=str(copy)))


@pytest.mark.parametrize("case", PARAMETERS)
def test_judge_gives_the_right_reason(verdicts: dict[str, Verdict], case: Case) -> None:
    found = verdicts[case.name]
    assert (found.status, found.reason_code in case.end.codes) == (case.end.status, True), found
    assert case.end.status is Status.OK or found.reason


@pytest.mark.parametrize("case", CONTROLS, ids=lambda c: c.name)
def test_an_honest_extension_is_timed(courts: list[Court], case: Case) -> None:
    found = courts[0].timed_honestly(case.name)
    assert found.status is Status.OK, found
