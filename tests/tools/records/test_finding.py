"""A code and what follows from it."""

from __future__ import annotations

import pytest

from ridgeline.tools.records.finding import CandidateFault, Finding, faults_of
from ridgeline.tools.records.results import Build, Timing, Verdict
from ridgeline.tools.records.vocabulary import ReasonCode, Status


@pytest.mark.parametrize("code", list(ReasonCode), ids=str)
def test_a_code_belongs_to_one_status(code):
    assert isinstance(code.status, Status)
    assert ReasonCode(code.value) is code
    assert (code.status is Status.OK) == (code is ReasonCode.NONE)


def test_a_failed_record_has_its_findings_status_code_and_reason():
    finding = Finding(code=ReasonCode.CALL_TIMEOUT, reason="it did not answer")
    for record in (Verdict.failed(finding), Timing.failed(finding), Build.failed(finding, key="key")):
        assert (record.status, record.reason_code) == (Status.TIMEOUT, ReasonCode.CALL_TIMEOUT)
        assert record.reason == "it did not answer"


def test_a_candidates_words_bring_no_escape_sequence_into_a_reason():
    fault = CandidateFault(ReasonCode.CRASHED, "\x1b[2Jgone\n")
    assert fault.finding.reason == " [2Jgone "


def test_a_fault_is_of_the_contender_that_was_at_work_innermost():
    with pytest.raises(CandidateFault) as raised, faults_of(0), faults_of(1):
        raise CandidateFault(ReasonCode.CRASHED, "gone")
    assert raised.value.contender == 1
