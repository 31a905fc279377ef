"""A failed comparison in words to act on: which limit broke, where the wrong values lie and how they are wrong."""

from __future__ import annotations

from ridgeline.tools.judge.replies import Beyond, Element, Graded, Missing, Touched
from ridgeline.tools.records.error_map import AxisPattern, ErrorMap, Measure, Pattern, Relation
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.precision import NOMINAL_GATE
from ridgeline.tools.records.vocabulary import PrecisionClass, ReasonCode
from ridgeline.tools.wording import counted

_LOSSES = (
    "sums of very many terms in one float, another constant (an epsilon, a factor), an approximated function, a difference of "
    "nearly equal numbers, an input that is not read or some work left out"
)


def explain_grade(graded: Graded, tolerance: PrecisionClass, *, varies: bool = False) -> Finding:
    """Return why a failed comparison failed, in words to act on.

    `varies`: another call on the same inputs gave other values.
    """
    trial, output = graded.trial, graded.output
    name = trial_words(trial.name, trial.draw)
    if graded.non_finite is not None:
        bad = graded.non_finite
        reason = f"{name}: {_element(output, bad)} is {bad.got!r}, expected {bad.expected!r}"
        return Finding(code=ReasonCode.NON_FINITE_MISMATCH, reason=reason + _map_words(graded.error_map))
    if graded.stale:
        reason = f"{name}: the output is that of an earlier call ({graded.stale}): nothing may be kept between calls"
        return Finding(code=ReasonCode.STALE_OUTPUT, reason=reason)
    is_of_whole = trial.nearest is not None and trial.nearest.measure is Measure.OUTPUT
    places = _map_words(graded.error_map, "off by more than a single one may be" if is_of_whole else "wrong")
    details = f"{places}{_RERUN if varies else ''}; {_where(output, graded.worst)}"
    if graded.invalid_bools:
        wrong = counted(graded.invalid_bools, "element")
        reason = f"{name}: {output} holds no bool in {wrong}{details}; a bool's byte is 0 or 1"
        return Finding(code=ReasonCode.WRONG_VALUES, reason=reason)
    if graded.wrong_integers:
        wrong = counted(graded.wrong_integers, "element")
        reason = f"{name}: {output} differs in {wrong}{details}; integers must be exact"
        return Finding(code=ReasonCode.WRONG_VALUES, reason=reason)
    error = trial.nearest.in_words() if trial.nearest else f"error {trial.rel_error:.2g}, gate {trial.gate:.2g}"
    if graded.lost_rows:
        rows = f"{counted(graded.lost_rows, 'row')} of {output}, {graded.lost_share:.2g} of its rms at most"
        reason = (
            f"{name}: {rows}, lost or far off ({error}), which PyTorch and other last bits of the inputs keep{details}"
        )
        return Finding(code=ReasonCode.WRONG_VALUES, reason=reason)
    if graded.is_unrounded and trial.gate < NOMINAL_GATE[PrecisionClass.FP64]:
        reason = (
            f"{name}: values of {output} differ ({error}){details}; PyTorch rounds none of them, so no bit may be lost"
        )
        return Finding(code=ReasonCode.WRONG_VALUES, reason=reason)
    if graded.measured is not None:
        reason = f"{name}: {error}{_loss_words(graded, tolerance, details)}"
        return Finding(code=ReasonCode.PRECISION_TOO_LOW, reason=reason)
    return Finding(code=ReasonCode.WRONG_VALUES, reason=f"{name}: values of {output} differ ({error}){details}")


def _loss_words(graded: Graded, tolerance: PrecisionClass, details: str) -> str:
    """Return where values are off that are right in a looser class, and by what they may be.

    The class comes first where errors lie as its rounding has them, the places where something else lost the digits.
    """
    if tolerance is PrecisionClass.CRFM:  # its gate is 1e-2 of each element, whatever the class
        return f": {_LOSSES}{details}"
    if graded.is_like_rounding:
        return f": like {graded.measured} arithmetic, {_LOSSES}, and {tolerance} is required{details}"
    return f"{details}; {_LOSSES}, and {tolerance} is required"


def trial_words(name: str, draw: int) -> str:
    """Return "shifted", "shifted (secret 2)" for a trial that was drawn anew."""
    return f"{name} (secret {draw + 1})" if draw else name


def explain_fault(name: str, found: Touched | Beyond | Missing) -> Finding:
    """Return why the first call of a trial, in words, cannot be graded."""
    if isinstance(found, Touched):
        reason = f"{name}: it wrote to its input `{found.name}`, which is read-only"
        return Finding(code=ReasonCode.INPUT_WRITTEN, reason=reason)
    return written_beyond(name, found) if isinstance(found, Beyond) else _not_written(name, found)


def written_beyond(name: str, beyond: Beyond) -> Finding:
    """Return that a call of a trial, in words, wrote behind an output's last byte."""
    far = counted(beyond.first, "byte") if beyond.first else "right"
    reason = (
        f"{name}: writing {far} past the end of `{beyond.output}`: {counted(beyond.count, 'byte')} there changed; guard the "
        "stores of the last block, or of the last vector"
    )
    return Finding(code=ReasonCode.OUT_OF_BOUNDS, reason=reason)


def not_written_again(name: str, missing: Missing) -> Finding:
    """Return that elements of an output still hold the poison after the second call on a trial's inputs."""
    reason = f"{name}: the second call on the same inputs left {_unwritten_words(missing)}: every call must do all of its work"
    return Finding(code=ReasonCode.STALE_OUTPUT, reason=reason)


def _not_written(name: str, missing: Missing) -> Finding:
    return Finding(code=ReasonCode.OUTPUT_NOT_WRITTEN, reason=f"{name}: it left {_unwritten_words(missing)}")


def _unwritten_words(missing: Missing) -> str:
    """Return "all of `out` unwritten", or a share of it and the first of those elements."""
    output, count = f"`{missing.output}`", missing.count
    if count == missing.total:
        return f"all of {output} unwritten"
    share = _rough_share(count, missing.total)
    words = (
        f"{share} of {output} ({counted(count, 'element')})"
        if share
        else f"{count:,} of {missing.total:,} elements of {output}"
    )
    row = f" (row {missing.first // missing.width:,})" if missing.width < missing.total else ""
    return f"{words} unwritten, the first at {missing.first:,}{row}"


_RERUN = "; another call on the same inputs gives other values: a race, or memory that was not written"


def _where(output: str, worst: Element | None) -> str:
    if worst is None:
        return "no single element stands out"
    place = f"worst at {_element(output, worst)}:" if worst.index else f"{output}:"
    return f"{place} got {_value(worst.got)}, expected {_value(worst.expected)}"


def _value(number: float) -> str:
    """Return every digit of an integer, as many of another number as float32 has."""
    return str(number) if isinstance(number, int) else f"{number:.7g}"


def _element(output: str, element: Element) -> str:
    """Return "out[1, 2]"; "out" of a scalar."""
    return f"{output}{list(element.index)}" if element.index else output


def _map_words(found: ErrorMap | None, how: str = "wrong") -> str:
    """Return "; 3.1 % are wrong, at the last 3 of 767 on axis 1; each is 0", "" for no map and for that of one element.

    Where the whole output's error is too large, many elements may be off by less than a single one's limit, and not count here.
    """
    if found is None or found.total == 1:
        return ""
    how = "wrong" if 2 * found.wrong > found.total else how
    places = " and ".join(f"{_index_words(axis)} on axis {axis.axis}" for axis in found.axes)
    share = _share_words(found.wrong, found.total)
    return f"; {share} are {how}{f', {places}' if places else ''}{_relation_words(found)}"


def _share_words(count: int, total: int) -> str:
    """Return "all", "almost all", "3.1 %" or, of fewer, "21 of 2,097,152"."""
    return _rough_share(count, total) or f"{count:,} of {total:,}"


def _rough_share(count: int, total: int) -> str:
    """Return "all", "almost all", "3.1 %", "" where so few are better counted."""
    if count == total:
        return "all"
    share = count / total
    if share >= 0.995:
        return "almost all"
    return f"{100 * share:.2g} %" if share >= 0.001 else ""


def _index_words(found: AxisPattern) -> str:
    size, count = found.size, found.count
    match found.pattern:
        case Pattern.ONE:
            return f"at index {found.first} alone"
        case Pattern.FIRST:
            return f"at the first {count} of {size}"
        case Pattern.LAST:
            return f"at the last {count} of {size}"
        case Pattern.RANGE:
            return f"at indices {found.first} to {found.last} of {size}"
        case Pattern.BORDERS:
            return f"at the borders ({count} of {size})"
        case Pattern.EVERY:
            return f"at every {_ordinal(found.step)} index from {found.first}"
        case Pattern.SOME:
            return f"at {count} of {size} indices, {found.first} to {found.last},"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{ending}"


def _relation_words(found: ErrorMap) -> str:
    value, axis = found.value, found.axis
    match found.relation:
        case None:
            return ""
        case Relation.CONSTANT:
            return f"; each of those is {value:.6g}"
        case Relation.RATIO:
            return (
                "; those have the wrong sign"
                if abs(value + 1) < 1e-3
                else f"; those are {value:.6g} x the expected values"
            )
        case Relation.OFFSET:
            return f"; those are the expected values {'+' if value > 0 else '-'} {abs(value):.6g}"
        case Relation.TRANSPOSED:
            return "; the values are right and the last two axes are exchanged"
        case Relation.SHIFTED:
            where = "one place too far" if value > 0 else "one place too early"
            return f"; the values are right and stand {where} on axis {axis}"
        case Relation.OFFSET_BY_AXIS:
            return f"; the difference depends on the index of axis {axis} alone: a bias?"
        case Relation.RATIO_BY_AXIS:
            return f"; the factor depends on the index of axis {axis} alone: a scale?"
