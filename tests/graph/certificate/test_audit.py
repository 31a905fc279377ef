"""Which gains are audited, and what an audit makes of them."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.bank import Bank
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.results import Verdict
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status


async def test_gains_beyond_three_times_the_best_baseline_are_audited(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 4.5\n"})
    output = await search.run(search.context(rounds=1))
    evaluation = search.archive.evaluation(output["best_id"], Purpose.CERTIFY)
    assert evaluation is not None and evaluation.timing is not None
    assert evaluation.timing.labels == ("audited",)
    certificate = search.archive.certificate_json()
    assert certificate is not None and certificate["audit"]["passed"]
    assert len(certificate["audit"]["timings"]) == 1
    # the search's own timing, three re-timings, one of the audit; the search's, the certificate's, the sanitizer's and
    # the audit's verification
    assert search.engine.counts[f"BenchmarkTask:{output['best_id']}"] == 5
    assert search.engine.counts[f"VerifyTask:{output['best_id']}"] == 4


async def test_ordinary_gain_is_not_audited(search: Search) -> None:
    await search.run(search.context(rounds=1))
    certificate = search.archive.certificate_json()
    assert certificate is not None and certificate["passed"]
    assert certificate["audit"] is None and certificate["labels"] == []


class Slackens(MemoryEngine):
    """An engine in which kernels lose half their speed from a candidate's fifth timing on: the audit's."""

    def _benchmark(self, task: Any) -> Any:
        timing = super()._benchmark(task)
        if self.counts[f"BenchmarkTask:{task.candidate.id}"] < 5:
            return timing
        low, high = timing.speedup_ci95
        return dataclasses.replace(timing, speedup=timing.speedup / 2, speedup_ci95=(low / 2, high / 2))


async def test_gain_that_its_audit_does_not_confirm_is_not_certified(search: Search) -> None:
    search.engine = Slackens()
    search.model = ScriptedModel(kernel=lambda r: {"source": "// speed 4.5\n"})
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1))
    certificate = search.archive.certificate_json()
    assert certificate is not None and output["best_id"] == "seed-naive"
    assert certificate["failed_before"][0]["reason"].startswith("audit: one timing gives")
    evaluation = search.archive.evaluation("r1i0v0a0", Purpose.CERTIFY)
    assert evaluation is not None and evaluation.timing is not None
    assert evaluation.reason_code is ReasonCode.TIMINGS_SPREAD
    assert "audited" not in evaluation.timing.labels


async def test_audit_whose_verification_fails_ends_as_its_finding_says(search: Search) -> None:
    class FailsItsAudit(MemoryEngine):
        def _verify(self, task: Any) -> Verdict:
            if task.step != "audit verify":
                return super()._verify(task)
            return Verdict.failed(Finding(code=ReasonCode.STALE_OUTPUT, reason="row 3 is the last call's"))

    search.engine = FailsItsAudit()
    search.model = ScriptedModel(kernel=lambda r: {"source": "// speed 4.5\n"})
    await search.run(search.context(rounds=1, ideas=1, implementations=1))
    evaluation = search.archive.evaluation("r1i0v0a0", Purpose.CERTIFY)
    assert evaluation is not None
    assert (evaluation.status, evaluation.reason_code) == (Status.WRONG, ReasonCode.STALE_OUTPUT)
    certificate = search.archive.certificate_json()
    assert certificate is not None
    assert certificate["failed_before"] == [
        {"candidate_id": "r1i0v0a0", "reason": "audit: wrong (stale_output): row 3 is the last call's"}
    ]


async def test_gain_beyond_ten_times_is_quarantined_and_stays_out_of_the_bank(search: Search, tmp_path: Any) -> None:
    search.engine = Slackens()
    search.model = ScriptedModel(kernel=lambda r: {"source": "// speed 12\n"})
    context = search.context(rounds=1, ideas=1, implementations=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        context.bank = bank
        output = await search.run(context)
        assert bank.seeds("rowwise", "test-1", 5) == []
    certificate = search.archive.certificate_json()
    assert certificate is not None and not output["certified"]
    assert (certificate["passed"], certificate["quarantined"]) == (False, True)
    assert certificate["reason"].startswith("needs a second machine or a longer protocol")
    assert certificate["labels"] == ["quarantined"]


async def test_longer_protocol_that_agrees_lifts_the_quarantine(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 12\n"})
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1))
    certificate = search.archive.certificate_json()
    assert certificate is not None and output["certified"]
    assert (certificate["quarantined"], certificate["labels"]) == (False, ["audited"])
    assert len(certificate["audit"]["timings"]) == 2
