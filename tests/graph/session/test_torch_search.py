"""One search through the torch interface, to its certificate: the local engine, real extensions, a scripted model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.graph.scripted_model import ScriptedModel

from ridgeline import SearchOptions, run_search
from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.session.problem import find_problem
from ridgeline.problems.spec import ProblemSpec, load_problem
from ridgeline.tools.records.vocabulary import Origin, Status

pytestmark = [pytest.mark.sandboxed, pytest.mark.timing]

SHIPPED = "rms_norm_gate_torch"
FAST_EXP = "std::exp(-gate_row[i])"
SLOW_EXP = "std::exp(static_cast<long double>(-gate_row[i]))"


def _problem_with_a_slow_seed(folder: Path) -> tuple[ProblemSpec, str]:
    """Return the shipped problem, its seed kernel made slow, and that kernel as it ships."""
    home = find_problem(SHIPPED).path.parent
    (shipped,) = [path.read_text() for path in (home / "seeds").glob("*.cpp")]
    assert FAST_EXP in shipped
    (folder / "seeds").mkdir(parents=True)
    (folder / "reference.py").write_text((home / "reference.py").read_text())
    (folder / "seeds" / "slow.cpp").write_text(shipped.replace(FAST_EXP, SLOW_EXP))
    data = {"name": "gate", "reference": "reference.py", "interface": "torch", "seeds": ["seeds/*.cpp"]}
    (folder / "problem.yaml").write_text(yaml.safe_dump(data))
    return load_problem(folder / "problem.yaml"), shipped


@pytest.mark.slow
@pytest.mark.timeout(1500)  # three more builds of a torch extension, for the certificate's other shapes
async def test_torch_search_ends_with_a_certified_winner_and_says_what_was_skipped(tmp_path: Path) -> None:
    problem, shipped = _problem_with_a_slow_seed(tmp_path / "problem")
    changes = {"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 0, "floor_margin": None}
    options = SearchOptions(
        problem=problem, run_dir=tmp_path / "run", settings=problem.search.model_copy(update=changes)
    )
    model = ScriptedModel(kernel=lambda _request: {"source": shipped, "notes": "a vector exp"})
    result = await run_search(options, models=[model])
    with Archive.open(tmp_path / "run", create=False) as archive:
        (written,) = archive.candidates(origin=Origin.MODEL)
        evaluation, certificate = archive.evaluation(written.id), archive.certificate_json()
    assert evaluation is not None and evaluation.status is Status.OK, evaluation
    assert certificate is not None
    assert (result.certified, result.best_id, certificate["reason"]) == (True, written.id, "")
    assert certificate["sanitizer"]["skipped"]
    assert [timing["status"] for timing in certificate["timings"]] == ["ok"] * 3
    assert certificate["versus_seed"]["blocks"] >= 20
    report = json.loads((tmp_path / "run" / "result.json").read_text())
    assert report["best"]["id"] == written.id
    assert report["best"]["speedup"] > 1
    assert report["best"]["speedup_vs_seed_ci95"]
    assert (tmp_path / "run" / "best.cpp").read_text() == result.best_source == shipped
