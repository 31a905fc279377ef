"""What a user tells a search that has begun, as the archive keeps it."""

from __future__ import annotations

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.steering import Steering, SteerKind
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin


def test_ideas_stay_in_their_order_and_none_is_told_twice(archive: Archive) -> None:
    steering = Steering(archive)
    told = [steering.add_idea("hold the row in registers"), steering.add_idea("unroll by four", from_round=3)]
    assert [steer.id for steer in told] == ["idea-1", "idea-2"]
    assert steering.told(SteerKind.IDEA) == told
    assert steering.told(SteerKind.IDEA, upto_round=2) == told[:1]
    with pytest.raises(RunError, match="was told this idea before"):
        steering.add_idea("unroll by four")


def test_a_seed_gets_an_id_that_no_candidate_has(archive: Archive) -> None:
    fields = {"round": 0, "idea_id": None, "parent_id": None, "language": "cpp"}
    archive.add_candidate(Candidate(id="seed-fast", origin=Origin.SEED, source="// a", **fields))
    steering = Steering(archive)
    assert [steering.add_seed("fast", f"// {n}").name for n in (1, 2)] == ["seed-fast-2", "seed-fast-3"]
    assert steering.add_seed("other", "// 3").name == "seed-other"
    for source, name in (("// a", "seed-fast"), ("// 1", "seed-fast-2")):
        with pytest.raises(RunError, match=f"has this kernel already, as {name}"):
            steering.add_seed("again", source)


def test_a_stop_is_gone_once_it_is_obeyed(archive: Archive) -> None:
    steering = Steering(archive)
    assert not steering.take_stop()
    steering.add_stop()
    steering.add_idea("hold the row in registers")
    assert not steering.take_stop(before="2020-01-01T00:00:00.000Z")
    assert steering.take_stop(before="9999-01-01T00:00:00.000Z")
    assert not steering.take_stop()
    assert len(steering.told(SteerKind.IDEA)) == 1
