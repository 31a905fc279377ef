"""Every cheat of interface torch in its sandboxed runner: one library, of which each candidate is a copy with a name."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import Interface, Status
from tests.judged_again import JUDGED_AGAIN, Record

from .catalogue import cases
from .court import Court, Found, asked_of
from .trick import Case, Form, Stage

CASES = cases(Form.TORCH)
CONTROLS = [case for case in CASES if case.end.control]
TIMED = [case for case in CASES if case.end.stage is Stage.TIME and not case.end.control]
RUNNERS_OWN = {"crash", "view_of_input", "static_buffer", "weights_cached", "input_modified", "broadcast_row",
               "switches_flags", "patched_clock", "exit_in_constructor", "calls_torch"}  # fmt: skip
"""Told by the runner itself, which tests/tools/runner/worker/test_worker.py tries every time; the way through the
judge is slow."""
PARAMETERS = [
    pytest.param(c, marks=[pytest.mark.slow] if c.name in RUNNERS_OWN else [], id=c.name)
    for c in CASES
    if c not in TIMED
]
CHOSEN = b"chosen:honest".ljust(64, b"\0")
pytestmark = [
    pytest.mark.thorough,  # PyTorch's headers take a core for half a minute
    pytest.mark.long,
    pytest.mark.sandboxed,
    pytest.mark.usefixtures("warm_judge"),
]
SIDES = 2  # importing torch takes a core for two seconds: two candidates at once


@contextmanager
def _opened(library: Path, hosts: Path, graphs: Path, chosen: Sequence[Case]) -> Iterator[Court]:
    with tempfile.TemporaryDirectory(prefix="ridgeline-torch-cheats-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        shutil.copytree(hosts, Path(folder, "host"))
        Path(folder, "graphs").symlink_to(graphs)
        with closing(Court(Path(folder), Interface.TORCH, references=("scaled",))) as court:
            for case in chosen:
                _add_copy(court, library, case.name)
            yield court


@pytest.fixture(scope="module")
def court(torch_extension: Path, hosts: Path, graphs: Path) -> Iterator[Court]:
    with _opened(torch_extension, hosts, graphs, [*CONTROLS, *TIMED]) as court:
        yield court


@pytest.fixture(scope="module")
def ends(
    torch_extension: Path, hosts: Path, graphs: Path, request: pytest.FixtureRequest
) -> dict[str, tuple[Found, str]]:
    """Judge all that were asked for at once."""
    chosen = [case for case in asked_of(request.session, CASES) if case not in TIMED]

    def judge(side: int) -> list[tuple[str, tuple[Found, str]]]:
        with _opened(torch_extension, hosts, graphs, chosen[side::SIDES]) as court:
            return [(case.name, court.end_of(case)) for case in chosen[side::SIDES]]

    with ThreadPoolExecutor(SIDES) as pool:
        return dict(pair for pairs in pool.map(judge, range(SIDES)) for pair in pairs)


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
def test_judge_gives_the_right_reason(ends: dict[str, tuple[Found, str]], case: Case, record_property: Record) -> None:
    found, again = ends[case.name]
    record_property(JUDGED_AGAIN, again)
    assert case.is_end(found), found
    assert case.end.is_ok or found.reason


@pytest.mark.timing
@pytest.mark.parametrize("case", CONTROLS, ids=lambda c: c.name)
def test_an_honest_extension_is_timed(court: Court, case: Case) -> None:
    found = court.timed_honestly(case.name)
    assert found.status is Status.OK, found


@pytest.mark.timing
@pytest.mark.parametrize("case", TIMED, ids=lambda c: c.name)
def test_an_extension_that_cheats_when_it_is_timed_is_found(court: Court, case: Case, record_property: Record) -> None:
    found, again = court.end_of(case)
    record_property(JUDGED_AGAIN, again)
    assert case.is_end(found), found
    assert found.reason
