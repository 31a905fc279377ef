"""What is taken of many things that are refused together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ridgeline.tools.judge.worker.domain.halving import UNTRIED, settle_by_halves, take_by_halves


def taken_of(asked: str, *clashes: str, halves: int = 99, taken: str = "") -> tuple[str, dict[str, str], list[str]]:
    """Return what is taken where no clash's letters may lie together, what is refused, and what was asked."""
    seen: list[str] = []

    def objection_to(half: Sequence[str], beside: frozenset[str]) -> str:
        seen.append("".join(half))
        return next((clash for clash in clashes if set(clash) <= beside.union(half)), "")

    found, refused = take_by_halves(
        asked,
        objection_to(asked, frozenset(taken)),
        frozenset(taken),
        objection_to=objection_to,
        is_over=lambda: len(seen) > halves,
    )
    return "".join(sorted(found)), refused, seen


def test_one_that_is_refused_alone_keeps_no_other_from_being_taken() -> None:
    assert taken_of("abcdefgh", "f") == ("abcdegh", {"f": "f"}, ["abcdefgh", "abcd", "efgh", "ef", "e", "f", "gh"])


@pytest.mark.parametrize(
    ("clash", "taken", "kept", "others"), [("ad", "", "abc", "d"), ("ad", "d", "bcd", "a"), ("xy", "x", "abcdx", "")]
)
def test_of_two_that_clash_the_one_taken_first_stays(clash: str, taken: str, kept: str, others: str) -> None:
    asked = "abcd".replace(taken, "") + ("y" if clash == "xy" else "")
    found, refused, _ = taken_of(asked, clash, taken=taken)
    assert (found, set(refused)) == (kept, set(others or "y"))


def test_what_is_refused_together_is_left_out_together_once_it_is_over() -> None:
    assert taken_of("abcd", "d", halves=0) == ("", dict.fromkeys("abcd", UNTRIED), ["abcd"])
    found, refused, _ = taken_of("abcdefgh", "f", halves=3)
    assert (found, refused) == ("abcdgh", dict.fromkeys("ef", UNTRIED))


def test_a_single_one_is_refused_for_its_own_reason_though_it_is_over() -> None:
    assert taken_of("a", "a", halves=0) == ("", {"a": "a"}, ["a"])


@pytest.mark.parametrize(
    ("asked", "clash", "refused", "noted"),
    [
        ("", "a", {}, [""]),
        ("abcd", "xy", {}, ["abcd"]),
        ("abcd", "ad", {"d": "ad"}, ["abcd", "ab", "abcd", "abc", "abcd", "abc"]),
        ("a", "a", {"a": "a"}, ["a", ""]),
    ],
)
def test_what_is_asked_for_is_noted_first_and_what_is_taken_last(
    asked: str, clash: str, refused: dict[str, str], noted: list[str]
) -> None:
    seen: list[str] = []

    def objection_to(part: Sequence[str], taken: frozenset[str]) -> str:
        assert "".join(sorted(taken.union(part))) == seen[-1]
        return clash if set(clash) <= set(seen[-1]) else ""

    found = settle_by_halves(asked, note=lambda some: seen.append("".join(sorted(some))), objection_to=objection_to)
    assert (found, seen) == (refused, noted)
