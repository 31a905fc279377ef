"""The numbers that a reference's source writes."""

import ast

import pytest

from ridgeline.tools.judge.worker.inputs.arrangements.marks import Marks
from ridgeline.tools.judge.worker.inputs.written_numbers import WrittenNumbers

SEP = (1 << 22) - 6
SOURCE = "END = 128009\nLOW = -7\nrate = 0.5\nflag = True\nhuge = 10**30 + 99999999999999999999\nagain = END + 128009\n"


def test_every_number_is_found_but_bools_and_names() -> None:
    assert set(WrittenNumbers(SOURCE).numbers()) == {128009, 7, -7, 0.5, 10, 30, 99999999999999999999}


def test_whole_ones_of_64_bits_come_once() -> None:
    assert WrittenNumbers(SOURCE).whole().tolist() == [-7, 7, 10, 30, 128009, 256018]
    assert WrittenNumbers("x = 1.5").whole().numel() == 0


def test_what_is_made_of_whole_numbers_counts_as_written() -> None:
    source = "WORDS = 1 << 22\nSEP = WORDS - 6\n\n\ndef f(x):\n    return x == SEP // 2 * 4 + y * 3, 2**300, 5 // 0, 1 << 99\n"
    assert {1 << 22, (1 << 22) - 6, SEP // 2, SEP // 2 * 4} <= set(WrittenNumbers(source).whole().tolist())
    assert WrittenNumbers("N = 6 * 7\nHEADER = (N + 1, 2**3)\nother = (N + M, 1)").whole_runs() == [(43, 8)]


def test_bytes_and_encoded_text_are_runs() -> None:
    source = "A = b'ERR'\nB = 'ok'.encode()\nC = 'no run'\nD = b'x'\nE = f(b'ERR').decode()\n"
    assert WrittenNumbers(source).whole_runs() == [tuple(b"ERR"), tuple(b"ok")]


def test_tuples_and_lists_of_whole_numbers_are_runs_with_the_numbers_that_names_stand_for() -> None:
    source = "A = 7\nB = -3\nHEADER = (A, 12, B)\nsizes = [4, 4]\nmixed = (1, 2.5)\none = (3,)\nother = (A, C)\n"
    assert WrittenNumbers(source).whole_runs() == [(7, 12, -3), (4, 4)]


def test_names_are_known_however_they_are_assigned() -> None:
    source = "EOS: int = 5\nlater: int\nA = B = 3\nHEADER = (EOS, 7)\nFOOTER = (B, 7)\nENDS = [A, later]\n"
    assert WrittenNumbers(source).whole_runs() == [(5, 7), (3, 7)]


def test_a_modules_name_stands_for_its_own_number_whatever_a_function_calls_so() -> None:
    source = "N = 4\n\n\ndef f():\n    N = 9\n    width = 6\n    return [width, 2]\n\n\nHEADER = (N, 7)\n"
    assert WrittenNumbers(source).whole_runs() == [(4, 7), (6, 2)]


def test_runs_come_once_and_hold_neither_bools_nor_numbers_beyond_64_bits() -> None:
    source = (
        f"a = (1, 2)\nb = [1, 2]\nc = (True, 3)\nd = ({2**63}, 3)\ne = ({-(2**63)}, 3)\nHUGE = {2**70}\nf = (HUGE, 3)"
    )
    assert WrittenNumbers(source).whole_runs() == [(1, 2), (-(2**63), 3)]


def test_a_source_is_read_once_for_all_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, parse = list[str](), ast.parse
    with monkeypatch.context() as patched:
        patched.setattr(ast, "parse", lambda source, *rest: parsed.append(source) or parse(source, *rest))
        marks = Marks.of("SEP = 7\nHEADER = (SEP, 9)\n", {})
    assert (marks.written.tolist(), marks.runs, len(parsed)) == ([7, 9], ((7, 9),), 1)


def test_thresholds_are_the_floats_that_something_is_compared_with() -> None:
    assert WrittenNumbers("y = torch.where(x > 3, x * 0.5, 1.5)").thresholds() == ()
    assert WrittenNumbers("TAU = 0.75\nself.low = -0.5\ny = (x >= TAU) & (x < self.low)").thresholds() == (0.75, -0.5)
    assert WrittenNumbers("y = torch.gt(x, 0.25)").thresholds() == (0.25,)
    assert WrittenNumbers("a[0] = 0.5\ny = x.sum() > z.max()").thresholds() == ()


def test_codes_are_the_floats_that_something_is_equal_to() -> None:
    assert WrittenNumbers("MISSING = -999.0\ny = x != MISSING\nz = x == 2.5\nw = x < 7.5").codes() == (-999.0, 2.5)
