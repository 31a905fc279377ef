"""Every cheat of interface c on a CPU, as a real candidate that is built, run and judged, beside honest controls."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from ridgeline.tools.errors import MachineBusyError
from ridgeline.tools.records.results import Build, Timing
from ridgeline.tools.records.vocabulary import Label, ReasonCode, Status
from ridgeline.tools.sandbox.sandbox import Tier
from tests.conftest import TIERS
from tests.judged_again import JUDGED_AGAIN, Record

from . import catalogue
from .catalogue import CATALOGUE, cases
from .court import HERE, VARIANTS, Court, Found, asked_of, gains_nothing
from .trick import Case, Form, Stage, compared

ROOT = HERE.parent.parent
PROBLEMS = (
    "aligned", "apart", "binned", "bounded", "chorded", "closed", "conditioned", "counted", "crossed", "derived", "directed",
    "divided", "double", "drawn", "edge", "eroded", "filtered", "flooded", "given", "grouped", "headed", "held",
    "hidden", "keyed", "lasting", "limited", "linear", "lined", "linked", "listed", "loaded", "logged", "mapped",
    "matched", "mirrored", "missing", "moved", "nearby", "ordered", "paired", "parted", "phrased", "placed", "plain",
    "pooled", "ranked", "recalled", "rooted", "routed", "settled", "several", "shared", "silent", "sized", "solved",
    "spread", "sticky", "uneven",
)  # fmt: skip
CASES = cases(Form.C)
SLOW_TO_TIME = ("mapped_honest", "paired_honest", "double_honest", "edge_honest", "several_honest", "sized_honest")
"""Controls that every run verifies and `make soak` times: two whose contents the judge renews for 0.4 s before each block,
and those of problems none of whose cheats is timed."""
SLOW_CHEATS = ("mapped_samples_places_when_timed", "rooted_makes_6_rounds_when_timed")
"""Cheats whose contents are renewed as slowly, or whose calls are slow; every run judges the same trick where it is verified,
and others when timed."""
pytestmark = [pytest.mark.long, pytest.mark.sandboxed, pytest.mark.usefixtures("warm_judge")]


def _problem_of(name: str) -> str:
    """Return the problem that a candidate's name begins with, "" for the usual one."""
    prefix = name.partition("_")[0]
    return prefix if prefix in PROBLEMS else ""


def _is_timed(case: Case) -> bool:
    """Return whether a clock decides: of its blocks, or of the processor time that it takes while it should rest."""
    return bool(case.end.control) or case.end.stage is Stage.TIME or ReasonCode.BACKGROUND_WORK in case.end.codes


def _parameters(chosen: list[Case]) -> list[ParameterSet]:
    """Return cases by problem, marked where the judge ends them by what it measured, and where `make soak` alone has them.

    A short run has those of the usual problem: each other costs a judge.
    """
    soaked = _like_others(chosen)
    return [
        pytest.param(
            case,
            marks=[
                *([pytest.mark.timing] if _is_timed(case) else []),
                *([pytest.mark.thorough] if _problem_of(case.name) else []),
                *([pytest.mark.slow] if case in soaked or case.name in (*SLOW_TO_TIME, *SLOW_CHEATS) else []),
            ],
            id=case.name,
        )
        for case in sorted(chosen, key=lambda c: _problem_of(c.name))
    ]


def _is_second() -> bool:
    """Return whether this run is one of the second tier alone."""
    return os.environ.get(TIERS) == Tier.LANDLOCK


def _like_others(chosen: list[Case]) -> list[Case]:
    """Return the cheats of one problem that end as another of it does, at the same stage: `make soak` judges all.

    A run in the second tier alone comes after one in the first, which judged one for each problem: another sandbox is no
    other problem.
    """
    is_second = _is_second()
    met: set[tuple[object, ...]] = set()
    soaked = []
    for case in chosen:
        end = case.end
        problem = "" if is_second else _problem_of(case.name)
        kind = (problem, end.stage, frozenset(end.codes), case.is_to_gain_nothing)
        if kind in met:
            soaked.append(case)
        met.add(kind)
    return soaked


def _timed_here(session: pytest.Session) -> list[str]:
    """Return the names of the cases of this run whose tests have the machine for themselves."""
    timed = [item for item in session.items if isinstance(item, pytest.Function) and item.get_closest_marker("timing")]
    asked = [item.callspec.params.get("case") for item in timed if hasattr(item, "callspec")]
    return [case.name for case in CASES if case in asked]


@pytest.fixture(scope="module")
def court(request: pytest.FixtureRequest, hosts: Path, graphs: Path) -> Iterator[Court]:
    """The court of this run's cases; what their attacks may have left behind is looked for at its end."""
    with tempfile.TemporaryDirectory(prefix="ridgeline-cheats-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)  # confined code may become another user
        shutil.copytree(hosts, Path(folder, "host"))
        Path(folder, "graphs").symlink_to(graphs)
        with closing(Court(Path(folder), references=(*PROBLEMS, "reference"), compared=compared(CASES))) as court:
            court.admit({case.name: _source(case.name) for case in asked_of(request.session, CASES)})
            court.begin(_timed_here(request.session))
            yield court
            assert_no_attack_reached_the_machine(court)


def _source(name: str) -> str:
    """Return a case's source with the headers that it shares, as the one file that a candidate is."""
    sources = HERE / "sources"
    problem = _problem_of(name) or "honest"
    work, _ = VARIANTS.get(problem, (problem, {}))
    source = (sources / f"{work}_work.h").read_text() + (sources / f"{name}.cpp").read_text()
    return re.sub(r'#include "(\w+\.h)"\n', lambda header: (sources / header[1]).read_text(), source)


@pytest.mark.parametrize("case", _parameters(CASES))
def test_judge_ends_it_as_the_table_says(court: Court, case: Case, record_property: Record) -> None:
    """A problem's cases follow each other: its judge starts once."""
    if case.is_to_gain_nothing:
        gain = gains_nothing(court.timed, case.name, case.end.control)
        assert gain is None, gain
        return
    try:
        found, again = (court.timed_honestly(case.name), "") if case.end.control else court.end_of(case)
    except MachineBusyError as busy:  # other programs were at work, whatever it tries: no verdict
        pytest.skip(str(busy))
    if found.status is Status.OK and court.sandbox.tier is Tier.LANDLOCK and case.name == "disk_bomb":
        return  # there it has no folder that it could fill
    record_property(JUDGED_AGAIN, again)
    _assert_right_reason(found, case)


def _controls_slow_to_time() -> list[ParameterSet]:
    """Return them as cases, of which the second tier has none: it verifies an honest kernel of another problem."""
    marks = [pytest.mark.slow] if _is_second() else []
    return [pytest.param(case, marks=marks, id=case.name) for case in CASES if case.name in SLOW_TO_TIME]


@pytest.mark.thorough
@pytest.mark.parametrize("case", _controls_slow_to_time())
def test_a_control_that_is_slow_to_time_is_right(court: Court, case: Case) -> None:
    found = court.verify(case.name)
    assert found.status is Status.OK, found


def _assert_right_reason(found: Found, case: Case) -> None:
    assert case.is_end(found), found
    assert case.end.is_ok or found.reason
    if isinstance(found, Timing):
        assert (case.end.label is Label.VENDOR_LIBRARY) == (Label.VENDOR_LIBRARY in found.labels), found
    assert found.reason.isprintable()
    assert not isinstance(found, Build) or "\x1b" not in found.log


def assert_no_attack_reached_the_machine(court: Court) -> None:
    assert list(court.writable.iterdir()) == []
    for name in ("/var/tmp/ridgeline_left", "/dev/shm/ridgeline_left", "/tmp/torch.py", "/tmp/sitecustomize.py"):
        assert not Path(name).exists()
    dropped = [path for pattern in ("torch.py", "sitecustomize.py") for path in court.folder.rglob(pattern)]
    assert dropped == []
    assert not (ROOT / "tools" / "torch.py").exists()
    _assert_silent(court.listener)
    time.sleep(0.2)
    assert _hosts_alive(court) == []


def test_the_sandbox_is_a_real_one(court: Court) -> None:
    assert court.sandbox.tier is not Tier.NONE


def test_every_source_is_in_the_table_and_every_case_has_a_test() -> None:
    names = {case.name for case in CASES}
    assert {path.stem for path in (HERE / "sources").glob("*.cpp")} == names
    for case in (case for trick in CATALOGUE for case in trick.cases if case.where):
        assert case.name in (ROOT / case.where).read_text(), case


def test_the_page_shows_the_table() -> None:
    """Renew it with `PYTHONPATH=. python tests/cheats/catalogue.py > docs/cheats.md`."""
    assert (ROOT / "docs" / "cheats.md").read_text() == catalogue.page()


def _assert_silent(listener: socket.socket) -> None:
    with pytest.raises(BlockingIOError):
        listener.accept()


def _hosts_alive(court: Court) -> list[str]:
    """Name the processes that still run the native host: every runner must be gone with its candidate."""
    alive = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if f"{court.folder}/host/host-".encode() in command:
            alive.append(process.name)
    return alive
