"""The parts of a certificate, and the rows that the report makes of them."""

from __future__ import annotations

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report.certificate_rows import certificate_rows, certificate_sections
from ridgeline.checkpoints.report.wording import step_words
from ridgeline.checkpoints.result import BestKernel, build_result
from ridgeline.checkpoints.stored_certificate import StoredCertificate
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import Status


def test_report_takes_each_section_as_its_fields_say(filled: Archive) -> None:
    certificate = filled.certificate_json()
    assert certificate is not None
    rows = dict(certificate_rows(StoredCertificate.from_json(certificate)))
    sections = certificate_sections(StoredCertificate.from_json(certificate), best=None)
    assert {(section.is_in_report, section.is_one_row) for section in sections} == {
        (True, False), (True, True), (False, False),
    }  # fmt: skip
    for section in sections:
        is_whole = section.is_in_report and not section.is_one_row
        assert {name in rows for name, _ in section.rows} == {is_whole}, section.title
        assert (section.title.lower() in rows) == (section.is_in_report and section.is_one_row)


def test_section_without_words_is_left_out() -> None:
    certificate = StoredCertificate(reason="sanitizers: out of bounds")
    sections = certificate_sections(certificate, best=None)
    assert [section.title for section in sections] == ["What was checked", "What it rests on"]
    assert all(words for section in sections for _, words in section.rows)


@pytest.mark.parametrize(
    ("speedup", "interval", "told"),
    [
        (None, [1.9, 2.1], "not measured"),
        (2.0, None, "2.000x"),
        (2.0, [1.9, 2.1], "2.000x (1.900 to 2.100, which spans the re-timings)"),
    ],
)
def test_a_speedup_that_is_absent_is_no_zero(
    filled: Archive, speedup: float | None, interval: list[float] | None, told: str
) -> None:
    figures = build_result(filled)["best"] | {"speedup": speedup, "speedup_ci95": interval}
    certificate = filled.certificate()
    assert certificate is not None
    sections = certificate_sections(certificate, best=BestKernel.read({"best": figures}))
    rows = dict(row for section in sections for row in section.rows)
    assert rows["over eager PyTorch"] == told


def test_a_timing_without_an_interval_has_no_ends(filled: Archive) -> None:
    timings = (Timing(status=Status.OK, median_ms=1.0, reference_ms=2.0, speedup=2.0),)
    rows = dict(certificate_rows(StoredCertificate(timings=timings)))
    assert rows[f"{step_words('time')} in new processes"] == "1 ms, 2.000x"


def test_the_share_of_a_floor_s_rate_is_named_by_its_floor(filled: Archive) -> None:
    certificate = filled.certificate_json()
    assert certificate is not None and certificate["floor"]
    certificate |= {"fraction_of_floor": 0.25}
    assert (
        dict(certificate_rows(StoredCertificate.from_json(certificate)))["floor"]
        == "memory floor 0.42 ms; 25% of the memory floor's rate is reached"
    )
    for arithmetic_ms, below in ((1.5, ""), (2.0, "; 1.68 ms is below the arithmetic floor, which is advisory: ")):
        certificate["floor"] |= {"compute_floor_ms": arithmetic_ms}
        words = dict(certificate_rows(StoredCertificate.from_json(certificate)))["floor"]
        assert words.startswith(
            f"memory floor 0.42 ms, arithmetic floor {arithmetic_ms:.4g} ms (binds); 25% of the memory"
        )
        assert below in words and ("advisory" in words) == bool(below)


def test_a_trial_that_no_kernel_meets_is_none_that_passed(filled: Archive) -> None:
    certificate = filled.certificate_json()
    assert certificate is not None
    words = dict(certificate_rows(StoredCertificate.from_json(certificate)))[step_words("verify")]
    assert words == "ok, 20 of 20 trials, fp32"
    certificate["verification"] |= {"skipped": [{"name": "shifted", "reason": "beyond fp16"}]}
    assert dict(certificate_rows(StoredCertificate.from_json(certificate)))[step_words("verify")] == (
        f"{words}; not tried: shifted"
    )
    kept = {"name": "not_varied pos", "reason": "always these", "label": "not_varied"}
    certificate["verification"] |= {"skipped": [kept]}
    assert dict(certificate_rows(StoredCertificate.from_json(certificate)))[step_words("verify")] == (
        f"{words}; not_varied: pos was tried only as given: always these"
    )
