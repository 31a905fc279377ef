"""The certificate in words: the rows of certificate.md and of report.html."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ridgeline.checkpoints.report.figures import plain_text
from ridgeline.checkpoints.report.floors import below_words, floors_words
from ridgeline.checkpoints.report.wording import (
    COMPARED,
    EAGER_TIMES,
    OVER_BEST,
    RANKING,
    best_configuration,
    not_met_words,
    over_best_doubt,
    step_words,
)
from ridgeline.checkpoints.result import BestKernel
from ridgeline.checkpoints.stored_certificate import (
    Audited,
    CertifiedBuild,
    CertifiedDevice,
    CertifiedKernel,
    Sanitized,
    StoredCertificate,
    TriedShapes,
)
from ridgeline.tools.records.error_map import FIGURE_WORDS
from ridgeline.tools.records.problem import SkippedTrial
from ridgeline.tools.records.reference_mode import mode_words
from ridgeline.tools.records.results import OwnWork, Timing, Verdict
from ridgeline.tools.records.vocabulary import Label, Status
from ridgeline.tools.wording import counted, in_users_words, margin_words, ratio_words, whole_numbers_words

Row = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of a certificate: a table of certificate.md, some rows of report.html."""

    title: str
    rows: tuple[Row, ...]  # those with words
    is_one_row: bool = False  # in report.html, where its rows alone would not say what they are about
    is_in_report: bool = True  # else report.html has a table of its own for it


def certificate_rows(certificate: StoredCertificate | None) -> list[Row]:
    """Return (name, words) of everything that the report says of a certificate; PyTorch's times have their own table."""
    if certificate is None:
        return []
    verdict = "certified" if certificate.passed else f"not certified: {in_users_words(certificate.reason)}"
    kernel, labels = _kernel(certificate.candidate), ", ".join(certificate.labels)
    sections = (section for section in certificate_sections(certificate, best=None) if section.is_in_report)
    rows = (row for section in sections for row in (_joined(section) if section.is_one_row else section.rows))
    return [*_with_words([("kernel", kernel), ("verdict", verdict), ("labels", labels)]), *rows]


def certificate_sections(certificate: StoredCertificate, *, best: BestKernel | None) -> list[Section]:
    """Return the certificate's parts that have rows; `best` has the run's figures."""
    shapes = _with_words(_shapes(certificate.other_shapes))
    sections = (
        Section(title="What was checked", rows=_with_words(_checks(certificate))),
        Section(title="Figures", rows=_with_words(_figures(certificate, best))),
        Section(title=step_words("baselines"), rows=_with_words(_baselines(certificate)), is_in_report=False),
        Section(title="How the winner was chosen", rows=_with_words(_selection(certificate)), is_one_row=True),
        Section(title=step_words("other_shapes").capitalize(), rows=shapes, is_one_row=True),
        Section(title="What it rests on", rows=_with_words(_circumstances(certificate))),
    )
    return [section for section in sections if section.rows]


def _with_words(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple((name, words) for name, words in rows if words)


def _joined(section: Section) -> list[Row]:
    """Return a section as one row that its title names."""
    return [(section.title.lower(), "; ".join(f"{name}: {words}" for name, words in section.rows))]


def _kernel(candidate: CertifiedKernel) -> str:
    parent = f", from {candidate.parent_id}" if candidate.parent_id else ""
    tuned = f" with {plain_text(candidate.tunables)}" if candidate.tunables else ""
    return f"{candidate.id}{parent}{tuned}"


def _checks(certificate: StoredCertificate) -> Iterator[Row]:
    yield step_words("verify"), _verdict(certificate.verification)
    sanitizer = certificate.sanitizer or Sanitized()
    said = f"skipped: {sanitizer.skipped}" if sanitizer.skipped else _verdict(sanitizer.verdict)
    yield f"{step_words('sanitize')} ({', '.join((sanitizer.build or 'none').split(','))})", said
    yield f"{step_words('time')} in new processes", _timings(certificate.timings)
    yield "floor", _floor(certificate)
    yield step_words("audit"), _audit(certificate.audit)
    yield step_words("own_work"), _own_work(certificate.own_work)
    for step, reason in certificate.not_done.items():
        yield f"not done: {step_words(step)}", reason
    for failure in certificate.failed_before:
        yield f"not certified: {failure.candidate_id}", in_users_words(failure.reason)


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return "not reached"
    trials = verdict.trials
    not_met = _not_tried(verdict.skipped)
    whole = whole_numbers_words(
        [each.to_json() for each in verdict.whole_numbers], (each.name for each in verdict.skipped)
    )
    not_met += f"; {whole}" if whole else ""
    passed = f", {sum(1 for t in trials if t.passed)} of {len(trials)} trials" if trials else ""
    error = f", relative error {verdict.rel_error:.1e}" if verdict.rel_error is not None else ""
    precision = f", {verdict.precision_class}" if verdict.precision_class else ""
    reason = f"; {in_users_words(verdict.reason)}" if verdict.reason else ""
    return f"{verdict.status}{passed}{error}{precision}{_margin(verdict)}{not_met}{reason}"


def _margin(verdict: Verdict) -> str:
    trial = verdict.nearest_trial
    if trial is None or trial.nearest is None:
        return ""
    words = margin_words(verdict.margin, trial.name, FIGURE_WORDS[trial.nearest.measure])
    return f", {words} under {counted(verdict.draws, 'secret')}" if words else ""


def _timings(timings: Sequence[Timing]) -> str:
    """Return each of several timings, and how far their speedups lie apart."""
    each = "; ".join(map(_timing, timings))
    speedups = [timing.speedup for timing in timings if timing.speedup]
    if len(speedups) < 2:
        return each
    busy = " on a machine that other programs used" if any(Label.BUSY_MACHINE in t.labels for t in timings) else ""
    return f"{each}; the highest speedup is {max(speedups) / min(speedups):.2f}x the lowest{busy}"


def _timing(timing: Timing) -> str:
    if timing.median_ms is None or timing.speedup is None:
        return f"{timing.status}: {timing.reason}"
    span = " ({:.3f} to {:.3f})".format(*timing.speedup_ci95) if timing.speedup_ci95 else ""
    return f"{timing.median_ms:.4g} ms, {timing.speedup:.3f}x{span}{_not_tried(timing.skipped)}"


def _not_tried(skipped: Sequence[SkippedTrial]) -> str:
    """Return the trials that were left out, and in words what else no kernel of the problem meets."""
    trials = ", ".join(each.name for each in skipped if each.label is Label.TRIAL_SKIPPED)
    others = [not_met_words(each.name, each.reason) for each in skipped if each.label is not Label.TRIAL_SKIPPED]
    return "".join(f"; {words}" for words in [*([f"not tried: {trials}"] if trials else []), *others])


def _audit(audit: Audited | None) -> str:
    if audit is None:
        return ""
    verified = [_verdict(audit.verification)] if audit.verification else []
    return "; ".join(["passed" if audit.passed else audit.reason, *verified, *map(_timing, audit.timings)])


def _floor(certificate: StoredCertificate) -> str:
    fraction, floor = certificate.fraction_of_floor, certificate.floor
    if not fraction or not floor:
        return ""
    both = (floor.floor_ms, floor.compute_floor_ms)
    words = f"{floors_words(*both, '{:.4g} ms'.format)}; {fraction:.0%} of the memory floor's rate is reached"
    below = below_words(floor.floor_ms / fraction, *both)
    return f"{words}; {below}" if below else words


def _own_work(work: OwnWork | None) -> str:
    if work is None:
        return "not looked at"
    share = f"{work.share:.1%} of the time is spent in its own code" if work.share is not None else "share unknown"
    others = f"; not its own: {', '.join(work.others)}" if work.others else ""
    return f"{share}: {work.how}{others}"


def _figures(certificate: StoredCertificate, best: BestKernel | None) -> Iterator[Row]:
    if certificate.passed and best:
        yield "over eager PyTorch", _over_eager(best)
    if certificate.speedup_vs_best is not None:
        doubts = over_best_doubt(best) if certificate.passed and best else ""
        yield (
            f"over PyTorch's {best_configuration(best.baselines_failed if best else ())}",
            f"{certificate.speedup_vs_best:.3f}x{f', {doubts} it' if doubts else ''}; {OVER_BEST}",
        )
    versus = certificate.versus_seed
    if versus and min(versus.ratio, *versus.ratio_ci95) > 0:
        low, high = sorted(1 / ratio for ratio in versus.ratio_ci95)
        yield f"over {certificate.seed_kernel}", f"{1 / versus.ratio:.3f}x ({low:.3f} to {high:.3f})"


def _over_eager(best: BestKernel) -> str:
    if best.speedup is None:
        return "not measured"
    span = " ({:.3f} to {:.3f}, which spans the re-timings)".format(*best.speedup_ci95) if best.speedup_ci95 else ""
    return f"{best.speedup:.3f}x{span}"


def _baselines(certificate: StoredCertificate) -> Iterator[Row]:
    for entry in certificate.baselines:
        ms = entry.median_ms
        yield mode_words(entry.name), f"{ms:.4g} ms" if ms is not None else f"failed: {entry.error}"
    if certificate.baselines:
        yield "which time is which", EAGER_TIMES


def _selection(certificate: StoredCertificate) -> Iterator[Row]:
    leaders = certificate.selection
    if leaders:
        yield "rule", f"{RANKING} {COMPARED}"
    first = next((each.candidate_id for each in leaders if each.ratio_ci95 is None), "the search's first")
    for leader in leaders if len(leaders) > 1 else ():
        interval = leader.ratio_ci95
        in_turns = f"in turns with {first} {leader.ratio:.3f}x as fast"
        against = f"{in_turns} ({interval[0]:.3f} to {interval[1]:.3f})" if interval else "first there by its interval"
        in_search = ratio_words(leader.speedup, leader.speedup_ci95)
        yield leader.candidate_id, f"{in_search} in the search; {against}"


_LIMITS: Mapping[str, str] = {
    Status.OK: "right there too",
    Status.WRONG: "a limit: made for the shape of the search, other results here",
    Status.COMPILE_ERROR: "a limit: made for the shape of the search, does not build here",
    Status.REFUSED: "a limit: made for the shape of the search, does not build here",
    Status.RUNTIME_ERROR: "a limit: made for the shape of the search, breaks off here",
    Status.TIMEOUT: "a limit: made for the shape of the search, does not end in time here",
}
"""Words for how a kernel ended at a shape that it was not asked for: to serve one shape alone is no fault.

How far its results are off there says nothing of the kernel; certificate.json has it.
"""


def _shapes(found: TriedShapes | None) -> Iterator[Row]:
    if found is None:
        return
    if found.skipped:
        yield "none", found.skipped
    for shape in found.shapes:
        sizes = ", ".join(f"{name} = {value}" for name, value in shape.sizes.items())
        limit = _LIMITS.get(shape.status, "a limit: made for the shape of the search, does not pass here")
        why = "" if shape.status in (Status.OK, Status.WRONG) else in_users_words(shape.reason)
        yield sizes, f"{limit}{f' ({why})' if why else ''}"


def _circumstances(certificate: StoredCertificate) -> Iterator[Row]:
    device, build = certificate.device or CertifiedDevice(), certificate.build or CertifiedBuild()
    cores = certificate.cores_in_use_by_others
    yield "begun", certificate.date
    yield "ended", certificate.ended_at
    yield "device", f"{device.name} ({device.arch})"
    yield "driver", device.driver
    yield "cores that other programs used as it began", "" if cores is None else f"{cores:.1f}"
    yield "compiler", build.toolchain
    yield "flags", " ".join(build.flags)
    yield "build", build.key
    for name, text in (certificate.versions or {}).items():
        yield name, text
    for name, text in (certificate.hashes or {}).items():
        yield name.replace("_", " "), text
    yield "seconds", ", ".join(f"{step_words(step)} {spent:.1f}" for step, spent in certificate.seconds.items())
