"""What is written of a run, and what cannot be shipped."""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.graph.cli.command_line import assert_one_line, ridgeline

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.graph.shipping.ship import ShipRequest, ship
from ridgeline.tools.errors import InputError, RunError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, Origin, RunState

from .finished_run import REFERENCE, Finished, write_run


def request(tmp_path: Path, finished: Finished | None = None, **wanted: object) -> ShipRequest:
    return ShipRequest(run=write_run(tmp_path / "run", finished), out=tmp_path / "out", **wanted)


def test_a_run_without_a_winner_has_nothing_to_ship(tmp_path: Path) -> None:
    said = "has no winner to ship: each kernel that was right in the search failed at its certificate"
    with pytest.raises(RunError, match=said):
        ship(request(tmp_path, Finished(found_wrong=True)))


def test_a_kernel_without_a_certificate_is_refused_unless_asked_for(tmp_path: Path) -> None:
    asked = request(tmp_path, Finished(certified=False))
    with pytest.raises(RunError, match=r"is not certified \(its timings spread\); uncertified=True"):
        ship(asked)
    ship(replace(asked, takes_uncertified=True))
    assert "**Not certified: its timings spread.**" in (asked.out / "README.md").read_text()
    project = tomllib.loads((asked.out / "pyproject.toml").read_text())["project"]
    assert "NOT CERTIFIED" in project["description"]
    assert "this kernel is not certified" in (asked.out / "scaled_kernel" / "__init__.py").read_text()


@pytest.mark.parametrize(
    ("finished", "said"),
    [
        (Finished(found_wrong=True), r"is still running and has no right kernel to ship yet; wait .*ridgeline show"),
        (
            Finished(certified=False),
            "certifies its winner when its rounds are over; .*uncertified=True ships r1i1v0a0, the fast",
        ),
    ],
)
def test_a_run_that_is_still_running_is_not_spoken_of_as_ended(tmp_path: Path, finished: Finished, said: str) -> None:
    asked = request(tmp_path, finished)
    with Archive.open(asked.run, create=False) as archive:
        archive.save_run(RunRecord(state=RunState.RUNNING))
    with lock_run(asked.run), pytest.raises(RunError, match=said):
        ship(asked)


def test_what_a_killed_process_left_of_the_folder_goes(tmp_path: Path) -> None:
    left = tmp_path / ".out.abcdefgh.part"
    left.mkdir()
    (left / "README.md").write_text("half")
    os.utime(left, (0, 0))
    assert ship(request(tmp_path)).out.is_dir()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".out")]


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    asked = request(tmp_path)
    asked.out.mkdir()
    with pytest.raises(InputError, match="exists already"):
        ship(asked)
    assert list(asked.out.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *(
            (name, "a package's is of lower-case letters, digits and single _")
            for name in ("Scaled", "a__b", "a-b", "")
        ),
        ("json", "Python's own library has a module of this name"),
        ("class", "it is a word of Python's own"),
        *((name, "another package, or torch.ops, has it") for name in ("torch", "aten", "quantized", "classes")),
    ],
)
def test_a_name_that_is_no_packages_is_refused_with_the_reason(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(InputError, match=f"no name for a package: {why}; choose another [(]name[)]"):
        ship(replace(request(tmp_path), name=name or "_"))


def test_a_reference_that_writes_its_input_cannot_be_shipped(tmp_path: Path) -> None:
    written = REFERENCE.replace("y = torch", "x.add_(1)\n        y = torch")
    asked = request(tmp_path, Finished(reference=written))
    with pytest.raises(RunError, match=r"cannot be shipped: its forward\(\) writes its input x"):
        ship(asked)
    assert not asked.out.exists()


def test_a_reference_whose_call_is_not_known_cannot_be_shipped(tmp_path: Path) -> None:
    named = "import collections\nPair = collections.namedtuple('Pair', 'y sums')\n" + REFERENCE.replace(
        'return y, {"sums": [y.sum(-1)]}', "return Pair(y, y.sum(-1))"
    )
    with pytest.raises(RunError, match="gives a Pair: plain lists, tuples and dicts alone"):
        ship(request(tmp_path, Finished(reference=named)))


def test_only_the_c_interface_has_a_place_in_the_layout_of_hugging_face(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="interface module has no place in the layout hf-kernels"):
        ship(request(tmp_path, Finished(interface=Interface.MODULE), layout="hf-kernels"))


def test_gradients_have_no_place_in_it_which_is_said_before_the_run_is_read(tmp_path: Path) -> None:
    asked = ShipRequest(run=tmp_path / "absent", out=tmp_path / "out", layout="hf-kernels", gradients="reference")
    with pytest.raises(InputError, match="gradients='reference': not in the layout hf-kernels"):
        ship(asked)


def test_a_number_that_was_never_varied_is_part_of_the_kernel(tmp_path: Path) -> None:
    import json

    asked = request(tmp_path, Finished(fixed=True))
    ship(asked)
    args = json.loads((asked.out / "scaled_kernel" / "kernel.json").read_text())["args"]
    assert [arg["name"] for arg in args if arg["fixed"]] == ["t"]


@pytest.mark.parametrize("layout", ["package", "hf-kernels"])
@pytest.mark.parametrize(
    ("origin", "model", "said"),
    [
        (Origin.MODEL, "offline", "composed by Ridgeline's offline model: no language model wrote it."),
        (Origin.MODEL, "openai:o_3", "written by the language model openai:o\\_3."),
        (
            Origin.MODEL,
            "mailbox:me",
            "written by whoever answered the search's mailbox, which may be a language model.",
        ),
        (Origin.MODEL, "", "by whom is not recorded, and a language model may have been."),
        (Origin.SEED, "", "given to the search as a seed: who wrote it is not recorded."),
    ],
)
def test_the_readme_says_who_wrote_the_kernel_as_the_run_recorded_it(
    tmp_path: Path, layout: str, origin: Origin, model: str, said: str
) -> None:
    asked = request(tmp_path, Finished(origin=origin, model=model), layout=layout)
    ship(asked)
    text = (asked.out / ("README.md" if layout == "package" else "CARD.md")).read_text()
    assert said in " ".join(text.split())
    assert "may have written" not in text


def test_a_tuned_kernel_was_written_by_whom_the_one_it_was_tuned_from_was(tmp_path: Path) -> None:
    for model, origin, said in (("offline", Origin.MODEL, "composed by"), ("", Origin.SEED, "given to the search")):
        asked = request(tmp_path / model, Finished(origin=origin, model=model, tuned=True))
        ship(asked)
        assert said in (asked.out / "README.md").read_text()


@pytest.mark.parametrize("layout", ["package", "hf-kernels"])
@pytest.mark.parametrize(("ratio", "told"), [(1.02, "1.02x, no proven gain over it; "), (1.9, "1.90x; ")])
def test_the_readme_says_where_no_gain_over_pytorch_s_best_is_proven(
    tmp_path: Path, layout: str, ratio: float, told: str
) -> None:
    asked = request(tmp_path, Finished(over_best=ratio), layout=layout)
    ship(asked)
    text = (asked.out / ("README.md" if layout == "package" else "CARD.md")).read_text()
    assert f"| as fast as PyTorch's best configuration | {told}the speedup over eager PyTorch times" in text


def test_the_licence_says_who_wrote_the_kernel(tmp_path: Path) -> None:
    asked = request(tmp_path)
    ship(asked)
    text = (asked.out / "LICENSE").read_text()
    assert "r1i1v0a0: written in the search by" in text
    assert "Ridgeline grants no licence" in text


def test_hugging_faces_layout_has_its_files(tmp_path: Path) -> None:
    asked = request(tmp_path, layout="hf-kernels")
    ship(asked)
    build = tomllib.loads((asked.out / "build.toml").read_text())
    assert build["general"]["edition"] == 5
    assert build["general"]["name"] == "scaled-kernel"
    named = [*build["torch"]["src"], *build["kernel"]["scaled_kernel"]["src"]]
    assert [name for name in named if not (asked.out / name).is_file()] == []
    assert "-march=native" not in build["kernel"]["scaled_kernel"]["cxx-flags"]
    assert (asked.out / "torch-ext" / "scaled_kernel" / "__init__.py").is_file()
    binding = (asked.out / "torch-ext" / "torch_binding.cpp").read_text()
    assert 'ops.def("forward(Tensor given_0, float given_1, Tensor given_2) -> (Tensor, Tensor)")' in binding


def test_a_kernel_for_a_gpu_names_its_architecture_in_hugging_faces_layout(tmp_path: Path) -> None:
    hopper = replace(detect_device("cpu"), kind=DeviceKind.CUDA, name="NVIDIA H200", arch="sm_90a")
    asked = request(tmp_path, Finished(device=hopper), layout="hf-kernels")
    ship(asked)
    kernel = tomllib.loads((asked.out / "build.toml").read_text())["kernel"]["scaled_kernel"]
    assert kernel["cuda-capabilities"] == ["9.0a"]
    assert not [flag for flag in kernel["cuda-flags"] if "gencode" in flag]


def test_the_command_says_what_it_wrote_and_that_it_is_a_decision(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    done = ridgeline("ship", str(run), "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wrote out: r1i1v0a0, certified on" in done.stdout
    assert "means to trust the kernel" in done.stdout
    assert_one_line(ridgeline("ship", str(run), "--out", "out", cwd=tmp_path), "out: exists already")
    assert_one_line(ridgeline("ship", "absent", "--out", "other", cwd=tmp_path), "absent")
