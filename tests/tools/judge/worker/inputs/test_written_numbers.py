"""The numbers that a reference's source writes."""

from ridgeline.tools.judge.worker.inputs.written_numbers import numbers_written, whole_numbers_written

SOURCE = "END = 128009\nLOW = -7\nrate = 0.5\nflag = True\nhuge = 10**30 + 99999999999999999999\nagain = END + 128009\n"


def test_every_number_is_found_but_bools_and_names() -> None:
    assert set(numbers_written(SOURCE)) == {128009, 7, -7, 0.5, 10, 30, 99999999999999999999}


def test_whole_ones_of_64_bits_come_once() -> None:
    assert whole_numbers_written(SOURCE).tolist() == [-7, 7, 10, 30, 128009]
    assert whole_numbers_written("x = 1.5").numel() == 0
