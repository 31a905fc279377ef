"""One evaluator and compiler for all cheats of a form, and what their attacks are aimed at."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from ridgeline.problems.syntax import substitute_sizes
from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import BenchmarkTask, CompileTask, DescribeTask, VerifyTask
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.timed_side import WarmUp
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.problem import DescribedTarget, Target
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Build, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Purpose, Status
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox
from tests.candidates import candidate_of

from .trick import Case, Stage

HERE = Path(__file__).parent
CALL_TIMEOUT_S = 4.0
AT_ONCE = 2
"""Problems that are made ready side by side."""
VARIANTS = {"loaded": ("given", {"DELAY_S": 0.005}), "mirrored": ("solved", {"ERROR": 1e-3})}
"""The problems that are another one with other values written into its reference."""

Found = Build | Verdict | Timing

USUAL = TimingSettings.for_purpose(Purpose.SEARCH, DeviceKind.CPU)
TO_PASS = replace(USUAL, warm_up=WarmUp(seconds=0.1), rule=replace(USUAL.rule, largest=USUAL.rule.smallest))
"""For an honest candidate that has to be timed: every check of a timing, in the fewest pairs of blocks that a search makes."""


class Court:
    """Judges candidates of one interface. A candidate's first word may name its reference; else it is the last one's.

    A problem is described, and all its candidates are built in one batch, when the first of them is judged: a judge that
    describes goes on to judge, and starts once for each problem whose candidates come one after the other. What is to be
    timed may begin before: `begin` has the judges of several problems wait.
    """

    def __init__(
        self,
        folder: Path,
        interface: Interface = Interface.C,
        references: Iterable[str] = ("reference",),
        compared: Iterable[str] = (),
    ) -> None:
        """Judge nothing yet; `compared` are the candidates whose times are held against each other: measured as usual."""
        self.folder = folder
        self.interface = interface
        self.secret = folder / "secret"
        self.secret.write_text("SECRET_VALUE")
        self.secret.chmod(0o600)
        self.writable = folder / "writable"
        self.writable.mkdir()
        self.writable.chmod(0o777)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.keyholder = subprocess.Popen(["sleep", "600"], env={"OPENAI_API_KEY": "SECRET_VALUE"})
        self.device = replace(detect_device("cpu"), memory_bytes=4 << 30)  # so that a memory bomb ends soon
        self.sandbox = Sandbox(probe_sandbox().tier)
        self.references = tuple(references)
        self._evaluators: dict[str, Evaluator] = {}  # one for each problem, whose judge waits beside the others'
        self._judged = ""  # the problem of the candidate that was judged last
        self._problems: dict[str, DescribedTarget] = {}
        self.candidates: dict[str, Candidate] = {}
        self.builds: dict[str, Build] = {}
        self._compared = frozenset(compared)
        self._timings: dict[str, Found] = {}

    def _described(self, name: str) -> DescribedTarget:
        work, values = VARIANTS.get(name, (name, {}))
        problem = Target(
            name="cheated",
            reference_source=substitute_sizes((HERE / f"{work}.py").read_text(), values, f"{work}.py"),
            interface=Interface(self.interface),
            tolerance=PrecisionClass.FP64,  # fp32 of outputs in float32
            device=self.device,
            call_timeout_s=CALL_TIMEOUT_S,
        )
        return problem.described(self._evaluator_of(name).describe(DescribeTask(problem=problem)))

    def _evaluator_of(self, reference: str) -> Evaluator:
        if reference not in self._evaluators:
            self._evaluators[reference] = Evaluator(self.device, cache_dir=self.folder, sandbox=self.sandbox)
        return self._evaluators[reference]

    def reference_of(self, name: str) -> str:
        """Return the name of a candidate's reference."""
        prefix = name.partition("_")[0]
        return prefix if prefix in self.references else self.references[-1]

    def problem_of(self, name: str) -> DescribedTarget:
        reference = self.reference_of(name)
        if reference not in self._problems:
            self._problems[reference] = self._described(reference)
        return self._problems[reference]

    def admit(self, sources: Mapping[str, str], language: str = "cpp") -> None:
        """Take sources as candidates, their aims filled in."""
        aims = {
            "SECRET_FILE": str(self.secret),
            "WRITE_FOLDER": str(self.writable),
            "LISTENER_PORT": str(self.listener.getsockname()[1]),
            "TORCH_FOLDER": _folder_of("torch"),
            "TOOLS_FOLDER": str((Path(_folder_of("ridgeline")) / "tools").resolve()),
        }
        for name, text in sources.items():
            source = text
            for word, aim in aims.items():
                source = source.replace(word, aim)
            self.candidates[name] = self._candidate(name, source, language)

    def begin(self, names: Iterable[str]) -> None:
        """Have the problems of these candidates ready to be timed, with all their candidates built: several at once.

        A core would be idle while each judge loads its problem; afterwards nothing runs until one is asked.
        """
        first_of = {self.reference_of(name): name for name in names}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(lambda name: self._build_of(name, Stage.TIME), first_of.values()):
                pass

    def _build_of(self, name: str, stage: Stage) -> Build:
        """Return a candidate's build, made in one batch with those of all others of its problem.

        What is to be timed needs the reference in a runner too, which imports torch meanwhile.
        """
        if name not in self.builds:
            reference, problem = self.reference_of(name), self.problem_of(name)
            batch = [n for n in self.candidates if n not in self.builds and self.reference_of(n) == reference]
            tasks = [CompileTask(problem=problem, candidate=self.candidates[n]) for n in batch]
            compiler = Compiler(self.sandbox, self.folder, self.device)
            with ThreadPoolExecutor(1) as beside:
                begun = beside.submit(self._begin_reference, reference) if stage is Stage.TIME else None
                builds = asyncio.run(compiler.compile_batch(tasks))
            if begun is not None:
                begun.result()
            self.builds |= dict(zip(batch, builds, strict=True))
        return self.builds[name]

    def _begin_reference(self, name: str) -> None:
        """Time nothing yet, but have the reference ready to be timed, as it is where a search judges a candidate."""
        problem = self._problems[name]
        self._evaluator_of(name)._session(problem).reference(problem, ReferenceMode.EAGER)

    def _candidate(self, name: str, source: str, language: str) -> Candidate:
        return candidate_of(source, name=name, language=language, interface=self.interface)

    def add(self, name: str, build: Build) -> None:
        """Add a candidate that was built elsewhere."""
        self.candidates[name] = self._candidate(name, "", "cpp")
        self.builds[name] = build

    def verify(self, name: str) -> Found:
        return self.judge(name, Stage.VERIFY)

    def judge(self, name: str, stage: Stage, settings: TimingSettings = USUAL) -> Found:
        """Take a candidate as far as the stage, or to where it fails."""
        evaluator = self._evaluator_to_judge(self.reference_of(name))
        build, candidate, problem = self._build_of(name, stage), self.candidates[name], self.problem_of(name)
        if stage is Stage.BUILD or build.status is not Status.OK:
            return build
        verdict = evaluator.verify(VerifyTask(problem=problem, candidate=candidate, build=build))
        if stage is Stage.VERIFY or verdict.status is not Status.OK:
            return verdict
        task = BenchmarkTask(problem=problem, candidate=candidate, build=build, verdict=verdict)
        with mock.patch.object(TimingSettings, "for_purpose", return_value=settings):
            return evaluator.benchmark(task)

    def _evaluator_to_judge(self, reference: str) -> Evaluator:
        """Return the problem's evaluator; the judge of the problem before ends."""
        if self._judged not in ("", reference):
            self._evaluator_of(self._judged).forget_judge()
        self._judged = reference
        return self._evaluator_of(reference)

    def timed(self, name: str, *, again: bool = False) -> Found:
        """Return a candidate's timing; an honest one's serves every cheat beside it."""
        if again or name not in self._timings:
            self._timings[name] = self.judge(name, Stage.TIME, USUAL if name in self._compared else TO_PASS)
        return self._timings[name]

    def judge_anew(self, name: str, stage: Stage) -> Found:
        """Take a candidate so far before a judge of its own, whose secrets no other has."""
        self._evaluator_of(self.reference_of(name)).forget_judge()
        return self.judge(name, stage)

    def end_of(self, case: Case) -> tuple[Found, str]:
        """Return how a case ended, and what was found beside it where that is not what the table says at once."""
        name, stage = case.name, case.end.stage
        return most_of(case, lambda: self.judge(name, stage), lambda: self.judge_anew(name, stage))

    def timed_honestly(self, name: str, *, attempts: int = 3) -> Found:
        """Return an honest candidate's timing; a busy machine may put two clocks apart for a whole measurement."""
        found = self.timed(name)
        for _ in range(attempts - 1):
            if found.status is Status.OK:
                break
            found = self.timed(name, again=True)
        return found

    def close(self) -> None:
        for evaluator in self._evaluators.values():
            evaluator.close()
        self.listener.close()
        self.keyholder.kill()
        self.keyholder.wait()


def asked_of(session: pytest.Session, cases: Sequence[Case]) -> list[Case]:
    """Return those of the cases whose tests are part of this run, with the controls that they are held against."""
    asked = [
        item.callspec.params.get("case")
        for item in session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    ]
    names = {name for case in cases if case in asked for name in (case.name, case.end.control)}
    return [case for case in cases if case.name in names]


def most_of(case: Case, judge: Callable[[], Found], anew: Callable[[], Found], *, draws: int = 3) -> tuple[Found, str]:
    """Return how a case ended, and all that was found where the first judge says something else than the table.

    A judge's secrets decide in a search: what relies on chance meets some now and then that let it pass, as an honest kernel
    may meet some that refuse it. A certificate draws anew, several times. So further judges have to say, and most of them as
    the table does.
    """
    found = judge()
    if case.is_end(found):
        return found, ""
    others = [anew() for _ in range(draws)]
    as_told = [other for other in others if case.is_end(other)]
    said = ", then ".join(f"{each.status} ({each.reason_code})" for each in (found, *others))
    return (as_told[0] if 2 * len(as_told) > draws else found), said


def gains_nothing(
    timed: Callable[..., Found], name: str, control: str, *, attempts: int = 3, margin: float = 1.3
) -> Found | None:
    """Return None when a cheat is no faster than its control, or rejected, else its last timing.

    A busy machine may slow one of four sides down for a whole measurement; a gain would be there every time.
    """
    honest: Found | None = None
    found: Found | None = None
    for attempt in range(attempts):
        honest, found = timed(control, again=attempt > 0), timed(name, again=attempt > 0)
        if found.status in (Status.WRONG, Status.UNTRUSTED):
            return None
        assert found.status is Status.OK, found  # one that does not compile or load shows nothing
        assert isinstance(honest, Timing) and isinstance(found, Timing) and found.speedup_ci95
        if honest.speedup_ci95 and found.speedup_ci95[0] < margin * honest.speedup_ci95[1]:
            return None
    assert honest is not None and honest.status is Status.OK, honest
    return found


def _folder_of(package: str) -> str:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None
    return str(Path(spec.origin).parent)
