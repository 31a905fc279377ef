import inspect

import pytest

from ridgeline.tools import errors
from ridgeline.tools.errors import EngineError, RidgelineError
from ridgeline.tools.records.told_error import ERRORS, ToldError


def test_every_error_of_the_tree_has_a_name_on_the_wire() -> None:
    tree = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RidgelineError)}
    assert set(ERRORS.values()) == tree
    assert len(ERRORS) == len(tree)


@pytest.mark.parametrize("kind", ERRORS.values())
def test_an_error_arrives_as_itself(kind: type[RidgelineError]) -> None:
    told = ToldError.from_json(ToldError.of(kind("what to do")).to_json()).as_exception()
    assert (type(told), str(told)) == (kind, "what to do")


@pytest.mark.parametrize("kind", ERRORS.values())
@pytest.mark.parametrize("was_killed", [True, False])
def test_whether_a_program_was_killed_arrives_with_its_error(kind: type[RidgelineError], was_killed: bool) -> None:
    error = kind("what to do", was_killed=was_killed)
    assert error.was_killed is (was_killed or kind.was_killed)
    assert ToldError.from_json(ToldError.of(error).to_json()).as_exception().was_killed is error.was_killed


def test_an_error_of_an_earlier_version_is_read() -> None:
    told = ToldError.from_json({"type": "EngineError", "message": "gone"})
    assert not told.as_exception().was_killed


def test_a_class_outside_the_tree_is_told_as_its_closest_parent() -> None:
    class Local(errors.DeviceError): ...

    assert ToldError.of(Local("gone")) == ToldError(type="DeviceError", message="gone")


def test_an_unknown_name_is_an_internal_error() -> None:
    error = ToldError(type="SystemExit", message="0").as_exception()
    assert (type(error), str(error)) == (EngineError, "SystemExit: 0")
