"""The names of stages in a source."""

from __future__ import annotations

import time

import pytest

from ridgeline.tools.build.stages import stage_names


@pytest.mark.parametrize(
    "call", ["RIDGELINE_STAGE({}!", "RIDGELINE_STAGE(a{}!", 'RIDGELINE_STAGE("a{}"!', "RIDGELINE_STAGE{}!"]
)
def test_the_time_of_reading_stages_grows_with_the_length_and_no_faster(call: str) -> None:
    began = time.process_time()
    assert stage_names(call.format(" " * 20_000) + " RIDGELINE_STAGE(load)") == ("load",)
    assert time.process_time() - began < 0.1, "a pattern that tries again takes 12 s"


def test_blanks_and_quotes_around_a_name_do_not_count() -> None:
    source = 'RIDGELINE_STAGE ( \n a  b \t ) RIDGELINE_STAGE("c:1" ) RIDGELINE_STAGE(   ) RIDGELINE_STAGE(x!)'
    assert stage_names(source) == ("a b", "c:1")
