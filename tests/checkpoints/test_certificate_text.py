"""certificate.md of a filled archive, and of a certificate that has hardly anything."""

from __future__ import annotations

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.certificate_text import render_certificate
from ridgeline.checkpoints.result import build_result, write_run_outputs


def test_summary_says_the_verdict_and_every_figure(filled: Archive) -> None:
    certificate = filled.certificate()
    assert certificate is not None
    text = render_certificate(certificate, best=build_result(filled)["best"])
    for part in (
        "# quickstart: r4i1v0a0t3 is certified, 2.27x eager PyTorch",
        "20 of 20 trials",
        "100.0% of the device's time: it links libc.so.6",
        "1.900x",
        "| ROWS = 1024 | ok |",
        "compile_error; needs \\| multiples",
        "1.040x the search's fastest (1.010 to 1.060)",
        "| over seed-fused | 1.724x",
        "g++ 12.2.0",
        f"| source sha256 | {'ab' * 32} |",
    ):
        assert part in text, part


def test_summary_lies_beside_the_certificate(filled: Archive) -> None:
    run = filled.path.parent
    write_run_outputs(run, filled)
    assert (run / "certificate.md").read_text().startswith("# quickstart: r4i1v0a0t3 is certified")


def test_certificate_of_an_earlier_version_is_told_as_far_as_it_goes() -> None:
    text = render_certificate({"passed": False, "reason": "sanitizers: out of bounds"}, best=None)
    assert "a kernel is not certified: sanitizers: out of bounds" in text
