"""How to use the winner: commands that can be copied, and what `run` takes."""

from __future__ import annotations

import ast
import dataclasses
import shlex
from pathlib import Path

import pytest
from tests.checkpoints.conftest import fill, make_description
from tests.checkpoints.report.reading import Page, read_page

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report.page import render_report
from ridgeline.checkpoints.report.winner_use import winner_use
from ridgeline.checkpoints.result import build_result, choose_best
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import Interface, Role


def page_of(archive: Archive) -> Page:
    return read_page(render_report(archive, build_result(archive), state_words="finished"))


def commands(archive: Archive) -> list[str]:
    found = page_of(archive).find("section", id="use")[0].find("pre", class_="command")
    return ["".join(str(piece) for piece in each.texts) for each in found]


@pytest.mark.parametrize("name", ["run", "a b; rm -rf x", 'it\'s "quoted" \\'])
def test_a_command_names_the_run_as_a_shell_reads_it_and_what_runs_in_its_folder_names_none(
    tmp_path: Path, name: str
) -> None:
    with Archive.open(tmp_path / name / "archive.sqlite") as archive:
        fill(archive)
        by_hand, ship, load, flags = commands(archive)
    assert by_hand == "python use_kernel.py"
    assert shlex.split(ship) == ["ridgeline", "ship", name, "--out", "DIR"]
    called = next(node for node in ast.walk(ast.parse(load)) if isinstance(node, ast.Call) and len(node.args) == 2)
    assert isinstance(called.args[0], ast.Constant) and called.args[0].value == "."
    assert flags == "-O3 -march=native"


def test_a_kernel_without_a_certificate_is_loaded_as_such(filled: Archive) -> None:
    filled.save_certificate((filled.certificate_json() or {}) | {"passed": False})
    told = commands(filled)
    assert "--uncertified" in told[1] and "uncertified=True" in told[2]


@pytest.mark.parametrize("head", ["", "def get_init_inputs():\n    return [8]\n"])
def test_the_model_is_made_as_the_reference_makes_it(filled: Archive, head: str) -> None:
    filled.save_run(RunRecord(reference_source=f"{head}class Model: ..."))
    load = commands(filled)[2]
    assert ("Model, get_init_inputs, get_inputs" in load, "Model(*get_init_inputs())" in load) == (bool(head),) * 2
    assert "import Model, get_inputs" in load or head


@pytest.mark.parametrize(
    ("interface", "entry", "roles"),
    [
        (Interface.C, "run", ["input", "parameter", "output"]),
        (Interface.TORCH, "forward", ["input", "parameter"]),
        (Interface.MODULE, "ModelNew.forward", ["input"]),
    ],
)
def test_each_interface_is_called_by_its_own_entry_with_what_that_takes(
    filled: Archive, interface: Interface, entry: str, roles: list[str]
) -> None:
    best = choose_best(filled)
    assert best is not None
    weight = ArgSpec(name="w", role=Role.PARAMETER, shape=(4,), strides=(1,))
    x, out = make_description().signature.args
    filled.save_description(dataclasses.replace(make_description(), signature=Signature(args=(x, weight, out))))
    own = dataclasses.replace(best, candidate=dataclasses.replace(best.candidate, interface=interface))
    use = winner_use(filled, own)
    assert use is not None and (use.entry, [role for _, role, _ in use.arguments]) == (entry, roles)
    assert (use.has_workspace, use.is_loadable) == (interface is Interface.C, interface is not Interface.MODULE)


def test_what_neither_ship_nor_load_takes_is_advised_of_neither(filled: Archive) -> None:
    x, out = make_description().signature.args
    after = dataclasses.replace(out, name="x_after")
    filled.save_description(dataclasses.replace(make_description(), signature=Signature(args=(x, out, after))))
    assert commands(filled) == ["python use_kernel.py", "-O3 -march=native"]
    (section,) = page_of(filled).find("section", id="use")
    assert (
        "There is no package of it, and ridgeline.load does not take it: its reference writes its input x"
        in section.text
    )


def test_arguments_stand_in_order_and_strides_where_they_are_not_contiguous(filled: Archive) -> None:
    turned = ArgSpec(name="w", role=Role.PARAMETER, shape=(4, 8), strides=(1, 4))
    args = make_description().signature.args
    filled.save_description(
        dataclasses.replace(make_description(), signature=Signature(args=(args[0], turned, args[1])))
    )
    rows = [row.text for row in page_of(filled).find("section", id="use")[0].find("tr")][1:]
    assert rows == [
        "x input float32, 2048 × 768",
        "w parameter float32, 4 × 8, strides 1 × 4",
        "out output float32, 2048 × 768",
    ]
