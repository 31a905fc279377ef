"""The contract of a ModelNew: what stored descriptions hold opens, and nothing else passes for an argument or a result."""

from __future__ import annotations

import json

import pytest
from tests.descriptions import description_of

from ridgeline.tools.records.module_contract import (
    Argument,
    DictArgument,
    DictResult,
    LiteralArgument,
    ModuleContract,
    ModuleSetup,
    OtherResult,
    ResultForm,
    SequenceArgument,
    SequenceResult,
    TensorArgument,
    TensorResult,
)
from ridgeline.tools.records.problem import Description

STORED = json.loads("""{
  "init": "[4]",
  "state": {"lin.weight": "lin.weight", "same.weight": "lin.weight"},
  "first_values": {"lin.weight": "00ff", "same.weight": "00ff"},
  "arguments": [0, {"list": [1, {"tuple": []}]}, {"value": "2.5"}, {"dict": [["'x'", 2], ["'more'", {"tuple": [3]}]]}],
  "form": {"a": "tensor", "b": ["tensor", ["other"]]},
  "copied": [2],
  "appended": []
}""")
"""A contract as a description's JSON has held it since descriptions are stored."""


def test_a_stored_description_opens_as_records_and_stays_as_it_was() -> None:
    stored = description_of().to_json() | {"module": STORED}
    description = Description.from_json(json.loads(json.dumps(stored)))
    assert description.module == ModuleContract(
        init="[4]",
        state={"lin.weight": "lin.weight", "same.weight": "lin.weight"},
        first_values={"lin.weight": "00ff", "same.weight": "00ff"},
        arguments=(
            TensorArgument(index=0),
            SequenceArgument(
                is_tuple=False, parts=(TensorArgument(index=1), SequenceArgument(is_tuple=True, parts=()))
            ),
            LiteralArgument(source="2.5"),
            DictArgument(
                entries=(
                    ("'x'", TensorArgument(index=2)),
                    ("'more'", SequenceArgument(is_tuple=True, parts=(TensorArgument(index=3),))),
                )
            ),
        ),
        form=DictResult(
            entries=(
                ("a", TensorResult()),
                ("b", SequenceResult(parts=(TensorResult(), SequenceResult(parts=(OtherResult(),))))),
            )
        ),
        copied=(2,),
    )
    assert description.to_json() == stored


def test_a_runner_is_told_which_pointer_holds_each_weight() -> None:
    contract = ModuleContract.from_json(STORED)
    setup = contract.setup("class ModelNew: ...", ["x", "lin.weight", ""])
    assert setup.state == {"lin.weight": 1, "same.weight": 1}
    assert setup.to_json() == STORED | {"state": setup.state, "source": "class ModelNew: ..."}
    assert ModuleSetup.from_json(json.loads(json.dumps(setup.to_json()))) == setup


@pytest.mark.parametrize("data", ["tensor", None, True, {"set": []}, {"value": 2.5}, {"dict": [["'x'"]]}])
def test_anything_else_is_no_argument(data: object) -> None:
    with pytest.raises(ValueError, match="no (argument|entry)"):
        Argument.from_json(data)


@pytest.mark.parametrize("data", ["tensors", None, 3, [["tensor"], 1]])
def test_anything_else_is_no_form_of_a_result(data: object) -> None:
    with pytest.raises(ValueError, match="no form"):
        ResultForm.from_json(data)
