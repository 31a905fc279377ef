"""Recordings that no search wrote: refused when they are read, in one line that says where and what is wrong."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.graph.cli.command_line import assert_one_line, ridgeline
from tests.graph.session.test_replay import a_recorded_search, decisions, replay

from ridgeline.checkpoints.recording.file import MOST_BYTES, MOST_LINE_BYTES, read_recording, write_recording
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import InputError, RunError, StorageError

pytestmark = pytest.mark.long

Lines = list[dict[str, Any]]
LONG = "a number of 5000 digits"
"""Stands for the number, which Python refuses to write."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two models, with an idea and a seed that came while it ran."""
    folder = tmp_path_factory.mktemp("recorded")
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, a_recorded_search(folder)).result()


@pytest.fixture(scope="module")
def lines(recorded: Path) -> Lines:
    file = recorded.parent / "recorded.jsonl"
    write_recording(recorded, file)
    return [json.loads(line) for line in file.read_bytes().split(b"\n") if line]


def first(lines: Lines, what: str, **where: Any) -> dict[str, Any]:
    """Return the record of the first line of a kind whose record has these values."""
    found = (line["record"] for line in lines if line["what"] == what)
    return next(each for each in found if all(each[name] == value for name, value in where.items()))


def measured(lines: Lines, what: str, status: str | None = "ok") -> dict[str, Any]:
    """Return the first recorded result of a kind."""
    found = (line["record"] for line in lines if line["what"] == "measurement" and line["record"]["what"] == what)
    return next(each["result"] for each in found if status is None or each["result"]["status"] == status)


def spoiled(path: Path, lines: Lines, spoil: Callable[[Lines], object]) -> Path:
    altered = copy.deepcopy(lines)
    spoil(altered)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in altered).replace(f'"{LONG}"', "9" * 5000))
    return path


def told(**fields: Any) -> dict[str, Any]:
    return {
        "what": "told",
        "record": {"id": "idea-7", "kind": "idea", "name": "", "text": "", "from_round": 1} | fields,
    }


DAMAGE: dict[str, tuple[Callable[[Lines], object], str]] = {
    "an id of 5000 digits": (
        lambda x: first(x, "call").update(call_id=f"r1i0v{'9' * 5000}a0:write"),
        r"line 2: .*call_id: 'r1i0v9+' is no id",
    ),
    "an id of no call": (lambda x: first(x, "call").update(call_id="mine"), "line 2: .*'mine' is no id of a call"),
    "a round of ten digits": (
        lambda x: first(x, "call").update(call_id="r1234567890:ideate:0"),
        "line 2: .* is no id of a call",
    ),
    "a number of 5000 digits": (
        lambda x: first(x, "call")["usage"].update(input_tokens=LONG),
        "line 2: .*a number is too large",
    ),
    "a negative usage": (
        lambda x: first(x, "call")["usage"].update(input_tokens=-(10**18)),
        "line 2: .*input_tokens: -1.* is no number of tokens",
    ),
    "a negative price": (lambda x: first(x, "call")["usage"].update(usd=-5.0), "usd: -5.0 is no amount"),
    "a price without bounds": (lambda x: first(x, "call")["usage"].update(usd=1e999), "a number is not finite"),
    "a reply without a text": (lambda x: first(x, "call")["reply"].clear(), "reply: has no text"),
    "a question about no idea": (
        lambda x: first(x, "call").update(question={"idea": [1], "variation": 0}),
        r"question: idea: \[1\] is no str",
    ),
    "a question with a truth value for a number": (
        lambda x: first(x, "call").update(question={"variation": True}),
        "question: variation: True is no int",
    ),
    "a question about no kernels": (
        lambda x: first(x, "call").update(question={"elites": [1]}),
        r"question: elites: \[1\] is no list",
    ),
    "half a surrogate in an id": (
        lambda x: first(x, "call").update(call_id="r1:ideate:0:\ud800"),
        "line 2: .*surrogates",
    ),
    "… in a reply": (lambda x: first(x, "call")["reply"].update(text="\ud800"), "line 2: .*surrogates"),
    "… in an error": (lambda x: first(x, "call").update(error="\ud800"), "line 2: .*surrogates"),
    "… in a key": (lambda x: first(x, "call")["usage"].update({"\ud800": 1}), "line 2: .*surrogates"),
    "a timing without anything": (lambda x: measured(x, "Timing").clear(), r"line \d+: .*'?status"),
    "a median of 0 ms": (lambda x: measured(x, "Timing").update(median_ms=0.0), r"line \d+: .*timing: 0.0 is no time"),
    "a median of no number": (lambda x: measured(x, "Timing").update(median_ms="nan"), "timing: nan is no time"),
    "a median without bounds": (lambda x: measured(x, "Timing").update(median_ms="inf"), "timing: inf is no time"),
    "a speedup that is missing": (lambda x: measured(x, "Timing").update(speedup=None), "needs a median and a speedup"),
    "an interval below 0": (lambda x: measured(x, "Timing").update(speedup_ci95=[-1.0, 2.0]), "-1.0 is no time"),
    "a status of no kind": (lambda x: measured(x, "Verdict").update(status="nope"), r"line \d+: .*'nope'"),
    "a failure without a code": (lambda x: measured(x, "Verdict").update(status="wrong"), "needs a reason code"),
    "a comparison of 0": (lambda x: measured(x, "Comparison", None).update(ratio=0.0), "comparison: 0.0 is no time"),
    "a measurement of no kind": (lambda x: first(x, "measurement").update(what="Guess"), "'Guess' is no measurement"),
    "a kernel of no hash": (lambda x: first(x, "measurement").update(source_sha256="../x"), "'../x' is no hash"),
    "a search without eager": (
        lambda x: first(x, "run")["baselines"].update(entries=[]),
        "line 1: .*eager PyTorch was not timed",
    ),
    "eager in 0 ms": (
        lambda x: first(x, "run")["baselines"]["entries"][0].update(median_ms=0.0),
        "line 1: .*eager: 0.0 is no time",
    ),
    "a search without models": (lambda x: first(x, "run").update(models=[]), "line 1: .*models: there is none"),
    "a graph of nothing": (
        lambda x: first(x, "run")["description"].update(reference_graph={"nodes": [1]}),
        "line 1: .*is no graph",
    ),
    "an empty idea": (lambda x: x.append(told(text="  ")), r"line \d+: .*text: is empty"),
    "a seed of no name": (
        lambda x: x.append(told(kind="seed", name="seed-../../x", text="int x;")),
        "name: 'seed-../../x' is no id",
    ),
    "a given kernel of a later round": (lambda x: first(x, "given").update(round=3), "round: is not 0"),
    "a given kernel of a path": (lambda x: first(x, "given").update(id="seed-../x"), "'seed-../x' is no id"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_is_one_line_that_says_where_and_what(lines: Lines, tmp_path: Path, how: str) -> None:
    spoil, says = DAMAGE[how]
    with pytest.raises(RunError, match=says) as error:
        read_recording(spoiled(tmp_path / "spoiled.jsonl", lines, spoil))
    assert str(error.value).startswith(f"{tmp_path / 'spoiled.jsonl'}: line ")
    assert "\n" not in str(error.value) and len(str(error.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda run: run["budget"].update(usd="lots"), "its budget cannot be read: usd"),
        (lambda run: run["settings"].update(nested={}), "its settings cannot be read: nested: unknown key"),
        (lambda run: run["problem"].update(name="../../x"), "its problem cannot be read: name"),
        (lambda run: run.update(reference_source="def ("), "its reference: line 1"),
        (lambda run: run.update(reference_source="x = 1"), "its reference: has no `Model`"),
    ],
)
@pytest.mark.parametrize("replay_timings", [False, True])
def test_a_recorded_request_that_is_refused_names_the_recording(
    lines: Lines, tmp_path: Path, spoil: Any, says: str, replay_timings: bool
) -> None:
    file = spoiled(tmp_path / "spoiled.jsonl", lines, lambda x: spoil(first(x, "run")))
    asked = replay(file, tmp_path / "again", replay_timings=replay_timings)
    with pytest.raises(InputError, match=f"^{file}: {says}"):
        asked.resolve(is_local=False)
    assert not (tmp_path / "again").exists()


def test_a_damaged_file_ends_the_command_with_code_2(lines: Lines, tmp_path: Path) -> None:
    file = spoiled(tmp_path / "spoiled.jsonl", lines, lambda x: measured(x, "Timing").update(median_ms="nan"))
    done = ridgeline("run", "--replay", str(file), "--replay-timings", "--run-dir", str(tmp_path / "again"), "--plain")
    assert_one_line(done, f"{file}: line ", "timing: nan is no time")


def test_a_file_beyond_all_recordings_is_not_read(lines: Lines, tmp_path: Path) -> None:
    for size, says in ((MOST_BYTES + 1, "bytes, a recording"), (MOST_LINE_BYTES + 2, "line 1: .*longer than")):
        file = tmp_path / "sparse.jsonl"
        with file.open("wb") as opened:
            os.truncate(opened.fileno(), size)
        with pytest.raises(RunError, match=says):
            read_recording(file)


def test_a_view_in_the_place_of_a_table_is_refused(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "run")
    with closing(sqlite3.connect(tmp_path / "run" / "archive.sqlite")) as archive:
        columns = ", ".join(row[1] for row in archive.execute("PRAGMA table_xinfo(ideas)"))
        archive.executescript(
            f"""CREATE TABLE kept AS SELECT {columns} FROM ideas; DROP TABLE ideas; CREATE VIEW Ideas AS
            WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT kept.* FROM n, kept;"""
        )
    for path in (tmp_path / "run", tmp_path / "run" / "archive.sqlite"):
        with pytest.raises(StorageError, match="ideas is a view, not a table"):
            read_recording(path)


async def test_a_stop_in_a_recording_is_not_obeyed(lines: Lines, tmp_path: Path) -> None:
    file = spoiled(tmp_path / "told.jsonl", lines, lambda x: x.append(told(id="stop-1", kind="stop")))
    result = await run_search(replay(file, tmp_path / "again"))
    assert result.state == "finished"


async def test_a_line_may_hold_what_some_take_for_the_end_of_one(lines: Lines, tmp_path: Path) -> None:
    words = "a line\u2028and a page\u2029and a next\u0085"
    file = tmp_path / "odd.jsonl"
    altered = copy.deepcopy(lines)
    first(altered, "given")["tunables"] = {"note": words}
    file.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in altered))
    assert read_recording(file).given[0].tunables == {"note": words}


async def test_a_sound_recording_passes_as_a_file_and_as_a_run(recorded: Path, lines: Lines, tmp_path: Path) -> None:
    file = spoiled(tmp_path / "sound.jsonl", lines, lambda _: None)
    assert read_recording(file) == read_recording(recorded)
    await run_search(SearchRequest(replay=file, replay_timings=True, run_dir=tmp_path / "again"))
    assert decisions(tmp_path / "again")["ideas"] == decisions(recorded)["ideas"]
