"""What each idea took: its own calls, its share of the request that brought it, its kernels' judging."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.history.spending import Spent, spending
from ridgeline.tools.errors import StorageError


def call(
    archive: Archive, call_id: str, tokens: int, usd: float | None, latency_s: float, model: str = "offline"
) -> None:
    journal = Journal(archive)
    journal.begin(call_id, model=model, prompt_sha256="ab", request={})
    reply = {"text": "{}", "input_tokens": tokens, "output_tokens": 0, "usd": usd, "latency_s": latency_s}
    journal.finish(call_id, reply)


@pytest.fixture
def spent(archive: Archive, story: SimpleNamespace) -> Archive:
    archive.add_ideas([story.idea(1, 0, "A", None), story.idea(1, 1, "B", None)])
    for name, idea in (("r1i0v0a0", "r1i0"), ("r1i0v0a0t1", "r1i0"), ("r1i1v0a0", "r1i1")):
        archive.add_candidate(story.candidate(name, idea_id=idea))
    call(archive, "r1:ideate:0", 1000, 0.10, 20)
    call(archive, "r1i0v0a0:write", 300, 0.03, 5)
    call(archive, "r1i0v0a1:write", 200, None, 4, model="openai:o3")
    call(archive, "r1i1v0a0:write", 50, 0.01, 1)
    archive.charge("r1i0v0a0:search", cpu_s=2.0, wall_s=3.0, what="search")
    archive.charge("r1i0v0a0t1:tune", cpu_s=1.0, wall_s=1.5, what="tune")
    archive.charge("r1i0v0a0:r1i1v0a0:compare", cpu_s=9.0, wall_s=9.0, what="compare")
    archive.charge("r1i0v0a0:certify:build", cpu_s=9.0, wall_s=9.0, what="certify")
    archive.charge("baseline", cpu_s=9.0, wall_s=9.0, what="baseline")
    return archive


def test_an_idea_is_charged_its_calls_its_share_and_its_kernels(spent: Archive) -> None:
    found = spending(spent).by_idea
    first, second = found["r1i0"], found["r1i1"]
    assert (first.tokens, first.unpriced) == (1000, 1)
    assert (
        first.usd == pytest.approx(0.08) and first.model_s == pytest.approx(19) and first.judged_s == pytest.approx(4.5)
    )
    assert first.writers == ["offline", "openai:o3"]
    assert (second.tokens, second.judged_s) == (550, 0.0)


def test_what_ideas_took_is_what_the_search_paid(spent: Archive) -> None:
    totals, found = Journal(spent).totals(), spending(spent).by_idea.values()
    assert sum(each.tokens for each in found) == totals.tokens
    assert sum(each.usd for each in found) == pytest.approx(totals.usd)


def test_a_kernel_has_its_own_calls_alone(spent: Archive) -> None:
    found = spending(spent).by_candidate
    assert found["r1i0v0a1"] == Spent(tokens=200, usd=0, unpriced=1, model_s=4.0, writers=["openai:o3"])
    assert found.keys() == {"r1i0v0a0", "r1i0v0a1", "r1i1v0a0"}


def test_a_cost_that_is_no_number_is_a_damaged_archive(spent: Archive) -> None:
    with spent.database.write() as rows:
        rows.execute("UPDATE ledger SET wall_s = 'much' WHERE entry_id = 'r1i0v0a0:search'")
    with pytest.raises(StorageError, match="damaged"):
        spending(spent)
