"""certificate.md: the content of certificate.json as Markdown tables."""

from __future__ import annotations

import re

from ridgeline.checkpoints.report.certificate_rows import Section, certificate_sections
from ridgeline.checkpoints.report.wording import (
    best_configuration,
    best_of_torch_doubt,
    labels_in_words,
    unproven_words,
)
from ridgeline.checkpoints.result import BestKernel
from ridgeline.checkpoints.stored_certificate import StoredCertificate
from ridgeline.tools.records.printable import printable


def render_certificate(certificate: StoredCertificate, *, best: BestKernel | None) -> str:
    """Return the certificate as Markdown; `best` has the run's figures."""
    tables = (_table(section) for section in certificate_sections(certificate, best=best))
    return "\n".join([_title(certificate, best), *tables])


def _title(certificate: StoredCertificate, best: BestKernel | None) -> str:
    name, problem = certificate.candidate.id or "a kernel", certificate.problem
    gain = ""
    if certificate.passed and best and best.speedup:
        of_torch = best_of_torch_doubt(best, f"PyTorch's {best_configuration(best.baselines_failed)}")
        doubts = "; ".join(filter(None, (unproven_words(best), of_torch)))
        gain = f", {best.speedup:.2f}x as fast as eager PyTorch{f', but {doubts}' if doubts else ''}"
    verdict = f"certified{gain}" if certificate.passed else f"not certified: {certificate.reason}"
    title = _plain(f"{problem}: {name} is {verdict}")
    return f"# {title}\n" + (
        f"\nLabels: {_plain(labels_in_words(certificate.labels))}.\n" if certificate.labels else ""
    )


def _table(section: Section) -> str:
    lines = [f"| {_cell(name)} | {_cell(words)} |" for name, words in section.rows]
    return "\n".join([f"## {section.title}", "", "| | |", "|---|---|", *lines, ""])


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: str) -> str:
    """Return a text in one line, without a tag or a link of its own: names and reasons are a stranger's in part."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", " ".join(printable(text).split()))


_MARKUP = re.compile(r"<(?=[A-Za-z/!?])|(?<=\])\(")
