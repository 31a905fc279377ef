"""A resume of a search whose machine failed on some kernels: they are judged, and a faster one is certified."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel, own_structure
from tests.graph.session.test_session import options

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.progress import progress
from ridgeline.graph.models.requests import KernelRequest
from ridgeline.graph.nodes import certify
from ridgeline.graph.session.session import run_search
from ridgeline.tools.engine import VerifyTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.vocabulary import Status

pytestmark = pytest.mark.long


class FailsToVerifyR1i0(MemoryEngine):
    """An engine that breaks at one idea's kernels."""

    def _verify(self, task: VerifyTask) -> Any:
        if task.candidate.id.startswith("r1i0"):
            raise EngineError("the judge died")
        return super()._verify(task)


def _back_to_schema_3(archive: Archive) -> None:
    """Store engine failures as schema 3 did, among the evaluations, and a skipped trial as one text."""
    failures = archive.engine_failures()
    with archive.database.write() as rows:
        rows.execute("DROP TRIGGER evaluation_ends_failure")
        rows.execute("DROP TABLE engine_failures")
        for failure in failures:
            record = json.dumps(failure.as_evaluation().to_json())
            keys = {"candidate_id": failure.candidate_id, "purpose": failure.purpose.value}
            rows.table("evaluations").insert({**keys, "record": record})
        rows.execute("UPDATE runs SET description = json_set(description, '$.skipped_trials[0]', 'shifted: outside')")
        rows.execute("ALTER TABLE failed_sends DROP COLUMN unpriced")
        rows.execute("DROP TRIGGER reply_ends_answers")
        for table in ("prompts", "answers", "steering"):
            rows.execute(f"DROP TABLE {table}")
        rows.execute("PRAGMA user_version = 3")


def faster_of_the_first_idea(first: float, other: float) -> Callable[[KernelRequest], dict[str, str]]:
    """Return what writes the kernels of a round, those of its first idea of one speed and all others of another."""

    def write(request: KernelRequest) -> dict[str, str]:
        speed = first if "1x0" in request.idea.title else other
        own = own_structure(request.idea.title, request.variation)
        return {"source": f"// speed {speed + 0.01 * request.variation}\n{own}"}

    return write


async def test_a_finished_search_that_is_resumed_judges_what_its_engine_failed_on(tmp_path: Path) -> None:
    model = ScriptedModel(kernel=faster_of_the_first_idea(1.5, 1.2))
    first = await run_search(options(tmp_path, search={"rounds": 1}), engine=FailsToVerifyR1i0(), models=[model])
    assert (first.state, first.certified, sorted(first.failed)) == ("finished", True, ["r1i0v0a0", "r1i0v1a0"])
    certificate = (tmp_path / "run" / "certificate.json").read_bytes()
    events: list[Any] = []
    resumed = options(tmp_path, search={"rounds": 1}, resume=True)
    still_fails = LooksForCertificate(tmp_path / "run")
    broken = await run_search(resumed, engine=still_fails, models=[model], on_event=events.append)
    left = "only 2 kernels that the machine failed on, and a certificate where one may win, left to do: no round was asked for"
    assert {"event": "note", "message": left} in events
    assert (broken.state, broken.best_id, broken.certified, broken.failed) == (
        *("finished", first.best_id, True),
        first.failed,
    )
    assert f"VerifyTask:{first.best_id}" not in still_fails.counts  # its certificate stands, there all the while
    assert (tmp_path / "run" / "certificate.json").read_bytes() == certificate
    assert still_fails.certified_meanwhile == [True, True]
    engine = MemoryEngine()
    second = await run_search(resumed, engine=engine, models=[model])
    assert (second.state, second.certified, second.failed) == ("finished", True, [])
    assert second.best_id in first.failed and second.best_id != first.best_id
    assert len(model.writes) == 4
    counts = dict(engine.counts)
    third = await run_search(resumed, engine=engine, models=[model])
    assert (third.best_id, engine.counts) == (second.best_id, counts)


class LooksForCertificate(FailsToVerifyR1i0):
    """An engine that looks, where it breaks, whether the search has its certificate."""

    def __init__(self, run: Path) -> None:
        super().__init__()
        self.run, self.certified_meanwhile = run, list[bool]()

    def _verify(self, task: VerifyTask) -> Any:
        with Archive.open_read_only(self.run) as archive:
            has_winner = archive.certificate() is not None and archive.run().best_id is not None
        self.certified_meanwhile.append(has_winner and (self.run / "certificate.json").exists())
        return super()._verify(task)


async def test_kernel_that_is_judged_just_before_a_resumed_search_is_killed_is_certified_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel(kernel=faster_of_the_first_idea(1.5, 1.2))
    first = await run_search(options(tmp_path, search={"rounds": 1}), engine=FailsToVerifyR1i0(), models=[model])
    resumed = options(tmp_path, search={"rounds": 1}, resume=True)

    def killed(_archive: Archive) -> NoReturn:
        raise EngineError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(certify, "is_outdone", killed)
        with pytest.raises(EngineError, match="killed"):
            await run_search(resumed, engine=MemoryEngine(), models=[model])
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert (archive.run().best_id, archive.engine_failures()) == (first.best_id, [])
    second = await run_search(resumed, engine=MemoryEngine(), models=[model])
    assert (second.certified, second.best_id in first.failed) == (True, True)


@pytest.mark.parametrize(
    ("rules", "ended", "reason"),
    [
        ({"rounds": 3, "stall_rounds": 1}, "stalled", "no gain in 1 round"),
        ({"rounds": 2, "stall_rounds": None}, "finished", "2 rounds done"),
    ],
)
async def test_a_search_without_a_gain_that_has_one_later_ends_as_its_rounds_did(
    tmp_path: Path, rules: dict[str, Any], ended: str, reason: str
) -> None:
    model = ScriptedModel(kernel=faster_of_the_first_idea(1.5, 0.5))
    asked = options(tmp_path, search=rules)
    (asked.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")  # type: ignore[union-attr]
    first = await run_search(asked, engine=FailsToVerifyR1i0(), models=[model])
    assert (first.state, first.reason) == ("no_gain", "no certified kernel is faster than eager PyTorch")
    certifying: list[bool] = []

    def look(_event: Any) -> None:
        with Archive.open_read_only(tmp_path / "run") as archive:
            certifying.append(progress(archive).is_certifying)

    resumed = dataclasses.replace(asked, resume=True)
    second = await run_search(resumed, engine=MemoryEngine(), models=[model], on_event=look)
    assert (second.state, second.certified, second.reason) == (ended, True, reason)
    assert certifying and all(certifying)


async def test_kernel_that_is_judged_later_is_certified_also_behind_those_that_failed_at_their_certificates(
    tmp_path: Path,
) -> None:
    def write(request: KernelRequest) -> dict[str, str]:
        speed = "speed 1.5" if "1x0" in request.idea.title else "speed 2\n// certified 1.0"
        return {"source": f"// {speed}\n{own_structure(request.idea.title, request.variation)}"}

    model = ScriptedModel(kernel=write)
    asked = options(tmp_path, search={"rounds": 1})
    (asked.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")  # type: ignore[union-attr]
    first = await run_search(asked, engine=FailsToVerifyR1i0(), models=[model])
    assert (first.state, sorted(first.uncertified)) == ("no_gain", ["r1i1v0a0", "r1i1v1a0"])
    second = await run_search(dataclasses.replace(asked, resume=True), engine=MemoryEngine(), models=[model])
    assert (second.state, second.certified, second.best_id in first.failed) == ("finished", True, True)


async def test_a_search_without_a_gain_has_one_where_a_kernel_that_the_engine_failed_on_is_faster(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(kernel=faster_of_the_first_idea(1.5, 0.5))
    asked = options(tmp_path, search={"rounds": 1})
    (asked.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")  # type: ignore[union-attr]
    first = await run_search(asked, engine=FailsToVerifyR1i0(), models=[model])
    assert (first.state, first.certified) == ("no_gain", False)
    resumed = dataclasses.replace(asked, resume=True)
    again = await run_search(resumed, engine=FailsToVerifyR1i0(), models=[model])
    assert (again.state, again.reason) == ("no_gain", first.reason)
    second = await run_search(resumed, engine=MemoryEngine(), models=[model])
    assert (second.state, second.certified, second.reason) == ("finished", True, "1 round done")


async def test_run_folder_of_an_older_schema_goes_on_and_judges_what_its_engine_failed_on(tmp_path: Path) -> None:
    await run_search(options(tmp_path), engine=FailsToVerifyR1i0(), models=[ScriptedModel()])
    with Archive.open(tmp_path / "run", create=False) as archive:
        assert {f.candidate_id for f in archive.engine_failures()} == {"r1i0v0a0", "r1i0v1a0"}
        _back_to_schema_3(archive)
    resumed = options(tmp_path, resume=True, max_rounds=3)
    result = await run_search(resumed, engine=MemoryEngine(), models=[ScriptedModel()])
    assert (result.state, result.rounds, result.certified) == ("finished", 3, True)
    with Archive.open(tmp_path / "run", create=False) as archive:
        assert archive.engine_failures() == []
        description = archive.description()
        assert description is not None and [t.name for t in description.skipped_trials] == ["shifted"]
        for candidate_id in ("r1i0v0a0", "r1i0v1a0"):
            evaluation = archive.evaluation(candidate_id)
            assert evaluation is not None and evaluation.status is Status.OK
