from __future__ import annotations

import dataclasses
import json
import re
from types import SimpleNamespace

import pytest
from tests.checkpoints.report.reading import read_page

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report.certificate import render_certificate
from ridgeline.checkpoints.report.page import render_report
from ridgeline.checkpoints.report.wording import stage_words
from ridgeline.checkpoints.result import STATE_WORDS, BestKernel, build_result
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.tools.records.keys import comparison_key
from ridgeline.tools.records.results import Comparison, Profile, StageTime
from ridgeline.tools.records.vocabulary import SEARCHED, Origin, Purpose, ReasonCode, Status

NEWER = ("reference_source", "versions", "strategy", "sandbox_tier")  # absent from older runs' records
HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>'


def _render(archive: Archive) -> str:
    result = build_result(archive)
    return render_report(archive, result, state_words=STATE_WORDS[result["state"]])


def _certify(archive: Archive, **fields: object) -> None:
    """Change the certificate of the filled archive."""
    archive.save_certificate((archive.certificate_json() or {}) | fields)


def test_report_is_well_formed_and_asks_nothing_of_the_network(filled: Archive) -> None:
    page = _render(filled)
    found = read_page(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(found.tags)
    assert not [n for n, _ in found.every_attribute if n.startswith("on") or n in {"src", "xlink:href"}]
    assert all(str(value).startswith("#") for name, value in found.every_attribute if name == "href")
    assert not re.search(r"url\(|@import|https?://", page)


def test_what_models_and_users_wrote_never_becomes_markup(filled: Archive, story: SimpleNamespace) -> None:
    filled.add_ideas([story.idea(5, 1, HOSTILE, None)])
    filled.add_candidate(
        story.candidate("r5i1v0a0", round=5, idea_id="r5i1", source=HOSTILE, tunables={HOSTILE: HOSTILE}, parent_id="x")
    )
    filled.add_evaluation(story.ok("r5i1v0a0", 3.5))
    filled.add_ideas([story.idea(5, 2, "Fails", None)])
    filled.add_candidate(story.candidate("r5i2v0a0", round=5, idea_id="r5i2"))
    filled.add_evaluation(story.failed("r5i2v0a0", Status.WRONG, ReasonCode.WRONG_VALUES, HOSTILE))
    filled.save_certificate({"candidate": {"id": HOSTILE}, "passed": False, "reason": HOSTILE, "labels": [HOSTILE]})
    filled.save_run(
        RunRecord(best_id="r5i1v0a0", models=(HOSTILE,), problem={"name": HOSTILE}, versions={"x": HOSTILE})
    )
    found = read_page(_render(filled))
    assert not {"script", "img"} & set(found.tags)
    assert not [n for n, _ in found.every_attribute if n.startswith("on")]


def test_report_says_the_verdict_the_baselines_and_the_lineage(filled: Archive) -> None:
    page = _render(filled)
    for text in (
        "2.27×", "interval 2.22 to 2.32", "torch.compile 0.840 ms", "memory floor 0.420 ms", "seed kernel",
        "UNROLL = 8", "killed by SIGSEGV", "memory checks (address, undefined)", "ok, 20 of 20 trials, fp32",
        "sapphirerapids-1f", "<td>eager with TF32</td>",
    ):  # fmt: skip
        assert text in page, text
    assert f"<td>{'ab' * 32}</td>" in page


def test_the_report_says_which_kernels_each_of_its_counts_takes(filled: Archive) -> None:
    page = _render(filled)
    candidates, judged = filled.candidates(), {e.candidate_id for e in filled.evaluations() if e.purpose in SEARCHED}
    written, seeds, tuned = (
        sum(c.origin is origin and c.id in judged for c in candidates)
        for origin in (Origin.MODEL, Origin.SEED, Origin.TUNE)
    )
    assert min(written, seeds, tuned) > 0
    told = f"{written} written, {seeds} given as seeds, {tuned} tuned"
    assert f'How {written + seeds + tuned} judged kernels ended <span class="soft small">{told}</span>' in page
    assert "<dt>rounds · written kernels</dt>" in page


@pytest.mark.parametrize("bound", ["compute", "unheard of"])
def test_the_floor_told_first_is_the_one_that_binds(filled: Archive, story: SimpleNamespace, bound: str) -> None:
    assert "<dt>memory floor</dt><dd>0.420 ms</dd>" in _render(filled)
    baselines = story.baselines()
    floor = dataclasses.replace(baselines.floor, compute_floor_ms=0.9, bound=bound)
    filled.save_baselines(dataclasses.replace(baselines, floor=floor))
    page = _render(filled)
    assert "<dt>memory floor</dt><dd>0.420 ms</dd>" in page and "<dt>arithmetic floor (binds)</dt><dd>0.900 ms" in page
    assert "memory floor 0.420 ms, arithmetic floor 0.900 ms (binds): compulsory bytes" in page
    assert "</svg>arithmetic floor: 0.900 ms</span>" in page and "arithmetic floor 0.900 ms</text>" in page
    assert ">floor: " not in page and "bound:" not in page


def test_a_kernel_below_the_arithmetic_floor_is_explained_beside_it(filled: Archive, story: SimpleNamespace) -> None:
    best_ms = build_result(filled)["best"]["median_ms"]
    baselines, why = story.baselines(), "the kernel does fewer operations than the reference, or that ceiling"
    for arithmetic_ms, times in ((2 * best_ms, 2), (0.99 * best_ms, 0)):
        floor = dataclasses.replace(baselines.floor, compute_floor_ms=arithmetic_ms, bound="compute")
        filled.save_baselines(dataclasses.replace(baselines, floor=floor))
        page = _render(filled)
        assert "arithmetic floor (binds)" in page and page.count(why) == times, arithmetic_ms


def test_headline_says_where_no_gain_over_pytorch_s_best_is_proven(filled: Archive) -> None:
    assert "no faster than" not in _render(filled)
    result = build_result(filled)
    for ratio, told in ((0.999, "no faster than"), (1.001, "no proven gain over"), (0.7, "slower than")):
        figure = "0.70" if ratio == 0.7 else f"{ratio:.3f}"
        changed = result | {"best": result["best"] | {"speedup_vs_best": ratio}}
        page = render_report(filled, changed, state_words="")
        assert f"as fast as eager PyTorch, but {told} PyTorch&#39;s best configuration: {figure}x, certified" in page
        assert f"<dd>{figure}×</dd>" in page


def test_every_figure_over_pytorch_stands_on_the_headline_s_basis(filled: Archive) -> None:
    times = {"eager": 2.0, "compile": 1.5}  # measured again; the search's were 1.21 and 0.84
    again = [e | {"median_ms": times[e["name"]]} for e in filled.certificate_json()["baselines"] if e["name"] in times]
    _certify(filled, baselines=again)
    page = _render(filled)
    assert '<div class="figure">2.27×</div>' in page
    assert "as fast as eager PyTorch, certified; 95 % interval" in page
    for time_words, figure in (("2.000 ms", "2.27×"), ("1.500 ms", f"{2.27 * 1.5 / 2.0:.2f}×")):
        assert re.search(rf'{time_words}</td>\s*<td class="n">{figure}</td>', page), figure
    assert "certified 2.27×</text>" in page and "best in the search 2.31×</text>" in page


def test_best_in_the_search_is_the_kernel_that_the_search_ranks_first(filled: Archive, story: SimpleNamespace) -> None:
    lucky = story.ok("r4i1v9a0", 3.5)
    wide = dataclasses.replace(lucky.timing, speedup_ci95=(1.1, 4.0))
    filled.add_candidate(story.candidate("r4i1v9a0", round=4, idea_id="r4i1"))
    filled.add_evaluation(dataclasses.replace(lucky, timing=wide))
    page = _render(filled)
    assert "best in the search 2.31×</text>" in page
    assert "highest lower end" in page


def test_prediction_names_the_parent_and_the_parent_its_figure(filled: Archive) -> None:
    page = _render(filled)
    row = next(row for row in read_page(page).find("tr") if row.text.startswith("r4i1"))
    assert {"predicted", "measured", "best over eager"} <= {cell.attributes.get("data-name") for cell in row.find("td")}
    assert (
        f"{2.31 / 2.18:.2f}×" in row.text and "1.30×over its parent" in row.text and "from r3i1v1a0 2.18×" in row.text
    )
    assert "UNROLL=8: " in page and "r1i4v1a0: " in page


def test_a_configuration_that_failed_is_named_beside_the_best(filled: Archive) -> None:
    entries = [
        e | ({"median_ms": None} if e["name"] == "compile" else {}) for e in filled.certificate_json()["baselines"]
    ]
    _certify(filled, baselines=entries)
    assert "over PyTorch's best configuration (torch.compile failed: no figure)" in _render(filled)


def test_a_search_that_ends_with_its_own_seed_says_so(filled: Archive) -> None:
    assert "beat the seed" not in _render(filled)
    filled.save_run(RunRecord(best_id="seed-fused"))
    page = _render(filled)
    assert "No kernel beat the seed that was given; this is that seed" in page
    assert "it is a seed" in page
    standing = (
        r"as fast as eager PyTorch, but slower than PyTorch&#39;s best configuration[^:]*: [\d.]+x, not certified \("
    )
    assert re.search(standing, page), "the certificate is another kernel's"


def test_a_kernel_slower_than_pytorch_is_not_called_a_winner(archive: Archive, story: SimpleNamespace) -> None:
    archive.save_baselines(story.baselines())
    archive.add_ideas([story.idea(1, 1, "Fuse both passes", None)])
    archive.add_candidate(story.candidate("r1i1v0a0", idea_id="r1i1"))
    archive.add_evaluation(story.ok("r1i1v0a0", 0.74))
    page = _render(archive)
    assert "slower than PyTorch, not certified" in page
    assert "Fastest so far: Fuse both passes" in page
    assert 'class="verdict none"' in page


def test_on_a_phone_ideas_are_cards_and_the_chart_scrolls(filled: Archive) -> None:
    page = _render(filled)
    narrow = page[page.index("@media (max-width: 600px)") : page.index("@media print")]
    assert ".cards tr { display: block" in narrow and ".scroll svg { min-width: 700px; }" in narrow
    scrolled = [each for each in read_page(page).find("div") if each.attributes.get("class") == "scroll"]
    assert [[inner.tag for inner in each.children] for each in scrolled] == [["svg"], ["svg"]]
    ideas = len(filled.ideas())
    assert page.count('data-name="predicted"') == page.count('data-name="best over eager"') == ideas


def test_certificate_rows_read_as_words(filled: Archive) -> None:
    cells = {cell.text for cell in read_page(_render(filled)).find("td")}
    for text in (
        "r4i1v0a0t3 with UNROLL: 8",
        "certified",
        "1.724x (1.695 to 1.770)",
        "-O3 -march=native",
        "ok, 20 of 20 trials, fp32",
    ):
        assert text in cells, text


def test_a_shape_that_a_kernel_was_not_made_for_is_told_as_a_limit_and_not_as_wrong(filled: Archive) -> None:
    tried = [
        {"sizes": {"ROWS": 1024}, "status": "ok", "reason": "", "rel_error": 2e-7},
        {"sizes": {"ROWS": 8}, "status": "wrong", "reason": "99 % are wrong", "rel_error": 0.6},
        {"sizes": {"COLS": 767}, "status": "compile_error", "reason": "needs multiples", "rel_error": None},
        {"sizes": {"COLS": 9}, "status": "runtime_error", "reason": "crashed", "rel_error": None},
    ]
    _certify(filled, other_shapes={"skipped": "", "refused_by_reference": [], "shapes": tried})
    row = next(row for row in read_page(_render(filled)).find("tr") if row.text.startswith("other shapes"))
    assert "wrong" not in row.text
    assert row.text.removeprefix("other shapes ").split("; ") == [
        "ROWS = 1024: right there too",
        "ROWS = 8: a limit: made for the shape of the search, other results here",
        "COLS = 767: a limit: made for the shape of the search, does not build here (needs multiples)",
        "COLS = 9: a limit: made for the shape of the search, breaks off here (crashed)",
    ]


def test_the_rounds_tell_what_took_the_rest_of_the_time(filled: Archive) -> None:
    in_rounds_s = sum(entry["wall_s"] or 0.0 for entry in build_result(filled)["history"])
    filled.save_run(RunRecord(wall_s=in_rounds_s + 100.0))
    _certify(filled, seconds={"time": 40.0})
    assert "the first with what came before it, the certificate&#39;s steps 40 s; PyTorch&#39;s" in _render(filled)
    filled.save_run(RunRecord(wall_s=in_rounds_s))
    _certify(filled, seconds={})
    assert "with what came before it" not in _render(filled)


def test_environment_tells_strategy_and_tier_and_an_older_archive_lacks_them(filled: Archive) -> None:
    page = _render(filled)
    for key, value in (("strategy", "branch"), ("sandbox tier", "A"), ("compiler", "g++ 12.2.0")):
        assert f'<tr><td class="soft">{key}</td><td>{value}</td></tr>' in page
    older = {k: v for k, v in filled.run().to_json().items() if k not in NEWER}
    with filled.database.write() as rows:
        rows.execute("UPDATE runs SET record = ?", [json.dumps(older | {"settings": {"strategy": "revision"}})])
    page = _render(filled)
    assert '<td class="soft">strategy</td><td>revision</td>' in page
    assert "sandbox tier" not in page


@pytest.mark.parametrize("state", STATE_WORDS)
def test_report_says_how_the_search_ended(archive: Archive, state: str) -> None:
    archive.save_run(RunRecord(state=state))
    assert f"· {STATE_WORDS[state]}</div>" in _render(archive)


def test_report_of_a_search_without_any_result_says_so(archive: Archive) -> None:
    page = _render(archive)
    read_page(page)
    assert "No kernel was judged yet." in page
    assert "No idea was tried." in page


def test_a_page_of_a_search_that_ended_without_a_winner_has_the_fastest_right_kernel(
    archive: Archive, story: SimpleNamespace
) -> None:
    story.fill(archive)
    archive.forget_winner()
    archive.save_run(RunRecord(best_id="", state="no_gain"))
    page = _render(archive)
    assert "Fastest: Align the row buffer" in page and "as fast as eager PyTorch, not certified" in page
    assert 'class="verdict none"' in page


def test_a_headline_without_a_speedup_says_so_and_is_no_zero(filled: Archive) -> None:
    result = build_result(filled)
    result["best"] |= {"speedup": None, "speedup_vs_best": None, "speedup_vs_seed": None}
    page = render_report(filled, result, state_words="finished")
    assert "speedup over eager PyTorch not measured, certified, fp32 precision." in page
    assert "0.00×" not in page


def test_a_kernel_that_is_not_surely_faster_is_not_called_a_gain(archive: Archive, story: SimpleNamespace) -> None:
    archive.save_baselines(story.baselines())
    archive.add_candidate(story.candidate("r1i1v0a0"))
    archive.add_evaluation(story.ok("r1i1v0a0", 1.01))
    assert "as fast as eager PyTorch, but no proven gain over it, not certified" in _render(archive)


def test_headline_of_page_and_certificate_say_that_no_gain_over_the_seed_is_proven(filled: Archive) -> None:
    told = "as fast as eager PyTorch, but no proven gain over the best seed kernel: 1.02x (95 % 0.97 to 1.08)"
    assert told not in _render(filled)
    tie = Comparison(ratio=1.02, ratio_ci95=(0.97, 1.08), first_ms=1.02, second_ms=1.0, blocks=9)
    winner = build_result(filled)["best"]["id"]
    filled.save("comparisons", comparison_key("seed-fused", winner, "builds"), winner, tie)
    assert told in _render(filled)
    certificate = filled.certificate()
    assert certificate is not None and certificate.passed
    assert told in render_certificate(certificate, best=BestKernel.read(build_result(filled))).splitlines()[0]


def test_a_kernel_whose_certificate_failed_is_not_called_a_gain(filled: Archive) -> None:
    _certify(filled, passed=False, reason="re-timing: its interval includes 1")
    page = _render(filled)
    assert "not certified (re-timing: its interval includes 1)" in page
    assert 'class="verdict none"' in page


def test_audit_of_a_certificate_is_told_in_words(filled: Archive) -> None:
    timing = {"status": "ok", "speedup": 12.0, "speedup_ci95": [11.8, 12.2], "median_ms": 1.0}
    audit = {"passed": True, "reason": "", "verification": None, "timings": [timing, timing]}
    _certify(filled, audit=audit)
    page = render_report(filled, build_result(filled), state_words="finished")
    assert "passed; 1 ms, 12.000x (11.800 to 12.200); 1 ms, 12.000x (11.800 to 12.200)" in page


def test_names_from_elsewhere_stand_on_the_page_without_what_commands_a_terminal(filled: Archive) -> None:
    hostile = "a\x1b[2J\u202eb"
    replay = {"run": hostile, "times": True, "measured_on": hostile, "measured_at": hostile}
    device = filled.run().device
    assert device is not None
    filled.save_run(RunRecord(replay=replay, device=dataclasses.replace(device, name=hostile)))
    page = render_report(filled, build_result(filled), state_words="finished")
    assert page.count("a [2J b") >= 4
    assert not set("\x1b\u202e") & set(page)


def test_ideas_are_told_by_how_many_named_the_largest_stage_of_their_parent(filled: Archive) -> None:
    assert "timed stages" not in _render(filled)
    parent = next(idea.parent_id for idea in filled.ideas(2))
    found = filled.evaluation(parent, Purpose.SEARCH)
    assert found is not None
    stages = (StageTime(name="sweep", ms=1.0, share=1.0),)
    figures = {"fraction_of_floor": None, "achieved_gbps": None, "achieved_gflops": None}
    filled.save("profiles", found.key, parent, Profile(bound="memory", stages=stages, **figures))
    count = sum(idea.parent_id == parent for idea in filled.ideas())
    said = f"1 of {count} ideas that start from a kernel with timed stages aims at its longest stage."
    assert said in _render(filled)


@pytest.mark.parametrize(
    ("ideas", "named", "said"),
    [(1, 1, "1 of 1 ideas … aims"), (3, 2, "2 of 3 ideas … aim"), (3, 0, "none of 3 ideas … aims")],
)
def test_ideas_at_the_longest_stage_are_told_in_one_sentence(ideas: int, named: int, said: str) -> None:
    whole = f"{said.replace('…', 'that start from a kernel with timed stages')} at its longest stage"
    assert stage_words(ideas, named) == whole
    assert stage_words(0, 0) == ""
