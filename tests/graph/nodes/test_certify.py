"""Which kernel a search ends with, what it says of its end, and what goes to the bank."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.bank import Bank
from ridgeline.checkpoints.history.right_kernels import why_none
from ridgeline.checkpoints.report.certificate_rows import certificate_rows
from ridgeline.checkpoints.result import choose_best
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.stored_certificate import StoredCertificate
from ridgeline.graph.certificate.expected_time import PYTORCH_S
from ridgeline.graph.models.requests import KernelRequest
from ridgeline.graph.nodes import certify
from ridgeline.graph.search.context import EndedBy, SearchContext
from ridgeline.problems.spec import Budget
from ridgeline.tools.records.vocabulary import Origin, Purpose, RunState, Status


async def test_search_without_a_faster_kernel_ends_without_gain(search: Search) -> None:
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 0.9\n"})
    output = await search.run(context)
    assert output["outcome"] == "no_gain"
    assert not output["certified"]
    assert search.archive.run().state == "no_gain"


async def test_search_that_its_budget_ended_says_so_without_a_gain_too(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 0.9\n"})
    context = search.context(rounds=9, budget=Budget(tokens=100))
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    output = await search.run(context)
    assert (output["outcome"], output["certified"]) == ("budget", False)
    assert search.archive.run().state == "budget"


async def test_winner_that_fails_its_certificate_gives_way_to_the_next_elite(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        first = request.variation == 0 and request.idea.title.startswith("foxtrot")
        return {"source": "// fails sanitizer\n// speed 3\n" if first else f"// {request.idea.title}\n// speed 2.0\n"}

    search.model = ScriptedModel(kernel=kernel)
    output = await search.run(search.context(rounds=1))
    assert output["certified"] and output["best_speedup"] == 2.0
    certificate = search.archive.certificate_json()
    assert certificate is not None
    assert certificate["failed_before"][0]["reason"].startswith("sanitizers")
    assert len(certificate["timings"]) == 3
    assert certificate["versus_seed"]["ratio"] < 1


async def test_a_leader_that_fresh_secrets_reject_gives_way_to_the_next_and_is_named_with_the_reason(
    search: Search,
) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        first = request.variation == 0 and request.idea.title.startswith("foxtrot")
        return {
            "source": "// fails fresh secrets\n// speed 3\n" if first else f"// {request.idea.title}\n// speed 2.0\n"
        }

    search.model = ScriptedModel(kernel=kernel)
    output = await search.run(search.context(rounds=1))
    assert output["certified"] and output["best_speedup"] == 2.0
    certificate = search.archive.certificate_json()
    assert certificate is not None
    (failure,) = certificate["failed_before"]
    assert failure["reason"] == "re-verification: wrong (wrong_values): shifted (secret 2) differs"
    assert search.archive.evaluation(failure["candidate_id"], Purpose.CERTIFY).status is Status.WRONG
    assert (f"not certified: {failure['candidate_id']}", failure["reason"]) in certificate_rows(
        StoredCertificate.from_json(certificate)
    )


async def test_a_kernel_behind_the_elites_is_certified_where_all_of_them_fail(search: Search) -> None:
    search.model = ScriptedModel(
        kernel=lambda r: {"source": f"// {r.idea.title}\n// fails fresh secrets\n// speed 2\n"}
    )
    context = search.context(rounds=1, elites=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 1.5\n")
    output = await search.run(context)
    assert output["certified"] and output["best_speedup"] == 1.5
    certificate = search.archive.certificate_json()
    assert certificate is not None and len(certificate["failed_before"]) > 1


async def test_a_kernel_that_is_no_faster_than_eager_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def standing(name: str, speedup: float) -> Any:
        return SimpleNamespace(candidate=SimpleNamespace(id=name), speedup=speedup)

    async def certified(_context: object, tried: Any, _leaders: object) -> Any:
        return SimpleNamespace(passed=tried.candidate.id == "surely", reason="")

    monkeypatch.setattr(certify, "certify_candidate", certified)
    slower, faster = standing("hardly", 0.99), standing("surely", 1.04)  # ordered by the lower ends of intervals
    found = await certify._try_in_order(SimpleNamespace(), [], [slower, faster])  # type: ignore[arg-type]
    assert found.winner is faster and list(found.certificates) == ["surely"]


async def test_search_whose_elites_were_all_found_wrong_offers_the_right_kernel_behind_them(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title}\n// fails sanitizer\n// speed 2\n"})
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    output = await search.run(context)
    assert (output["outcome"], output["best_id"], output["certified"]) == ("no_gain", "seed-naive", False)
    certificate = search.archive.certificate_json()
    assert certificate is not None and not certificate["passed"]
    first = certificate["failed_before"][0]
    assert (certificate["candidate"]["id"], certificate["reason"]) == (first["candidate_id"], first["reason"])


async def test_search_all_of_whose_kernels_were_found_wrong_has_no_best_kernel(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title}\n// fails sanitizer\n// speed 2\n"})
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// fails verify")
    output = await search.run(context)
    assert (output["outcome"], output["best_id"]) == ("no_gain", None)
    assert choose_best(search.archive) is None
    assert why_none(search.archive) == "each kernel that was right in the search failed at its certificate"


@pytest.mark.parametrize("stored", ["as it is", "by an earlier version"])
async def test_search_whose_gains_were_not_confirmed_offers_the_fastest_right_kernel_with_its_own_certificate(
    search: Search, stored: str
) -> None:
    sources = iter(["fails fresh secrets\n// speed 3", "speed 2\n// certified 0.9", "speed 1.5\n// certified 1.0"])
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title}\n// {next(sources, 'speed 0.8')}\n"})
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    output = await search.run(context)
    certificate = search.archive.certificate_json()
    assert certificate is not None
    assert (output["outcome"], output["certified"], certificate["passed"]) == ("no_gain", False, False)
    assert len(certificate["failed_before"]) == 3
    if stored != "as it is":
        search.archive.save_run(RunRecord(best_id=""))
    best = choose_best(search.archive)
    assert best is not None and "certified 1.0" in best.candidate.source
    assert best.evaluation.speedup == 1.0, "the certificate's figure, not the search's"
    if stored == "as it is":
        assert output["best_id"] == certificate["candidate"]["id"] == best.candidate.id
        assert certificate["reason"] == "re-timing: the speedup's interval 0.990 to 1.010 does not exclude 1"


async def test_search_that_had_nothing_to_gain_over_pytorch_stays_at_the_floor(search: Search) -> None:
    search.engine = MemoryEngine(floor_ms=7.9)
    context = search.context()
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.9\n")
    output = await search.run(context)
    assert (output["outcome"], output["certified"]) == ("at_floor", False)
    assert search.archive.run().state == "at_floor"


async def test_elite_that_fails_its_certificate_does_not_go_to_the_bank(search: Search, tmp_path: Any) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        first = request.idea.title.startswith("foxtrot")
        return {"source": "// fails sanitizer\n// speed 3\n" if first else f"// {request.idea.title}\n// speed 2.0\n"}

    search.model = ScriptedModel(kernel=kernel)
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        context.bank = bank
        output = await search.run(context)
        sources = [seed.source for seed in bank.seeds("rowwise", "test-1", 9)]
    assert output["certified"]
    assert len(sources) == 1
    assert "speed 2.0" in sources[0]


async def test_elites_go_to_the_bank_and_seed_the_next_search(search: Search, tmp_path: Any) -> None:
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        context = search.context(rounds=1)
        context.bank = bank
        await search.run(context)
        seeds = bank.seeds("rowwise", "test-1", 5)
    assert seeds
    assert all(seed.origin is Origin.BANK for seed in seeds)


async def test_the_certificate_says_when_it_was_begun_and_when_it_had_ended(search: Search) -> None:
    await search.run(search.context(rounds=1))
    certificate = search.archive.certificate_json()
    assert certificate is not None
    begun, ended = (datetime.fromisoformat(certificate[name]) for name in ("date", "ended_at"))
    assert begun <= ended
    rows = dict(certificate_rows(StoredCertificate.from_json(certificate)))
    assert (rows["begun"], rows["ended"]) == (certificate["date"], certificate["ended_at"])


async def test_the_certificate_is_announced_with_its_phases_and_the_time_that_it_may_take(search: Search) -> None:
    await search.run(search.context(rounds=1))
    told = [event["event"] for event in search.events]
    [begun] = search.events_named("certification")
    assert max(place for place, name in enumerate(told) if name == "round_done") < told.index("certification")
    assert told.index("certification") < told.index("certify")
    steps = [event for event in search.events_named("certify") if "place" in event]
    assert [event["place"] for event in steps] == [(number, 9) for number in range(1, 10)]
    left_s = [event["left_s"] for event in steps]
    assert left_s == pytest.approx(sorted(left_s, reverse=True), rel=0.01)
    assert begun["left_s"] >= left_s[0] > PYTORCH_S


async def test_a_certificate_that_no_kernel_is_fast_enough_for_is_not_announced(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 0.9\n"})
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    await search.run(context)
    assert not search.events_named("certification")


async def test_a_hosts_search_is_over_only_once_its_files_are_written(search: Search) -> None:
    seen = []

    def finish(_: SearchContext, state: RunState) -> None:
        seen.append((state, search.archive.run().state))

    await search.run(dataclasses.replace(search.context(rounds=1), ended_by=EndedBy.HOST, finish=finish))
    assert seen == [("finished", None)], "what is killed while it writes them can be resumed"


@pytest.mark.parametrize(("ended_by", "state"), [(EndedBy.NOBODY, "finished"), (EndedBy.SESSION, None)])
async def test_certify_stores_the_end_of_a_search_that_nobody_else_ends(
    search: Search, ended_by: EndedBy, state: str | None
) -> None:
    await search.run(dataclasses.replace(search.context(rounds=1), ended_by=ended_by))
    assert search.archive.run().state == state


@pytest.mark.parametrize("ended_by", [EndedBy.NOBODY, EndedBy.SESSION])
async def test_a_stored_certificate_is_given_as_it_is_where_the_session_ends_the_search(
    search: Search, ended_by: EndedBy
) -> None:
    context = dataclasses.replace(search.context(rounds=1), ended_by=ended_by)
    first = await search.run(context)
    search.events.clear()
    second = await search.run(context)
    assert (second["certified"], second["best_id"]) == (True, first["best_id"])
    assert bool(search.events_named("certification")) == (ended_by is EndedBy.NOBODY)
