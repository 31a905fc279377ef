"""A search that began earlier: how far one that is over goes on, and what a resumed one makes up for."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.graph.memory_engine import MemoryEngine
from tests.graph.programs import started
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import SETTINGS, options

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import INTERRUPTED, newest_unfinished, state_now
from ridgeline.graph.certificate.validity import forget_winner
from ridgeline.graph.session import last_record
from ridgeline.graph.session.session import run_search
from ridgeline.problems.spec import Budget
from ridgeline.tools.engine import PyTorchTask, Task
from ridgeline.tools.errors import EngineError, MachineBusyError, ModelError
from ridgeline.tools.records.vocabulary import Purpose

pytestmark = pytest.mark.long


async def test_finished_search_is_extended_by_more_rounds(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    await run_search(options(tmp_path), engine=engine, models=[model])
    result = await run_search(options(tmp_path, resume=True, max_rounds=3), engine=engine, models=[model])
    assert (result.state, result.rounds) == ("finished", 3)
    assert len(model.writes) == 12


async def test_resuming_a_finished_search_changes_nothing(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    first = await run_search(options(tmp_path), engine=engine, models=[model])
    counts = Counter(engine.counts)
    second = await run_search(options(tmp_path, resume=True), engine=engine, models=[model])
    assert (second.state, second.best_id) == (first.state, first.best_id)
    assert engine.counts == counts


class FailsCertificates(MemoryEngine):
    """An engine that breaks at one task of certificates, of one kernel alone where `candidate_id` names it."""

    def __init__(self, step: str, candidate_id: str = "", kind: type[EngineError] = EngineError) -> None:
        super().__init__()
        self.step, self.candidate_id, self.kind = step, candidate_id, kind

    async def submit(self, task: Task[Any]) -> Any:
        is_baseline = isinstance(task, PyTorchTask) and task.purpose is Purpose.CERTIFY
        step = "baselines" if is_baseline else getattr(task, "step", "")
        if step == self.step and (is_baseline or task.candidate.id.startswith(self.candidate_id)):  # type: ignore[attr-defined]
            raise self.kind("the judge died")
        return await super().submit(task)


async def test_certificate_that_a_busy_machine_kept_from_being_given_is_nothing_to_report(tmp_path: Path) -> None:
    with pytest.raises(MachineBusyError, match="not certified: .*; resume the search"):
        await run_search(
            options(tmp_path), engine=FailsCertificates("time 1", kind=MachineBusyError), models=[ScriptedModel()]
        )


class BusyThenBroken(MemoryEngine):
    """An engine whose machine is too busy for the certificate that is tried first, and that breaks at every other one."""

    tried = ""

    async def submit(self, task: Task[Any]) -> Any:
        if getattr(task, "step", "") == "time 1":
            name = task.candidate.id  # type: ignore[attr-defined]
            self.tried = self.tried or name
            raise MachineBusyError("too busy") if name == self.tried else EngineError("the judge died")
        return await super().submit(task)


async def test_a_defect_in_one_certificate_is_reported_though_the_machine_was_too_busy_for_another(
    tmp_path: Path,
) -> None:
    with pytest.raises(EngineError, match="not certified: .*the judge died") as raised:
        await run_search(options(tmp_path), engine=BusyThenBroken(), models=[ScriptedModel()])
    assert type(raised.value) is EngineError


@pytest.mark.parametrize("step", ["verify", "sanitize", "time 1", "baselines"])
async def test_certificate_that_the_engine_failed_on_is_given_by_a_resumed_search(tmp_path: Path, step: str) -> None:
    with pytest.raises(EngineError, match=r"not certified: .*the judge died; resume the search"):
        await run_search(options(tmp_path), engine=FailsCertificates(step), models=[ScriptedModel()])
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert {failure.purpose for failure in archive.engine_failures()} == {Purpose.CERTIFY}
        assert archive.evaluations(purpose=Purpose.CERTIFY) == []
    engine = MemoryEngine()
    result = await run_search(options(tmp_path, resume=True), engine=engine, models=[ScriptedModel()])
    assert (result.state, result.certified) == ("finished", True)
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert (certificate["passed"], certificate["failed_before"]) == (True, [])
    assert engine.counts[f"VerifyTask:{result.best_id}"] == {"verify": 2, "sanitize": 1}.get(step, 0)
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert result.best_id not in {failure.candidate_id for failure in archive.engine_failures()}


def two_speeds(request: Any) -> dict[str, str]:
    """Return a kernel whose first variation is faster than its second."""
    return {"source": f"// {request.idea.title} {request.variation}\n// speed {3 - request.variation}\n"}


async def test_certificates_that_failed_behind_the_winner_are_not_given_again(tmp_path: Path) -> None:
    settings = {"rounds": 1, "ideas": 1}
    model = ScriptedModel(kernel=two_speeds)
    with pytest.raises(EngineError, match="r1i0v0a0: not certified"):
        await run_search(options(tmp_path, search=settings), engine=FailsCertificates("time 0"), models=[model])
    resumed = options(tmp_path, search=settings, resume=True)
    second = await run_search(resumed, engine=MemoryEngine(), models=[model])
    assert (second.certified, second.best_id) == (True, "r1i0v0a0")
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert archive.engine_failures() == []
    written = (tmp_path / "run" / "certificate.json").read_bytes()
    engine = MemoryEngine()
    events: list[Any] = []
    third = await run_search(resumed, engine=engine, models=[model], on_event=events.append)
    assert {
        "event": "note",
        "message": "nothing was left to do: this search is over; rounds=2 extends it",
    } in events
    assert (third.state, third.best_id, engine.counts) == ("finished", "r1i0v0a0", Counter())
    assert (tmp_path / "run" / "certificate.json").read_bytes() == written


async def test_extension_that_only_certifies_does_not_say_that_nothing_is_left(tmp_path: Path) -> None:
    settings, events = {"rounds": 1, "ideas": 1}, []
    model = ScriptedModel(kernel=two_speeds)
    await run_search(options(tmp_path, search=settings), engine=FailsCertificates("time 0", "r1i0v0"), models=[model])
    extended = options(tmp_path, search=settings, resume=True, max_rounds=1)
    await run_search(extended, engine=MemoryEngine(), models=[model], on_event=events.append)
    said = [event["message"] for event in events if event["event"] == "warning"]
    assert [message.partition(":")[0] for message in said] == ["only the certificate is left to do"]
    await run_search(extended, engine=MemoryEngine(), models=[model], on_event=events.append)
    assert events[-1]["message"].startswith("nothing is left to do: ")


async def test_ended_search_that_is_resumed_gives_the_certificate_that_the_engine_failed_on(tmp_path: Path) -> None:
    settings = {"rounds": 1, "ideas": 1}
    first = await run_search(
        options(tmp_path, search=settings),
        engine=FailsCertificates("time 0", "r1i0v0"),
        models=[ScriptedModel(kernel=two_speeds)],
    )
    assert (first.state, first.certified, first.best_id) == ("finished", True, "r1i0v1a0")
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert certificate["failed_before"] == [
        {"candidate_id": "r1i0v0a0", "reason": "time: the engine failed, the kernel may be sound: the judge died"}
    ]
    engine, model = MemoryEngine(), ScriptedModel()
    second = await run_search(options(tmp_path, search=settings, resume=True), engine=engine, models=[model])
    assert (second.state, second.certified, second.best_id) == ("finished", True, "r1i0v0a0")
    assert engine.counts["BenchmarkTask:r1i0v0a0"] == 3
    assert (model.proposals, model.writes) == ([], [])
    counts = Counter(engine.counts)
    third = await run_search(options(tmp_path, search=settings, resume=True), engine=engine, models=[model])
    assert (third.best_id, engine.counts) == ("r1i0v0a0", counts)


KILLED_SEARCH = """
import sys
from pathlib import Path
from tests.graph.session.test_resume import search_that_is_killed
search_that_is_killed(Path(sys.argv[1]), sys.argv[2])
"""


def search_that_is_killed(folder: Path, at: str) -> None:
    """Run a search that SIGKILL ends at one point of its end."""
    owner, name = {
        "evaluation": (Archive, "add_evaluation"),
        "certificate": (Archive, "save_certificate"),
        "best kernel": (Archive, "save_run"),
        "end of the graph": (last_record, "write_result"),
        "files": (last_record, "write_result"),
    }[at]
    call = getattr(owner, name)

    def call_and_die(*given: Any) -> None:
        if at != "end of the graph":
            call(*given)
        if at == "evaluation" and given[1].purpose is not Purpose.CERTIFY:
            return
        if at != "best kernel" or given[1].best_id is not None:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, call_and_die)
    asyncio.run(run_search(options(folder), engine=MemoryEngine(), models=[ScriptedModel()]))


@pytest.mark.parametrize("at", ["evaluation", "certificate", "best kernel", "end of the graph", "files"])
async def test_search_that_is_killed_while_it_ends_is_resumed_to_its_files(tmp_path: Path, at: str) -> None:
    assert started(KILLED_SEARCH, tmp_path, at).wait(timeout=120) == -signal.SIGKILL
    run = tmp_path / "run"
    assert newest_unfinished(tmp_path, "toy") == run
    with Archive.open_read_only(run) as archive:
        assert state_now(run, archive.run()) == INTERRUPTED
        entries, evaluated = (
            archive.database.query("SELECT * FROM ledger"),
            archive.evaluations(purpose=Purpose.CERTIFY),
        )
    engine = MemoryEngine()
    result = await run_search(options(tmp_path, resume=True), engine=engine, models=[ScriptedModel()])
    assert (result.state, result.certified) == ("finished", True)
    assert json.loads((run / "result.json").read_text())["state"] == "finished"
    assert json.loads((run / "certificate.json").read_text())["passed"]
    assert (run / "best.cpp").read_text() == result.best_source
    with Archive.open_read_only(run) as archive:
        assert archive.run().state == "finished"
        if at != "evaluation":  # which is charged once it is stored
            assert archive.database.query("SELECT * FROM ledger") == entries
        if at not in ("evaluation", "certificate"):
            assert (engine.counts, archive.evaluations(purpose=Purpose.CERTIFY)) == (Counter(), evaluated)


async def test_search_that_is_killed_before_its_further_rounds_begin_is_certified_again(tmp_path: Path) -> None:
    first = await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    with Archive.open(tmp_path / "run") as archive:
        forget_winner(tmp_path / "run", archive)  # and there the process was killed
    second = await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    assert (second.state, second.certified, second.best_id) == ("finished", True, first.best_id)
    assert (tmp_path / "run" / "certificate.json").exists()


async def test_step_that_only_informs_and_was_not_done_is_done_by_a_resumed_search(tmp_path: Path) -> None:
    first = await run_search(options(tmp_path), engine=FailsCertificates("own work"), models=[ScriptedModel()])
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert (certificate["passed"], certificate["not_done"]) == (True, {"own_work": "the judge died"})
    engine = MemoryEngine()
    second = await run_search(options(tmp_path, resume=True), engine=engine, models=[ScriptedModel()])
    assert (second.state, second.certified, second.best_id) == ("finished", True, first.best_id)
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert (certificate["not_done"], certificate["own_work"]["share"]) == ({}, 1.0)
    measured = [name for name in engine.counts if not name.startswith(("CompileTask", "DescribeTask"))]
    assert measured == [f"ProfileTask:{first.best_id}"]
    counts = Counter(engine.counts)
    await run_search(options(tmp_path, resume=True), engine=engine, models=[ScriptedModel()])
    assert engine.counts == counts


async def test_extension_to_fewer_rounds_than_are_done_asks_nothing(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    first = await run_search(options(tmp_path), engine=engine, models=[model])
    counts, calls, events = Counter(engine.counts), len(model.proposals), []
    result = await run_search(
        options(tmp_path, resume=True, max_rounds=1), engine=engine, models=[model], on_event=events.append
    )
    assert (result.state, result.rounds, result.best_id, result.certified) == ("finished", 2, first.best_id, True)
    assert (engine.counts, len(model.proposals)) == (counts, calls)
    assert [event["event"] for event in events] == ["warning"]


async def test_search_ended_by_its_budget_pays_nothing_more_until_the_budget_has_room(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    limited = options(tmp_path, search={"rounds": 3}, budget=Budget(usd=0.004))
    first = await run_search(limited, engine=engine, models=[model])
    assert (first.state, first.rounds) == ("budget", 1)
    calls = len(model.proposals) + len(model.writes)
    for more in ({}, {"max_rounds": 5}):  # the limit that it began with still holds
        again = await run_search(
            options(tmp_path, search={"rounds": 3}, resume=True, **more), engine=engine, models=[model]
        )
        assert (again.state, len(model.proposals) + len(model.writes)) == ("budget", calls)
    roomy = options(tmp_path, search={"rounds": 3}, resume=True, budget=Budget(usd=20))
    last = await run_search(roomy, engine=engine, models=[model])
    assert (last.state, last.rounds) == ("finished", 3)


async def test_branches_that_a_spent_budget_left_unwritten_come_first_when_there_is_room(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    limited = options(tmp_path, search={"rounds": 1}, budget=Budget(usd=0.001))
    first = await run_search(limited, engine=engine, models=[model])
    assert (first.state, len(model.proposals), len(model.writes)) == ("budget", 1, 0)
    roomy = options(tmp_path, search={"rounds": 1}, resume=True, budget=Budget(usd=20))
    last = await run_search(roomy, engine=engine, models=[model])
    assert (last.state, last.rounds, len(model.proposals)) == ("finished", 1, 1)
    assert len({(w.idea.title, w.variation) for w in model.writes}) == SETTINGS["ideas"] * SETTINGS["implementations"]


async def test_extended_search_has_no_certificate_until_it_is_certified_again(tmp_path: Path) -> None:
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    refuses = ScriptedModel(kernel=lambda r: ModelError("scripted: the key was refused (HTTP 401)"))
    with pytest.raises(ModelError):
        await run_search(options(tmp_path, resume=True, max_rounds=3), engine=MemoryEngine(), models=[refuses])
    with Archive.open(tmp_path / "run", create=False) as archive:
        assert archive.certificate() is None
        assert archive.run().best_id is None
    assert not (tmp_path / "run" / "certificate.json").exists()
    result = await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    assert (result.certified, result.rounds) == (True, 3)


async def test_a_limit_on_time_counts_of_earlier_sessions_only_what_they_looked_for_kernels(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    first = await run_search(options(tmp_path), engine=engine, models=[model])
    with Archive.open(first.run_dir, create=False) as archive:
        archive.save_run(RunRecord(wall_s=5000.0))  # a certificate takes long
    more = options(tmp_path, resume=True, max_rounds=first.rounds + 1, budget=Budget(wall_s=300))
    result = await run_search(more, engine=engine, models=[model])
    assert (result.state, result.rounds) == ("finished", first.rounds + 1)
    assert result.report["finding_s"] < 300 < result.report["wall_s"]
