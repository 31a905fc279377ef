"""suite.json: what is in it, and what several searches come to together."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from ridgeline.checkpoints.result import read_schema
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.checkpoints.runs.suite import (
    Row,
    RowState,
    Suite,
    SuiteState,
    find_suite,
    read_suite,
    scores,
    write_suite,
)
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.vocabulary import RunState


def row(name: str, speedup: float | None = None, vs_best: float | None = None, **fields: object) -> Row:
    made = Row(name=name, problem=f"/{name}/problem.yaml", run=f"01-{name}")
    return replace(
        made, correct=speedup is not None, speedup=speedup, speedup_vs_best=vs_best, **{"state": "finished"} | fields
    )


ROWS = (
    row("a", 4.0, 2.0, certified=True, precision_class="fp32"),
    row("b", 1.0, 0.5),
    row("c", 0.25, None, state="no_gain"),
    row("d", state="refused", reason="reference.py: forward() is nondeterministic"),
    row("e", state="planned"),
)


def test_fast_p_counts_every_problem_and_the_mean_the_correct_ones() -> None:
    found = scores(ROWS)
    assert {k: found[k] for k in ("problems", "ended", "correct", "certified")} == {
        "problems": 5, "ended": 3, "correct": 3, "certified": 1,
    }  # fmt: skip
    assert found["over_eager"]["fast_p"] == {"0": 3 / 5, "1": 1 / 5, "1.5": 1 / 5, "2": 1 / 5}, "above p, not at it"
    assert math.isclose(found["over_eager"]["geometric_mean"], 1.0)
    assert found["over_eager"]["kernels"] == 3
    assert found["over_best_baseline"]["fast_p"] == {"0": 2 / 5, "1": 1 / 5, "1.5": 1 / 5, "2": 0}
    assert found["over_best_baseline"]["kernels"] == 2


def test_without_a_kernel_there_is_no_mean() -> None:
    assert scores(ROWS[3:])["over_eager"] == {
        "fast_p": {"0": 0, "1": 0, "1.5": 0, "2": 0},
        "geometric_mean": None,
        "kernels": 0,
    }


def test_a_search_that_ended_fills_its_row_from_its_result() -> None:
    begun = row("a", state="running", reason="was refused before")
    best = {"speedup": 1.5, "speedup_ci95": [1.4, None], "speedup_vs_best": 1.2, "precision_class": "tf32", "id": "r1"}
    ended = begun.ended({"best": best}, state="stalled", certified=True)
    assert ended == row("a", 1.5, 1.2, state="stalled", certified=True, precision_class="tf32")
    told = begun.ended({"best": best | {"speedup_ci95": [1.4, 1.7]}}, state="stalled", certified=True)
    assert told.speedup_ci95 == (1.4, 1.7)
    assert begun.ended({"best": None}, state="no_gain", certified=False) == row("a", state="no_gain")


def test_suite_json_is_what_its_schema_says_and_reads_back(tmp_path: Path) -> None:
    rows = (*ROWS, row("timed", 1.5, speedup_ci95=(1.4, 1.7)))
    rows = (*rows, replace(row("path"), problem=os.fsdecode(b"q\xff\xfe/problem.yaml"), reason="q\udcff: no kernel"))
    suite = Suite(options={"rounds": 2, "model": ["offline"]}, rows=rows, state="stopped")
    write_suite(tmp_path, suite)
    content = json.loads((tmp_path / "suite.json").read_text())
    schema = read_schema("suite")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(content, schema, cls=jsonschema.Draft202012Validator)
    assert set(content) == set(schema["properties"])
    fields = schema["properties"]["problems"]["items"]["properties"]
    assert set(content["problems"][0]) == set(fields)
    assert set(fields["state"]["enum"]) == set(RowState) > set(RunState)
    assert set(schema["properties"]["state"]["enum"]) == set(SuiteState)
    assert read_suite(tmp_path) == suite


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is damaged"),
        ('{"schema_version": 2}', "is of version 2"),
        ('{"schema_version": true}', "schema_version is true, not a whole number"),
        ("null", r"is damaged: it holds null in the place of an object"),
        ("{}", "is damaged: it has no schema_version"),
        ('{"schema_version": 1}', "is damaged: it has no problems"),
        ('{"schema_version": 1, "problems": {}}', "problems is {}, not a list"),
        ('{"schema_version": 1, "problems": [3], "options": {}, "state": ""}', "problem 1 holds 3 in the place of"),
        ('{"schema_version": 1, "problems": [{}], "options": {}, "state": ""}', "problem 1 has no name"),
        ("[" * 100_000, "is damaged: it is nested too deep"),
        ('{"schema_version": 1, "problems": [], "options": {}, "state": "lost"}', "it: 'lost' is no state"),
        (b"\xff\xfe\0binary\x80", "is damaged: "),
        (None, "holds no suite"),
    ],
)
def test_a_folder_without_a_sound_suite_is_one_line(tmp_path: Path, text: str | bytes | None, says: str) -> None:
    if text is not None:
        (tmp_path / "suite.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RunError, match=says) as caught:
        read_suite(tmp_path)
    assert "\n" not in str(caught.value)


ROW_FIELDS: list[dict[str, object]] = [
    {"state": "lost"},
    {"state": ["finished"]},
    {"speedup": "2x"},
    {"speedup": True},
    {"speedup_vs_best": False},
    {"speed": 2},
    {"correct": "yes"},
    {"certified": 1},
    {"reason": None},
    {"precision_class": 32},
    {"speedup_ci95": [1.0]},
    {"speedup_ci95": [1.0, "2"]},
    {"run": "01\0"},
    {"problem": "p\0"},
]


@pytest.mark.parametrize("field", ROW_FIELDS)
def test_a_row_that_no_suite_writes_is_one_line(tmp_path: Path, field: dict[str, object]) -> None:
    write_suite(tmp_path, Suite(rows=ROWS))
    content = json.loads((tmp_path / "suite.json").read_text())
    content["problems"][0] |= field
    (tmp_path / "suite.json").write_text(json.dumps(content))
    with pytest.raises(RunError, match=r"is damaged: problem 1.*restore it or begin a new suite"):
        read_suite(tmp_path)


@pytest.mark.parametrize("run", ["../elsewhere", "01/../../elsewhere", "{outside}", ".", "linked"])
def test_a_search_outside_of_its_suite_is_refused(tmp_path: Path, run: str) -> None:
    suite, outside = tmp_path / "suite", tmp_path / "outside"
    outside.mkdir()
    suite.mkdir()
    write_suite(suite, Suite(rows=(replace(ROWS[0], run=run.format(outside=outside)),)))
    (suite / "linked").symlink_to(outside)
    with pytest.raises(RunError, match="does not lie in the suite"):
        read_suite(suite)


def test_the_newest_unfinished_suite_that_nobody_runs_is_found(tmp_path: Path) -> None:
    for age, (name, state) in enumerate(
        [("done", "finished"), ("held", "running"), ("new", "running"), ("old", "stopped")]
    ):
        (tmp_path / name).mkdir()
        write_suite(tmp_path / name, Suite(rows=ROWS, state=state))
        os.utime(tmp_path / name / "suite.json", (1e9 - age, 1e9 - age))
    with lock_run(tmp_path / "held"):
        assert find_suite(tmp_path, "") == tmp_path / "new"
    assert find_suite(tmp_path, "done") == find_suite(tmp_path, str(tmp_path / "done")) == tmp_path / "done"
    with pytest.raises(RunError, match="missing: no such suite"):
        find_suite(tmp_path, "missing")
    with pytest.raises(RunError, match="no unfinished suite"):
        find_suite(tmp_path / "done", "")


def test_a_damaged_suite_does_not_hide_an_older_unfinished_one(tmp_path: Path) -> None:
    for age, name in enumerate(("damaged", "old")):
        (tmp_path / name).mkdir()
        write_suite(tmp_path / name, Suite(rows=ROWS))
        os.utime(tmp_path / name / "suite.json", (1e9 - age, 1e9 - age))
    (tmp_path / "damaged" / "suite.json").write_text("{")
    assert find_suite(tmp_path, "") == tmp_path / "old"
    write_suite(tmp_path / "old", Suite(rows=ROWS, state="finished"))
    with pytest.raises(RunError, match=r"damaged/suite.json: is damaged"):
        find_suite(tmp_path, "")
