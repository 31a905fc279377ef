"""The whole graph on real SQLite."""

from __future__ import annotations

from ridgeline.tools.records.vocabulary import Origin
from tests.graph.conftest import Search


async def test_search_runs_every_planned_branch_and_certifies_the_fastest(search: Search) -> None:
    output = await search.run(search.context())
    assert output["outcome"] == "finished"
    assert output["round"] == 2
    assert output["certified"]
    written = search.archive.candidates(origin=Origin.MODEL)
    assert {c.id for c in written} == {f"r{r}i{i}v{v}a0" for r in (1, 2) for i in (0, 1) for v in (0, 1)}
    certificate = search.archive.certificate()
    assert certificate is not None
    assert certificate["candidate"]["id"] == output["best_id"]
