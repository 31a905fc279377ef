"""What a request for ideas asks for, and which kernels it shows."""

from __future__ import annotations

from dataclasses import replace

from tests.graph.requests_made import BLOCK, ELITE, TRIED, ideation

from ridgeline.graph.models.prompts import IDEATION_CHARS, LEAST_LEADER_CHARS, render_ideation
from ridgeline.tools.records.vocabulary import Category


def test_ideation_names_floor_baselines_tried_ideas_elites_and_categories() -> None:
    text = render_ideation(ideation(user_ideas=("use registers",), refused=("Unroll",), unreadable="no JSON"))
    for part in ("0.1000 ms", "eager (fp32) 10.0000 ms", "Unroll by four", "1.300× eager", "`seed-naive`"):
        assert part in text
    for part in ("use registers", "were just refused", "no JSON", *Category):
        assert part in text


def test_ideation_sees_the_contract_that_its_ideas_must_obey() -> None:
    text = render_ideation(ideation())
    for part in ("-march=native", "workspace_bytes", "// tune: BLOCK = 64 | 128 | 256", "## What the judge checks"):
        assert part in text


def test_ideation_asks_for_a_recombination_and_shows_what_is_taken_in_the_round() -> None:
    text = render_ideation(ideation(recombine=("r1i0v0a0", "r1i1v0a0"), planned=("Tile twice: halves the traffic",)))
    assert "recombine `r1i0v0a0` and `r1i1v0a0`" in text
    assert "- Tile twice: halves the traffic" in text
    assert "recombine `" not in render_ideation(ideation()) and "Taken already" not in render_ideation(ideation())


def test_ideation_asks_which_stage_of_the_parent_an_idea_makes_faster() -> None:
    text = render_ideation(ideation())
    assert "`stage`: that of the parent which gets faster" in text and '"stage": null' in text


def test_ideation_asks_for_a_plan_for_each_implementation() -> None:
    assert "state 3 `plans`" in render_ideation(ideation(implementations=3))
    assert '"plans": ["…", "…", "…"]' in render_ideation(ideation(implementations=3))
    assert "state" not in render_ideation(ideation(implementations=1)).partition("Answer with one JSON")[2]


def test_beside_the_leader_a_child_of_it_is_told_as_a_difference_and_others_by_their_outlines() -> None:
    source = "void a() {\n" + "".join(f"    line({n});\n" for n in range(80)) + "}\n"
    first = replace(ELITE, candidate_id="r1i0v0a0", source=source)
    sweep = ("BLOCK=64: 1.2 ms", "BLOCK=32: 1.3 ms")
    child = replace(first, candidate_id="r1i1v0a0t1", source=source.replace("line(7)", "line(70)"), sweep=sweep)
    child = replace(child, idea_id="r1i1", parent_id="r1i0v0a0")
    other = replace(ELITE, candidate_id="seed-other", source=source.replace("line", "other"))
    swept = replace(TRIED, id="r1i1", sweep=sweep)
    text = render_ideation(ideation(elites=(first, child, other), tried=(swept,)))
    assert text.count("line(30);") == 1
    assert "Its differences from `r1i0v0a0`:" in text
    assert "@@ 8 @@\n     line(6);\n-    line(7);\n+    line(70);\n```" in text
    assert "Its outline:\n\n```text\na, 82 lines\n```" in text.partition("### `seed-other`")[2]
    assert text.count("BLOCK=64: 1.2 ms; BLOCK=32: 1.3 ms") == 1
    assert "Swept" in text.partition("### `r1i1v0a0t1`")[2].partition("### `seed-other`")[0]


def test_a_request_for_ideas_keeps_to_its_length_and_the_leader_gets_what_is_left() -> None:
    source = "\n".join(f"void f{n}(float* x) {{\n{'    x[0] += 1;' * 20}\n}}" for n in range(300))
    leader = replace(ELITE, candidate_id="r1i0v0a0", source=source)
    text = render_ideation(ideation(elites=(leader,)))
    assert 0.9 * IDEATION_CHARS < len(text) <= IDEATION_CHARS
    assert "Cut to the functions with most of the work" in text and "gets the whole file" in text
    blocks = tuple(replace(BLOCK, name=f"{n}.cpp") for n in range(20))
    crowded = render_ideation(ideation(elites=(leader,), blocks=blocks)).partition("### `r1i0v0a0`")[2]
    assert 0.8 * LEAST_LEADER_CHARS < len(crowded) < 2 * LEAST_LEADER_CHARS


def test_a_tuned_kernel_is_told_with_the_one_it_was_tuned_from() -> None:
    tuned = replace(ELITE, candidate_id="r1i0v0a0t2", tuned_from="r1i0v0a0")
    text = render_ideation(ideation(elites=(tuned, replace(ELITE, candidate_id="r1i0v0a0"))))
    assert "### `r1i0v0a0t2` (tuned from `r1i0v0a0`): seed kernel\n" in text
    assert "### `r1i0v0a0`" not in text


def test_a_sweep_is_told_with_the_kernel_that_was_tuned_and_not_with_another_of_its_idea() -> None:
    other = replace(ELITE, candidate_id="r1i1v1a0", idea_id="r1i1", source="other();")
    swept = replace(TRIED, id="r1i1", best_candidate_id="r1i1v0a0t3", sweep=("BLOCK=64: 1.2 ms",))
    text = render_ideation(ideation(elites=(other,), tried=(swept,)))
    assert "Swept" not in text.partition("### `r1i1v1a0`")[2]
    assert "  - swept: BLOCK=64: 1.2 ms\n" in text
    tuned = replace(other, candidate_id="r1i1v0a0t3", source="tuned();", sweep=swept.sweep)
    text = render_ideation(ideation(elites=(other, tuned), tried=(swept,)))
    assert text.count("BLOCK=64: 1.2 ms") == 1
    assert "Swept: BLOCK=64: 1.2 ms" in text.partition("### `r1i1v0a0t3`")[2]


def test_a_kernel_is_told_with_its_interval_and_its_time_at_eager_s_own() -> None:
    drifted = replace(ELITE, median_ms=4.9529, speedup=4.06, steady_ms=2.079, speedup_ci95=(3.9, 4.2), was_busy=True)
    text = render_ideation(ideation(elites=(drifted,), tried=()))
    assert "4.060× eager (3.90-4.20), 2.079 ms, timed on a busy machine." in text
    assert "4.9529" not in text
    assert "ms: eager's time above / speed-up" in text
    assert "busy" not in render_ideation(ideation(tried=()))


def test_no_bound_is_stated_beside_kernels_that_wait_for_something_else() -> None:
    text = render_ideation(ideation())
    assert "-bound." not in text and "is compute-bound" not in text
