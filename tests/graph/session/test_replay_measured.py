"""Recorded answers measured on another machine: other kernels win there, others fail, and the replay goes on."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.graph.memory_engine import EAGER_MS, MemoryEngine
from tests.graph.scripted_model import ScriptedModel, distinct_ideas, faster_each_round, own_structure
from tests.graph.session.test_session import options

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.recording.file import read_recording, write_recording
from ridgeline.checkpoints.result import read_schema
from ridgeline.graph.models.edits import holds_edits
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import NotRecorded
from ridgeline.tools.records.keys import branch_of
from ridgeline.tools.records.results import Build, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Mender, Origin, ReasonCode, Status

pytestmark = pytest.mark.long

FIRST = "r3i1v0a0"
"""A kernel that does not build, as its sibling does not, for one error."""
TUNABLE = "// tune: N = 1 | 2 | 4"


def ideas(request: Any) -> Any:
    """Return ideas of which one repeats an earlier round's, which is refused, unless that one failed."""
    answer = distinct_ideas(request)
    if request.round == 2 and not request.refused:
        answer["ideas"][1] |= {"title": "golf1x1 golf1x1a", "mechanism": "golf1x1b golf1x1c golf1x1d"}
    return answer


def kernel(request: Any) -> Any:
    """Return whole kernels in round 1 and for repairs, edits of the parent's text later; some are unfit elsewhere."""
    if "lacks clamp" in request.failed_source:
        return {"source": request.failed_source.replace("lacks clamp", "lacks clamp, has clamp")}
    if request.failed_source:
        return {"source": f"#define N 1  {TUNABLE}\n{faster_each_round(request)['source']}"}
    unfit = {("golf1x1", 0): "verify", ("golf1x1", 1): "verify", ("papa3x0", 1): "build"}
    word = request.idea.title.partition(" ")[0]
    marks = f"// unfit for {unfit[word, request.variation]}\n" if (word, request.variation) in unfit else ""
    if word == "kilo2x0" and request.variation == 1:
        marks += "// fails verify\n"
    if word == "papa3x0" and request.variation == 0:
        marks += "// needs cmath\n"
    if word == "alpha3x1":
        marks += "// lacks clamp\n"
    lines = request.parent.source.splitlines() if request.parent else []
    kept = [line for line in lines if line.startswith(("#define N", "int run"))]
    if len(kept) < 2:
        speed = faster_each_round(request)["source"]
        return {"source": f"#define N 1  {TUNABLE}\n// factor N 4 1.3\n{marks}{speed}"}
    own = f"{marks}// {word} {request.variation}\n{own_structure(word, request.variation)}"
    blocks = zip(kept, (f"#define N 1  {TUNABLE}\n// factor N 2 1.2\n", own), strict=True)
    return "\n".join(f"<<<<<<< SEARCH\n{old}\n=======\n{new}>>>>>>> REPLACE" for old, new in blocks)


class OneWaits(MemoryEngine):
    """A machine that builds one kernel only once its sibling's model was asked to repair the same error."""

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__()
        self.model = model

    async def submit(self, task: Any) -> Any:
        while isinstance(task, CompileTask) and task.candidate.id == FIRST and not self.is_asked():
            await asyncio.sleep(0.01)
        return await super().submit(task)

    def is_asked(self) -> bool:
        return any("lacks clamp" in request.failed_source for request in self.model.writes)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose one model is a mailbox by its name: with edits, repairs, fix-its, tuning and refused ideas."""
    folder = tmp_path_factory.mktemp("recorded")
    asked = options(folder, search={"rounds": 3, "tune_trials": 6}, rng_seed=3)
    models = [ScriptedModel("mailbox:me", ideas=ideas, kernel=kernel)]
    with ThreadPoolExecutor(1) as executor:
        executor.submit(asyncio.run, run_search(asked, engine=OneWaits(models[0]), models=models)).result()
    write_recording(folder / "run", folder / "file.jsonl")
    return folder / "run"


class Elsewhere(MemoryEngine):
    """A machine with other times, where some kernels do not pass and others do."""

    def _compile(self, task: Any) -> Build:
        if "unfit for build" in task.candidate.source:
            key = hashlib.sha256(task.candidate.source.encode()).hexdigest()
            code = ReasonCode.COMPILER_FAILED
            return Build(key=key, status=Status.COMPILE_ERROR, reason_code=code, reason="unknown type", log="error")
        return super()._compile(task)

    def _verify(self, task: Any) -> Verdict:
        if "unfit for verify" in task.candidate.source:
            return Verdict(status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, reason="row 3 differs")
        fit = dataclasses.replace(task.candidate, source=task.candidate.source.replace("fails verify", ""))
        return super()._verify(dataclasses.replace(task, candidate=fit))

    def _benchmark(self, task: Any) -> Timing:
        timing = super()._benchmark(task)
        speed = 1.1 + int(hashlib.sha256(task.candidate.source.encode()).hexdigest()[:4], 16) / 2**16
        return dataclasses.replace(
            timing, median_ms=EAGER_MS / speed, speedup=speed, speedup_ci95=(speed * 0.99, speed * 1.01)
        )


def written(run: Path, attempt: int = 0) -> dict[str, Candidate]:
    """Return the kernels of a run's models by id, of one attempt."""
    with Archive.open_read_only(run) as archive:
        models = archive.candidates(origin=Origin.MODEL)
        return {each.id: each for each in models if each.attempt == attempt and not each.mending}


def named_ideas(run: Path) -> list[tuple[str, str]]:
    with Archive.open_read_only(run) as archive:
        return [(idea.id, idea.title) for idea in archive.ideas()]


def measured_elsewhere(recorded: Path, run_dir: Path, **given: Any) -> SearchRequest:
    return SearchRequest(replay=recorded.parent / "file.jsonl", run_dir=run_dir, **given)


def test_the_recording_holds_what_edits_made(recorded: Path) -> None:
    recording = read_recording(recorded.parent / "file.jsonl")
    edited = [call for call in recording.calls if call.reply and holds_edits(str(call.reply["text"]))]
    assert edited
    assert all(call.kernel == written(recorded)[call.call_id.removesuffix(":write")].source for call in edited)
    assert all(not call.kernel for call in recording.calls if call not in edited)
    lines = jsonschema.Draft202012Validator(read_schema("replay"))
    for line in (recorded.parent / "file.jsonl").read_text().splitlines():
        lines.validate(json.loads(line))


async def test_every_recorded_kernel_is_tried_and_a_missing_repair_costs_its_kernel_alone(
    recorded: Path, tmp_path: Path
) -> None:
    events: list[Any] = []
    result = await run_search(
        measured_elsewhere(recorded, tmp_path / "again"), engine=Elsewhere(), on_event=events.append
    )
    assert (result.state, result.certified, result.rounds) == ("finished", True, 3)
    assert named_ideas(tmp_path / "again") == named_ideas(recorded)
    again, original = written(tmp_path / "again"), written(recorded)
    assert {name: each.source for name, each in again.items()} == {name: each.source for name, each in original.items()}
    assert {name: each.model for name, each in again.items()} == {name: each.model for name, each in original.items()}
    warned = [event["message"] for event in events if event["event"] == "warning"]
    lost = {message.partition(":")[0] for message in warned if "no repair of it was recorded" in message}
    assert lost == {name for name, each in original.items() if "// unfit for" in each.source}
    assert result.report["replay"]["not_recorded"] == 0
    jsonschema.validate(json.loads((tmp_path / "again" / "result.json").read_text()), read_schema("result"))


async def test_ideas_keep_the_lineage_that_they_were_recorded_with(recorded: Path, tmp_path: Path) -> None:
    await run_search(measured_elsewhere(recorded, tmp_path / "again"), engine=Elsewhere())
    original, again = written(recorded), written(tmp_path / "again")
    assert "r2i0v1a1" in {each.parent_id for each in original.values()}  # a repair, which is not needed elsewhere
    branches = [
        {name: branch_of(each.parent_id or "") or each.parent_id for name, each in kernels.items()}
        for kernels in (original, again)
    ]
    assert branches[0] == branches[1]


@pytest.mark.parametrize("has_times", [True, False])
async def test_the_branch_that_was_repaired_repairs_again_and_its_sibling_takes_the_recorded_edit(
    recorded: Path, tmp_path: Path, has_times: bool
) -> None:
    engine = None if has_times else Elsewhere()
    asked = measured_elsewhere(recorded, tmp_path / "again", replay_timings=has_times)
    await run_search(asked, engine=engine)
    for run in (recorded, tmp_path / "again"):
        with Archive.open_read_only(run) as archive:
            made = [each for each in archive.candidates(round=3, origin=Origin.MODEL) if each.idea_id == "r3i1"]
        assert sorted(each.id for each in made) == ["r3i1v0a0", "r3i1v0a0f1", "r3i1v1a0", "r3i1v1a1"]
        mended = next(each for each in made if each.id == "r3i1v0a0f1")
        assert mended.mending is not None
        assert (mended.mending.by, mended.mending.failed_id) == (Mender.SIBLING, "r3i1v0a0")
        assert "lacks clamp, has clamp" in mended.source


async def test_a_strict_replay_ends_where_a_repair_was_not_recorded(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(NotRecorded, match=r"file.jsonl: holds no answer to r1i1v\da1:write \(a kernel of 'golf1x1 "):
        await run_search(measured_elsewhere(recorded, tmp_path / "again", replay_strict=True), engine=Elsewhere())


async def test_a_replay_without_a_further_recorded_idea_ends_with_its_certificate(
    recorded: Path, tmp_path: Path
) -> None:
    longer, events = {"rounds": 5, "stall_rounds": None}, list[Any]()
    result = await run_search(
        measured_elsewhere(recorded, tmp_path / "again", settings=longer), engine=Elsewhere(), on_event=events.append
    )
    assert (result.certified, result.rounds) == (True, 3)
    warned = [event["message"] for event in events if event["event"] == "warning"]
    assert sum("holds no answer to r4:ideate:0 (ideas)" in message for message in warned) == 1
    assert [event["reason"] for event in events if event["event"] == "stopped"] == ["the recording has no further idea"]


async def test_replays_of_recorded_times_decide_alike_strict_or_not(recorded: Path, tmp_path: Path) -> None:
    for name, is_strict in (("first", False), ("second", False), ("strict", True)):
        asked = measured_elsewhere(recorded, tmp_path / name, replay_timings=True, replay_strict=is_strict)
        result = await run_search(asked)
        assert (result.report["replay"]["other_questions"], result.report["replay"]["not_recorded"]) == (0, 0)
        assert named_ideas(tmp_path / name) == named_ideas(recorded)
        for attempt in (0, 1):
            assert written(tmp_path / name, attempt) == written(recorded, attempt)


def ideas_of(name: str) -> Any:
    """Return ideas that no other model has."""

    def own(request: Any) -> Any:
        named = distinct_ideas(request)["ideas"]
        for idea in named:
            idea |= {key: " ".join(f"{name}{word}" for word in idea[key].split()) for key in ("title", "mechanism")}
        return {"ideas": named}

    return own


@pytest.mark.thorough
async def test_models_that_share_a_search_get_the_recorded_work(tmp_path: Path) -> None:
    models = [ScriptedModel(name, ideas=ideas_of(name[:3])) for name in ("one:a", "two:b")]
    asked = options(tmp_path, search={"rounds": 4, "ideas": 3}, rng_seed=3)
    await run_search(asked, engine=MemoryEngine(), models=models)
    result = await run_search(SearchRequest(replay=tmp_path / "run", run_dir=tmp_path / "again"), engine=Elsewhere())
    assert named_ideas(tmp_path / "again") == named_ideas(tmp_path / "run")
    models_of = [{name: each.model for name, each in written(tmp_path / run).items()} for run in ("run", "again")]
    assert models_of[0] == models_of[1]
    assert set(models_of[0].values()) == {"one:a", "two:b"}
    assert result.report["replay"]["not_recorded"] == 0
