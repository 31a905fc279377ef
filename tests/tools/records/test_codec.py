"""Records and their JSON: a value of another type is refused where it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import ArgSpec
from ridgeline.tools.records.results import Comparison, Trial
from ridgeline.tools.records.vocabulary import Origin, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class _Others(Record):
    version: int | str | None = None
    facts: Mapping[str, float | None] | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tuples(Record):
    names: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None


def test_tuples_come_back_from_lists() -> None:
    whole = _Tuples(names=("a", "b"), pair=("c", "d"))
    assert whole.to_json() == {"names": ["a", "b"], "pair": ["c", "d"]}
    assert _Tuples.from_json(whole.to_json()) == whole


@pytest.mark.parametrize("field", ["names", "pair"])
@pytest.mark.parametrize("value", ["ab", {"a": 1, "b": 2}, 3])
def test_a_tuple_is_read_from_a_list_alone(field: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{field}: .* is no list"):
        _Tuples.from_json({field: value})


@pytest.mark.parametrize("version", [1, "1"])
def test_a_value_of_one_of_several_types_keeps_its_own(version: int | str) -> None:
    assert _Others.from_json({"version": version}).version == version


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unions(Record):
    name: Origin | str
    word: str | Origin


def test_the_first_of_several_types_that_takes_a_value_has_it_also_where_two_fields_name_the_same_ones() -> None:
    read = _Unions.from_json({"name": "seed", "word": "seed"})
    assert (type(read.name), type(read.word)) == (Origin, str)


@pytest.mark.parametrize("field", ["version", "facts", "origin"])
def test_a_value_of_another_type_is_refused_by_its_fields_name(field: str) -> None:
    with pytest.raises(TypeError, match=f"{field}: .* is no "):
        _Others.from_json({field: [1.5]})


@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_no_number(value: bool) -> None:
    with pytest.raises(TypeError, match=f"version: {value} is no str"):
        _Others.from_json({"version": value})
    with pytest.raises(TypeError, match=f"strides: {value} is no int"):
        ArgSpec.from_json(ARG.to_json() | {"strides": [value]})
    with pytest.raises(TypeError, match=f"facts: {value} is no float"):
        _Others.from_json({"facts": {"cores": value}})


ARG = ArgSpec(name="x", role=Role.INPUT, shape=(2, 3), strides=(3, 1))
TRIAL = Trial(name="nominal_0", rel_error=math.inf, gate=1e-3, passed=False)


def test_a_record_comes_back_as_it_was_with_its_infinities() -> None:
    assert ArgSpec.from_json(ARG.to_json()) == ARG
    assert Trial.from_json(TRIAL.to_json()) == TRIAL


@pytest.mark.parametrize(
    "wrong",
    [{"strides": None}, {"strides": "31"}, {"strides": 3}, {"shape": [None]}, {"name": None}, {"value": 10**400}],
)
def test_a_field_that_no_record_wrote_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        ArgSpec.from_json(ARG.to_json() | wrong)


def test_none_stands_only_where_a_field_may_have_none() -> None:
    assert ArgSpec.from_json(ARG.to_json() | {"value": None}) == ARG
    with pytest.raises(TypeError, match="None is no float"):
        Trial.from_json(TRIAL.to_json() | {"gate": None})
    with pytest.raises(TypeError, match="None is no float"):
        Floor.from_json({"class_gflops": {"fp32": None}})
    with pytest.raises(ValueError, match="shorter"):
        Comparison.from_json({"ratio_ci95": [1.0]})
