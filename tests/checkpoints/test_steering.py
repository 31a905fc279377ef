"""What a user tells a search that has begun, as the archive keeps it."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.recording.recording import record
from ridgeline.checkpoints.steering import USER, Steer, Steering, SteerKind
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


@pytest.mark.parametrize(
    ("recorded", "new"), [("idea-2", "idea-3"), ("mine", "idea-1"), (f"idea-{'9' * 5000}", "idea-1")]
)
def test_an_idea_after_a_copied_one_gets_a_number_of_its_own(archive: Archive, recorded: str, new: str) -> None:
    steering = Steering(archive)
    steering.copy([Steer(id=recorded, kind=SteerKind.IDEA, text="unroll by four", from_round=2)])
    assert steering.add_idea("hold the row in registers").id == new
    assert len(steering.told(SteerKind.IDEA)) == 2


def test_a_stop_that_another_search_was_told_is_not_copied(archive: Archive) -> None:
    steering = Steering(archive)
    steering.copy([Steer(id="stop-1", kind=SteerKind.STOP)])
    assert not steering.take_stop()


def test_a_seed_gets_an_id_that_no_candidate_has(archive: Archive) -> None:
    fields = {"round": 0, "idea_id": None, "parent_id": None, "language": "cpp"}
    archive.add_candidate(Candidate(id="seed-fast", origin=Origin.SEED, source="// a", **fields))
    steering = Steering(archive)
    assert [steering.add_seed("fast", f"// {n}").name for n in (1, 2)] == ["seed-fast-2", "seed-fast-3"]
    assert steering.add_seed("other", "// 3").name == "seed-other"
    for source, name in (("// a", "seed-fast"), ("// 1", "seed-fast-2")):
        with pytest.raises(RunError, match=f"has this kernel already, as {name}"):
            steering.add_seed("again", source)


def test_two_seeds_that_are_told_at_once_get_two_names(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process tells its seed between the first one's reading of the names and its writing."""
    with Archive.open(archive.path.parent, create=False) as other:
        second = threading.Thread(target=lambda: Steering(other).add_seed("fast", "// 2"))
        query = archive.database.query

        def interrupted(sql: str, *given: Any) -> list[dict[str, Any]]:
            found = query(sql, *given)
            if "FROM steering" in sql and second.ident is None:
                second.start()
                second.join(timeout=0.5)  # it has told its seed by then, or waits for the first one to end
            return found

        monkeypatch.setattr(archive.database, "query", interrupted)
        Steering(archive).add_seed("fast", "// 1")
        second.join()
    told = Steering(archive).told(SteerKind.SEED)
    assert sorted((steer.name, steer.id) for steer in told) == [("seed-fast", "seed-1"), ("seed-fast-2", "seed-2")]


def test_a_recording_has_an_idea_in_the_round_in_which_the_users_own_was_tried(
    filled: Archive, story: SimpleNamespace
) -> None:
    steering = Steering(filled)
    told = [steering.add_idea(text) for text in ("loops", "hold the row", "hold the row in registers")]
    told.append(steering.add_idea("never taken up"))
    stated = (
        (1, "Unroll the loops", ""),
        (2, "As the user puts it: loops", USER),
        (3, "to hold the row in registers", ""),
    )
    stated += ((4, "hold the row in registers", USER), (5, "hold the row", USER))
    for round_, mechanism, model in stated:
        idea = replace(story.idea(round_, 9, f"Idea {round_}", None), mechanism=mechanism, model=model)
        filled.add_ideas([idea])
    found = {steer.id: steer.from_round for steer in record(filled).told}
    assert found == {told[0].id: 2, told[1].id: 5, told[2].id: 4}


def test_a_stop_is_gone_once_it_is_obeyed(archive: Archive) -> None:
    steering = Steering(archive)
    assert not steering.take_stop()
    steering.add_stop()
    steering.add_idea("hold the row in registers")
    assert not steering.take_stop(before="2020-01-01T00:00:00.000Z")
    assert steering.take_stop(before="9999-01-01T00:00:00.000Z")
    assert not steering.take_stop()
    assert len(steering.told(SteerKind.IDEA)) == 1


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("\x1b]0;x\x07\nfast", "seed-__0_x__fast"),
        ("my kernel", "seed-my_kernel"),
        ("v1.2-größer_3", "seed-v1.2-größer_3"),
        ("x" * 200, f"seed-{'x' * 60}"),
        ("\udcff", "seed-_"),
    ],
)
def test_a_seeds_name_is_short_and_of_letters(archive: Archive, stem: str, name: str) -> None:
    assert Steering(archive).add_seed(stem, "// 1").name == name
