"""What `ridgeline show --profile` prints of a kernel."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.graph.cli.commands.show_words import asked_for
from tests.graph.conftest import Search

from ridgeline.checkpoints.run_record import OFFLINE, RunRecord
from ridgeline.graph.cli.commands.show import execute
from ridgeline.graph.models.requests import COMPOSER
from ridgeline.graph.models.search_model import AskedAtOnce
from ridgeline.tools.errors import InputError
from ridgeline.tools.records.results import Evaluation, Profile, StageTime
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status
from ridgeline.tools.wording import ratio_words


async def test_profile_of_a_kernel_is_one_paragraph_and_its_counters_are_shown_on_request(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    await search.run(search.context(rounds=1))
    key, _ = search.archive.records("profiles")[0]
    [best] = [e.candidate_id for e in search.archive.evaluations() if e.key == key]
    stage = StageTime(name="gemm", ms=0.5, share=0.59)
    profile = Profile(
        bound="memory",
        fraction_of_floor=None,
        achieved_gbps=None,
        achieved_gflops=None,
        details={"spills": 3.0},
        paragraph="It waits for memory.",
        stages=(stage,),
    )
    found = search.archive.evaluation(best)
    assert found and found.speedup and found.timing and found.timing.median_ms
    profile = replace(profile, median_ms=found.timing.median_ms)
    search.archive.save("profiles", key, best, profile)
    run = str(search.archive.path.parent)

    def told(**wanted: object) -> str:
        capsys.readouterr()
        asked = {"run": run, "json": False, "profile": best, "counters": False} | wanted
        assert execute(asked_for(**asked)) == 0
        return capsys.readouterr().out

    figure = ratio_words(found.speedup, found.speedup_interval, unit="eager")
    head = f"{best}: in the search {figure}, {found.timing.median_ms:.4f} ms\n"
    head += "profiled in the search; its time is the search's own, "
    body = ":\nIt waits for memory.\n  gemm                      59%  0.5 ms a call while profiled\n"
    assert told() == f"{head}{found.timing.median_ms:.4g} ms{body}"
    for by, is_apart in ((1.3, False), (0.8, False), (2.0, True), (0.5, True)):
        busy = replace(found, timing=replace(found.timing, median_ms=by * found.timing.median_ms))
        assert busy.timing
        search.archive.add_evaluation(busy)
        warned = f", not comparable with the {busy.timing.median_ms:.4g} ms in the search: perhaps the machine was busy"
        assert (warned in told()) is is_apart and ("not comparable" in told()) is is_apart, by
        assert "its time is where eager PyTorch takes what it took by itself, " in told()
    of_older = replace(profile, median_ms=None, fraction_of_floor=0.1 / 7.77)  # of the memory floor
    search.archive.save("profiles", key, best, of_older)
    assert "by itself, 7.77 ms" in told()
    search.archive.save("profiles", key, best, replace(of_older, fraction_of_floor=None))
    assert "\nprofiled in the search:\n" in told()
    search.archive.save("profiles", key, best, profile)
    search.archive.add_evaluation(found)
    assert told(counters=True).endswith("  spills = 3\n")
    assert "details" not in json.loads(told(json=True))
    assert json.loads(told(json=True, counters=True))["details"] == {"spills": 3.0}


def profile_of(search: Search, candidate_id: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what `show --profile` prints of a kernel of the search."""
    capsys.readouterr()
    run = str(search.archive.path.parent)
    assert execute(asked_for(run=run, json=False, profile=candidate_id, counters=False)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("left_out", "why"), [(None, "the offline model reads no profiles"), ("diagnosis", "goes without diagnosis")]
)
async def test_the_profile_of_a_winner_is_its_certificates_where_the_search_made_none(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, left_out: str | None, why: str
) -> None:
    if left_out is None:
        monkeypatch.setattr("ridgeline.graph.nodes.baseline.ensure_covered", lambda *_: None)
    settings = {"rounds": 1, "without": [left_out] if left_out else []}
    model = AskedAtOnce(search.model, COMPOSER if left_out is None else None)
    output = await search.run(search.context(model, **settings))
    models = (OFFLINE,) if left_out is None else ("scripted",)
    search.archive.save_run(RunRecord(problem={"name": "toy"}, settings=settings, models=models))
    assert output["certified"]
    again = search.archive.evaluation(output["best_id"], Purpose.CERTIFY)
    assert again and again.timing
    of = f"\nprofiled for the certificate; its time is of the certificate's timings, {again.timing.median_ms:.4g} ms:\n"
    assert of in profile_of(search, output["best_id"], capsys)
    other = next(e.candidate_id for e in search.archive.ranking() if e.candidate_id != output["best_id"])
    with pytest.raises(InputError) as refused:
        profile_of(search, other, capsys)
    assert why in str(refused.value)
    assert str(refused.value).endswith(f"; profiles there are of {output['best_id']}")


async def test_the_profile_of_a_tuned_kernel_is_found(search: Search, capsys: pytest.CaptureFixture[str]) -> None:
    await search.run(search.context(rounds=1))
    best = search.archive.ranking()[0]
    search.archive.add_candidate(replace(search.archive.candidate(best.candidate_id), id="r1i0v0a0t1"))
    tuned = replace(best, candidate_id="r1i0v0a0t1", purpose=Purpose.TUNE, key="of-the-point")
    search.archive.add_evaluation(tuned)
    fields = {"fraction_of_floor": None, "achieved_gbps": None, "achieved_gflops": None}
    profile = Profile(bound="memory", paragraph="It waits for memory.", **fields)
    search.archive.save("profiles", "of-the-point", "r1i0v0a0t1", profile)
    assert profile_of(search, "r1i0v0a0t1", capsys).endswith(":\nIt waits for memory.\n")


async def test_why_a_kernel_has_no_profile_is_told_as_it_is(search: Search, capsys: pytest.CaptureFixture[str]) -> None:
    await search.run(search.context(rounds=1, without=["diagnosis"]))
    [best] = [e.candidate_id for e in search.archive.ranking()[:1]]
    fields = {"status": Status.WRONG, "reason_code": ReasonCode.WRONG_VALUES, "reason": "off"}
    wrong = Evaluation(key="k", candidate_id="wrong", purpose=Purpose.SEARCH, **fields)
    for name in ("wrong", "unjudged"):
        search.archive.add_candidate(replace(search.archive.candidate(best), id=name))
    search.archive.add_evaluation(wrong)
    for name, said in (("wrong", "it ended as wrong, and only"), ("unjudged", "it is not judged")):
        with pytest.raises(InputError, match=f"{name} was not profiled: {said}"):
            profile_of(search, name, capsys)


async def test_profile_of_a_kernel_that_has_none_is_one_line(search: Search) -> None:
    await search.run(search.context(rounds=1))
    run = str(search.archive.path.parent)
    with pytest.raises(InputError, match="no kernel 'nothing'"):
        execute(asked_for(run=run, json=False, profile="nothing", counters=False))
    with pytest.raises(InputError, match="needs the run"):
        execute(asked_for(run=None, json=False, profile="nothing", counters=False))
