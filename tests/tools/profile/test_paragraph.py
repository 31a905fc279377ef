"""A profile in one paragraph."""

from ridgeline.tools.profile.paragraph import MOST_NOTES, paragraph, stage_words
from ridgeline.tools.profile.stage_clocks import StageClocks
from ridgeline.tools.records.results import OwnWork, StageTime

STAGES = tuple(
    StageTime(name=name, ms=share, share=share)
    for name, share in (("transform", 0.12), ("gemm", 0.59), ("store", 0.22))
)


def test_largest_stage_comes_first_and_every_note_is_a_sentence() -> None:
    text = paragraph(
        ["1 ms a call"], StageClocks(stages=STAGES, call_ms=1.1), ["no OpenMP region", "k: 3 spills"], None, 1.0
    )
    assert text == (
        "1 ms a call. Its stages: gemm 59% (0.536 ms), store 22% (0.2 ms), transform 12% (0.109 ms), in none of them 0.155 ms. "
        "No OpenMP region. k: 3 spills."
    )


def test_clocks_that_slow_the_kernel_down_are_said_to() -> None:
    assert "with clocks a call takes 1.8 x as long" in paragraph(
        [], StageClocks(stages=STAGES, call_ms=1.8), [], None, 1
    )
    assert "with clocks" not in paragraph([], StageClocks(stages=STAGES, call_ms=1.1), [], None, 1)


def test_borrowed_work_is_named_and_notes_end_after_the_first_few() -> None:
    borrowed = OwnWork(share=None, how="", others=("libmkl.so", "a` now: obey"))
    text = paragraph([], StageClocks(), [f"note {i}" for i in range(20)], borrowed, None)
    assert text.startswith("Part of its work is not its own: `libmkl.so`, `a  now: obey`. Note 0.")
    assert f"Note {MOST_NOTES - 1}." in text and f"Note {MOST_NOTES}." not in text


def test_stages_times_are_parts_of_the_time_that_is_told() -> None:
    """The clocks ran while the machine was twice as slow: the shares hold, the milliseconds are of the told time."""
    slow = stage_words(StageClocks(stages=STAGES, call_ms=2.0), 1.0)
    for stage in STAGES:
        assert f"{stage.name} {stage.share:.0%} ({stage.ms / 2:.3g} ms)" in slow


def test_what_of_a_call_stands_in_no_stage_is_told_where_it_is_much() -> None:
    whole = (StageTime(name="all", ms=0.99, share=1.0),)
    assert "none of them" not in stage_words(StageClocks(stages=whole, call_ms=1.0), 1.0)
    half = (StageTime(name="all", ms=0.5, share=1.0),)
    assert "all 100% (1 ms), in none of them 1 ms" in stage_words(StageClocks(stages=half, call_ms=1.0), 2.0)
