"""Every known way to cheat on a CPU, as a real candidate that is built, run and judged, beside an honest control.

The table is the catalogue: a source in `sources/`, how far it is taken, and what the judge must say of it. A row that
expects `ok` attacks something else than its result: the test after the judgement looks at the evidence.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ridgeline.tools.compiler import Compiler
from ridgeline.tools.engine import BenchmarkTask, CompileTask, DescribeTask, ProblemOnDevice, VerifyTask
from ridgeline.tools.evaluator import Evaluator
from ridgeline.tools.hardware import detect_device
from ridgeline.tools.records import Build, Candidate, Device, Origin, ReasonCode, Status, Timing, Verdict
from ridgeline.tools.sandbox import Sandbox, Tier, probe_sandbox

HERE = Path(__file__).parent
CALL_TIMEOUT_S = 4.0
ATTEMPTS = 3

R, S = ReasonCode, Status


@dataclass(frozen=True)
class Cheat:
    name: str
    stage: str  # "build", "verify" or "benchmark"
    status: Status
    codes: tuple[ReasonCode, ...]


# fmt: off
CATALOGUE = [
    # the control, and an ordinary mistake
    Cheat("honest",                "benchmark", S.OK,            (R.NONE,)),
    Cheat("crash",                 "verify",    S.RUNTIME_ERROR, (R.CRASHED,)),
    Cheat("overrun",               "verify",    S.RUNTIME_ERROR, (R.CRASHED,)),
    # wrong but plausible
    Cheat("constant_output",       "verify",    S.WRONG,         (R.WRONG_VALUES,)),
    Cheat("identity",              "verify",    S.WRONG,         (R.WRONG_VALUES,)),
    Cheat("skips_last_columns",    "verify",    S.WRONG,         (R.WRONG_VALUES, R.PRECISION_TOO_LOW)),
    Cheat("skips_last_rows",       "verify",    S.WRONG,         (R.OUTPUT_NOT_WRITTEN,)),
    Cheat("first_rows_only",       "verify",    S.WRONG,         (R.OUTPUT_NOT_WRITTEN,)),
    Cheat("ignores_affine",        "verify",    S.WRONG,         (R.WRONG_VALUES,)),
    Cheat("hard_coded_statistics", "verify",    S.WRONG,         (R.WRONG_VALUES,)),
    Cheat("low_precision",         "verify",    S.WRONG,         (R.PRECISION_TOO_LOW,)),
    Cheat("noise",                 "verify",    S.WRONG,         (R.NONDETERMINISTIC, R.WRONG_VALUES,
                                                                  R.PRECISION_TOO_LOW)),
    # replay
    Cheat("pointer_cache",         "verify",    S.WRONG,         (R.STALE_OUTPUT,)),
    Cheat("fingerprint_cache",     "verify",    S.WRONG,         (R.STALE_OUTPUT,)),
    Cheat("fingerprint_skip",      "verify",    S.WRONG,         (R.STALE_OUTPUT,)),
    Cheat("static_buffer",         "verify",    S.WRONG,         (R.STALE_OUTPUT,)),
    Cheat("ten_calls",             "verify",    S.WRONG,         (R.OUTPUT_NOT_WRITTEN,)),
    Cheat("twenty_calls",          "verify",    S.WRONG,         (R.WRONG_VALUES,)),
    Cheat("hundred_calls",         "benchmark", S.UNTRUSTED,     (R.TIMED_OUTPUT_WRONG,)),
    # behind the clock
    Cheat("background_thread",     "verify",    S.UNTRUSTED,     (R.BACKGROUND_WORK,)),
    Cheat("background_spin",       "verify",    S.UNTRUSTED,     (R.BACKGROUND_WORK,)),
    Cheat("late_thread",           "verify",    S.UNTRUSTED,     (R.NEW_THREAD,)),
    # tampering
    Cheat("input_modified",        "verify",    S.RUNTIME_ERROR, (R.INPUT_WRITTEN,)),
    Cheat("parameter_modified",    "verify",    S.RUNTIME_ERROR, (R.INPUT_WRITTEN,)),
    Cheat("exit_in_constructor",   "verify",    S.RUNTIME_ERROR, (R.EXITED,)),
    Cheat("exit_in_call",          "verify",    S.RUNTIME_ERROR, (R.EXITED,)),
    Cheat("forged_result",         "verify",    S.UNTRUSTED,     (R.PROTOCOL_VIOLATED,)),
    Cheat("forged_ready",          "verify",    S.UNTRUSTED,     (R.PROTOCOL_VIOLATED,)),
    Cheat("stolen_nonce",          "verify",    S.UNTRUSTED,     (R.PROTOCOL_VIOLATED,)),
    Cheat("takes_connection",      "verify",    S.UNTRUSTED,     (R.BACKGROUND_WORK,)),
    Cheat("answers_early",         "benchmark", S.UNTRUSTED,     (R.PROTOCOL_VIOLATED, R.TIMED_OUTPUT_WRONG)),
    # attacks on the machine: stopped, or without effect beside honest work
    Cheat("incbin",                "build",     S.COMPILE_ERROR, (R.COMPILER_FAILED,)),
    Cheat("seeks_keys",            "verify",    S.OK,            (R.NONE,)),
    Cheat("writes_outside",        "verify",    S.OK,            (R.NONE,)),
    Cheat("sockets",               "verify",    S.OK,            (R.NONE,)),
    Cheat("fork_bomb",             "verify",    S.OK,            (R.NONE,)),
    Cheat("orphan",                "verify",    S.OK,            (R.NONE,)),
    Cheat("thread_bomb",           "verify",    S.RUNTIME_ERROR, (R.SANDBOX_VIOLATION, R.CRASHED)),
    Cheat("memory_bomb",           "verify",    S.RUNTIME_ERROR, (R.OUT_OF_MEMORY, R.CRASHED)),
    Cheat("disk_bomb",             "verify",    S.RUNTIME_ERROR, (R.SANDBOX_VIOLATION,)),
    Cheat("spin",                  "verify",    S.TIMEOUT,       (R.CALL_TIMEOUT,)),
    Cheat("sleep_in_constructor",  "verify",    S.TIMEOUT,       (R.LOAD_TIMEOUT,)),
]
# fmt: on

# Every output that is looked at is right, and nothing forbidden is done: these must be timed as what they are.
GAINLESS = {
    "works_ahead": "honest",
    "skips_when_in_place": "honest",
    "dawdles_in_warm_up": "honest",
    "reads_the_request": "honest",
    "works_between_requests": "honest",
    "linear_mixes_results": "linear_honest",  # the last one: another problem is another judge
}


class Court:
    """One evaluator and compiler for the whole table, and what the attacks are aimed at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret = folder / "secret"
        self.secret.write_text("SECRET_VALUE")
        self.secret.chmod(0o600)
        self.writable = folder / "writable"
        self.writable.mkdir()
        self.writable.chmod(0o777)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.keyholder = subprocess.Popen(["sleep", "600"], env={"OPENAI_API_KEY": "SECRET_VALUE"})
        device = replace(detect_device("cpu"), memory_bytes=4 << 30)  # so that a memory bomb ends soon
        sandbox = Sandbox(probe_sandbox().tier)
        self.tier = sandbox.tier
        self.evaluator = Evaluator(device, cache_dir=folder, sandbox=sandbox)
        self.linear = self._problem("linear_reference.py", device)
        self.problem = self._problem("reference.py", device)
        names = (*(c.name for c in CATALOGUE), *GAINLESS, *GAINLESS.values())
        self.candidates = {name: self._candidate(name) for name in names}
        self.timings: dict[str, Build | Verdict | Timing] = {}
        tasks = [CompileTask(problem=self._problem_of(name), candidate=c) for name, c in self.candidates.items()]
        builds = asyncio.run(Compiler(sandbox, folder, device).compile_batch(tasks))
        self.builds = dict(zip(self.candidates, builds, strict=True))

    def _problem(self, reference: str, device: Device) -> ProblemOnDevice:
        problem = ProblemOnDevice(
            name="cheated",
            reference_source=(HERE / reference).read_text(),
            interface="c",
            tolerance="fp32",
            device=device,
            call_timeout_s=CALL_TIMEOUT_S,
        )
        return replace(problem, description=self.evaluator.describe(DescribeTask(problem=problem)))

    def _problem_of(self, name: str) -> ProblemOnDevice:
        return self.linear if name.startswith("linear_") else self.problem

    def _candidate(self, name: str) -> Candidate:
        work = "linear_work.h" if name.startswith("linear_") else "honest_work.h"
        source = (HERE / "sources" / work).read_text() + (HERE / "sources" / f"{name}.cpp").read_text()
        source = source.replace("SECRET_FILE", str(self.secret)).replace("WRITE_FOLDER", str(self.writable))
        source = source.replace("LISTENER_PORT", str(self.listener.getsockname()[1]))
        return Candidate(
            id=name, origin=Origin.FILE, round=0, idea_id=None, parent_id=None, source=source, language="cpp"
        )

    def judge(self, cheat: Cheat) -> Build | Verdict | Timing:
        build, candidate = self.builds[cheat.name], self.candidates[cheat.name]
        if cheat.stage == "build" or build.status is not Status.OK:
            return build
        problem = self._problem_of(cheat.name)
        verdict = self.evaluator.verify(VerifyTask(problem=problem, candidate=candidate, build=build))
        if cheat.stage == "verify" or verdict.status is not Status.OK:
            return verdict
        task = BenchmarkTask(problem=problem, candidate=candidate, build=build, verdict=verdict)
        return self.evaluator.benchmark(task)

    def timed(self, name: str, *, again: bool = False) -> Build | Verdict | Timing:
        if again or name not in self.timings:
            self.timings[name] = self.judge(Cheat(name, "benchmark", S.OK, (R.NONE,)))
        return self.timings[name]

    def close(self) -> None:
        self.evaluator.close()
        self.listener.close()
        self.keyholder.kill()
        self.keyholder.wait()


@pytest.fixture(scope="module")
def court() -> Iterator[Court]:
    with tempfile.TemporaryDirectory(prefix="ridgeline-cheats-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)  # confined code may become another user
        court = Court(Path(folder))
        yield court
        court.close()


@pytest.mark.parametrize("cheat", CATALOGUE, ids=lambda c: c.name)
def test_judge_gives_the_right_reason(court: Court, cheat: Cheat) -> None:
    found = court.judge(cheat)
    assert (found.status, found.reason_code in cheat.codes) == (cheat.status, True), found
    assert cheat.status is Status.OK or found.reason


@pytest.mark.parametrize(("name", "control"), GAINLESS.items())
def test_cheat_within_the_rules_of_the_clock_gains_nothing(court: Court, name: str, control: str) -> None:
    """A busy machine may slow one of four sides down for a whole measurement; a gain would be there every time."""
    for attempt in range(ATTEMPTS):
        honest, found = court.timed(control, again=attempt > 0), court.timed(name, again=attempt > 0)
        assert isinstance(honest, Timing) and honest.speedup_ci95 is not None, honest
        if found.status is not S.OK:
            return
        assert isinstance(found, Timing) and found.speedup_ci95 is not None
        if found.speedup_ci95[0] < 1.3 * honest.speedup_ci95[1]:
            return
    pytest.fail(f"a gain, {ATTEMPTS} times: {found}")


def test_no_attack_reached_the_machine(court: Court) -> None:
    """Runs after the table, on the same court."""
    assert list(court.writable.iterdir()) == []
    assert not Path("/var/tmp/ridgeline_left").exists()
    assert not Path("/dev/shm/ridgeline_left").exists()
    with pytest.raises(BlockingIOError):
        court.listener.accept()
    time.sleep(0.2)
    assert _hosts_alive(court) == []


def test_the_sandbox_is_a_real_one(court: Court) -> None:
    assert court.tier is not Tier.NONE


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
