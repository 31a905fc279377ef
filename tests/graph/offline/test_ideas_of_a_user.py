"""What the offline model reads of a user's idea, and what `ridgeline idea` says of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.graph.offline.subjects import CPU, HOPPER, NARROW, WIDE, subject_of

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.steering import Steering, SteerKind
from ridgeline.graph import cli
from ridgeline.graph.search.ideas.not_taken_up import not_taken_up
from ridgeline.graph.search.ideas.offline_ideas import read_by_offline
from ridgeline.graph.state import GRAPH_VERSION
from ridgeline.tools.records.problem import DeviceFact

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
NONSENSE = "x y z of a kind"


def begun(run: Path, reference: Any, *models: str, facts: tuple[DeviceFact, ...] | None = None) -> str:
    """Make a run that was stopped after its baselines, of these models; return its path."""
    with Archive.open(run / FILE_NAME) as archive:
        archive.save_run(
            RunRecord(
                problem={"name": "quickstart", "interface": "c", "tolerance": "fp32"},
                device=CPU,
                models=models,
                settings={"rounds": 2},
                graph_version=GRAPH_VERSION,
                state="stopped",
                facts=facts,
            )
        )
        archive.save_description(reference.description)
    return str(run)


@pytest.mark.parametrize("device", [CPU, HOPPER])
def test_every_structure_is_named_by_its_own_name(references: Any, products: Any, device: Any) -> None:
    for subject in (subject_of(references["quickstart"], device), subject_of(products["square"], device)):
        known = read_by_offline("", subject).known
        assert known
        for name in known:
            assert name in read_by_offline(f"try {name} next", subject).named


def test_an_idea_of_which_the_keyless_model_knows_no_structure_is_refused_with_those_that_it_knows(
    references: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = begun(tmp_path / "run", references["quickstart"], "offline")
    assert cli.main(["idea", run, NONSENSE]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "idea: would not be tried: the offline model" in err and "row-buffer, poly-math" in err
    with Archive.open_read_only(Path(run)) as archive:
        assert not Steering(archive).told(SteerKind.IDEA)


def test_of_an_idea_that_names_a_structure_the_line_says_what_is_carried_out(
    references: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = begun(tmp_path / "run", references["quickstart"], "offline")
    assert cli.main(["idea", run, "use several accumulators"]) == 0
    assert capsys.readouterr().out.endswith("the offline model carries out of it: accumulators\n")


def test_an_idea_that_comes_before_the_reference_is_described_says_that_it_may_not_be_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for models, told in ((("offline",), True), (("openai:o3",), False)):
        run = tmp_path / models[0].replace(":", "-")
        with Archive.open(run / FILE_NAME) as archive:
            archive.save_run(
                RunRecord(
                    problem={"name": "quickstart"}, device=CPU, models=models, settings={"rounds": 2},
                    graph_version=GRAPH_VERSION, state="stopped",
                )
            )  # fmt: skip
        assert cli.main(["idea", str(run), NONSENSE]) == 0
        assert ("ridgeline show says whether it tries the idea" in capsys.readouterr().out) is told


@pytest.mark.parametrize(("facts", "code"), [(WIDE, 0), (NARROW, 2)])
def test_narrower_vectors_are_carried_out_where_the_runs_device_has_wider_ones(
    references: Any, tmp_path: Path, facts: tuple[DeviceFact, ...], code: int
) -> None:
    run = begun(tmp_path / "run", references["quickstart"], "offline", facts=facts)
    assert cli.main(["idea", run, "use 256-bit vectors against the lower clock"]) == code


@pytest.mark.parametrize(
    ("idea", "named"),
    [
        ("use float16 accumulators", ()),
        ("half-precision accumulators", ()),
        ("keep the accumulators in double precision", ()),
        ("bf16 for the accumulators", ()),
        ("16-bit accumulators, and prefetch the next row", ("prefetch",)),
        ("use several float32 accumulators", ("accumulators",)),
        ("4 fp32 accumulators", ("accumulators",)),
        ("independent fp32 accumulators", ("accumulators",)),
        ("more accumulators", ("accumulators",)),
    ],
)
def test_accumulators_of_another_type_are_not_taken_for_several(
    references: Any, idea: str, named: tuple[str, ...]
) -> None:
    assert read_by_offline(idea, subject_of(references["quickstart"], CPU)).named == named


def test_a_type_of_sums_names_no_tensor_cores(products: Any) -> None:
    subject = subject_of(products["square"], HOPPER, "tf32")
    assert read_by_offline("half precision accumulators", subject).named == ()
    assert read_by_offline("tensor cores in half precision", subject).named == ("tensor-cores",)


def test_beside_a_language_model_every_idea_is_taken(
    references: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = begun(tmp_path / "run", references["quickstart"], "offline", "openai:o3")
    assert cli.main(["idea", run, NONSENSE]) == 0
    assert "the offline model" not in capsys.readouterr().out


def test_an_idea_that_was_told_all_the_same_is_left_over_with_the_reason(
    references: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = begun(tmp_path / "run", references["quickstart"], "offline")
    with Archive.open(Path(run), create=False) as archive:
        Steering(archive).add_idea(NONSENSE)
        (told,) = not_taken_up(archive)
    assert told.startswith(f"not tried: the idea '{NONSENSE}': the offline model") and "knows no structure" in told
    assert cli.main(["show", run]) == 0
    assert told in (shown := capsys.readouterr().out) and "not taken up yet" not in shown


def test_the_readmes_example_is_an_idea_that_the_offline_model_reads(references: Any) -> None:
    (example,) = re.findall(r'^ridgeline idea \S+ "([^"]+)"', (ROOT / "README.md").read_text(), re.MULTILINE)
    for name in ("quickstart", "cosine"):  # of the second no intermediate is kept
        assert read_by_offline(example, subject_of(references[name], CPU)).named, name
