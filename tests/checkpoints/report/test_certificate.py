"""certificate.md of a filled archive, and of a certificate that has hardly anything."""

from __future__ import annotations

import re

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report.certificate import render_certificate
from ridgeline.checkpoints.report.wording import STEP_WORDS
from ridgeline.checkpoints.result import BestKernel, build_result
from ridgeline.checkpoints.stored_certificate import StoredCertificate
from ridgeline.graph.certificate.steps import CERTIFICATE_STEPS


def test_summary_says_the_verdict_and_every_figure(filled: Archive) -> None:
    certificate = filled.certificate_json()
    assert certificate is not None
    text = render_certificate(StoredCertificate.from_json(certificate), best=BestKernel.read(build_result(filled)))
    for part in (
        "# quickstart: r4i1v0a0t3 is certified, 2.27x as fast as eager PyTorch",
        "20 of 20 trials",
        "100.0% of the time is spent in its own code: it links libc.so.6",
        "| over eager PyTorch | 2.270x (2.225 to 2.315, which spans the re-timings) |",
        "| over PyTorch's best configuration | 1.900x; the speedup over eager PyTorch times the best",
        "| ROWS = 1024 | right there too |",
        "| which time is which | Eager PyTorch is timed by itself as a search begins, or within the hour before",
        "| rule | A round's best kernel is the one whose 95 % interval has the highest lower end.",
        "2.32x (2.20 to 2.50) in the search; first there by its interval",
        "; the highest speedup is 1.02x the lowest |",
        "| COLS = 767 | a limit: made for the shape of the search, does not build here (needs \\| multiples) |",
        "1.040x as fast (1.010 to 1.060)",
        "| over seed-fused | 1.724x",
        "g++ 12.2.0",
        f"| source sha256 | {'ab' * 32} |",
    ):
        assert part in text, part


def test_summary_says_where_no_gain_over_pytorch_s_best_is_proven(filled: Archive) -> None:
    certificate = filled.certificate_json()
    assert certificate is not None
    for ratio, told in ((1.02, "no proven gain over"), (0.999, "no faster than"), (0.7, "slower than")):
        changed = build_result(filled)
        changed["best"] |= {"speedup_vs_best": ratio, "speedup_ci95": [2.1, 2.315]}
        stored = StoredCertificate.from_json(certificate | {"speedup_vs_best": ratio})
        text = render_certificate(stored, best=BestKernel.read(changed))
        figure = "0.70" if ratio == 0.7 else f"{ratio:.3f}"
        assert f"2.27x as fast as eager PyTorch, but {told} PyTorch's best configuration: {figure}x\n" in text
        assert f"| over PyTorch's best configuration | {ratio:.3f}x, {told} it; the speedup over eager" in text


def test_summary_says_which_configuration_of_pytorch_has_no_figure(filled: Archive) -> None:
    certificate = filled.certificate_json()
    assert certificate is not None
    compiled = next(entry for entry in certificate["baselines"] if entry["name"] == "compile")
    compiled |= {"median_ms": None, "error": "no compiler"}
    filled.save_certificate(certificate)
    best = BestKernel.read(build_result(filled))
    assert best is not None
    assert best.baselines_failed == ["compile"]  # TF32's failed too, with which an fp32 kernel does not compete
    text = render_certificate(StoredCertificate.from_json(certificate), best=best)
    assert "| over PyTorch's best configuration (torch.compile failed: no figure) | 1.900x; the" in text


def test_words_of_a_stranger_are_no_markup_and_command_no_terminal(filled: Archive) -> None:
    evil = "<img src=x onerror=alert(1)> ![a](http://evil.example/a) \x1b[31m | \u202e </td><script>"
    failure = {"candidate_id": f"r1{evil}", "reason": evil}
    certificate = filled.certificate_json() | {"passed": False, "reason": evil, "failed_before": [failure]}
    certificate["candidate"] |= {"tunables": {evil: evil}}
    text = render_certificate(StoredCertificate.from_json(certificate), best=None)
    assert not re.search(r"(?<!\\)<[a-z/]|\]\(|[\x1b\u202e]", text), text
    assert text.count("\\<img src=x") == 3


def test_certificate_of_an_earlier_version_is_told_as_far_as_it_goes() -> None:
    text = render_certificate(StoredCertificate(reason="sanitizers: out of bounds"), best=None)
    assert "a kernel is not certified: sanitizers: out of bounds" in text


def test_summary_says_when_it_looked_for_other_programs() -> None:
    text = render_certificate(StoredCertificate(labels=("busy_machine",), cores_in_use_by_others=0.0), best=None)
    assert "| cores that other programs used as it began | 0.0 |" in text


def test_steps_have_the_words_of_the_terminal() -> None:
    assert set(STEP_WORDS) == {step.name for step in CERTIFICATE_STEPS}
    text = render_certificate(
        StoredCertificate(passed=True, not_done={"own_work": "no profiler"}, seconds={"time": 2.0}), best=None
    )
    assert "| not done: own work | no profiler |" in text
    assert "| seconds | re-timings 2.0 |" in text
