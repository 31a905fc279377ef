"""The adapters read the suites' own layouts, and know when a kernel ended as it should."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from ridgeline.tools.records.vocabulary import Status

REFERENCE, KERNEL = "class Model: ...\n", "class ModelNew: ...\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def line(status: str, speedup: float | None = None, reason_code: str = "none") -> dict[str, Any]:
    return {"status": status, "speedup": speedup, "reason_code": reason_code}


def test_crfm_kernels_are_six_pairs_of_which_one_may_be_refused(tmp_path: Path) -> None:
    crfm = import_module("outside_crfm")
    for name in crfm.KERNELS:
        write(tmp_path / name / "ref.py", REFERENCE)
        write(tmp_path / name / "src.py", KERNEL)
    found = crfm.read(tmp_path)
    assert len(found) == 6
    assert {p.tolerance for p in found} == {"crfm"}
    assert all("ok" in p.expected and (p.reference, p.source) == (REFERENCE, KERNEL) for p in found)
    assert [p.name for p in found if p.expected != {"ok"}] == ["LayerNorm2"]


def test_cuda_l1_kernels_are_taken_from_lines_of_json_by_level_and_task(tmp_path: Path) -> None:
    entries = [
        {"level_id": level, "task_id": task, "ref_code": REFERENCE, "custom_code": code, "score_default": 17.8}
        for level, task, code in ((1, 9, KERNEL), (1, 10, KERNEL), (2, 80, KERNEL), (2, 83, None))
    ]
    write(tmp_path / "optimized_cuda_code" / "a100.json", "\n".join(map(json.dumps, entries)) + "\n")
    found = import_module("outside_cuda_l1").read(tmp_path)
    assert [p.name for p in found] == ["level1-9", "level2-80"]
    assert all("ok" not in p.expected and p.known == {"published speedup": 17.8} for p in found)


def test_kernelbench_s_adversarial_kernels_share_the_square_product(tmp_path: Path) -> None:
    module = import_module("outside_kernelbench")
    write(tmp_path / module.REFERENCE, REFERENCE)
    for name in ("zero_out_kernel", "non_default_stream_kernel"):
        write(tmp_path / module.KERNELS / f"{name}.py", KERNEL)
    stream, zero = module.read(tmp_path)
    assert "ok" not in zero.expected
    is_as_expected = import_module("outside_suite").is_as_expected
    assert is_as_expected(zero, line("wrong"))
    assert not is_as_expected(zero, line("ok", 1.0))
    assert is_as_expected(stream, line("ok", 0.98))  # all of its work was timed
    assert not is_as_expected(stream, line("ok", 40.0))
    assert not is_as_expected(zero, line("refused", reason_code="interface_unsupported"))


def test_build_that_fails_is_no_rejection() -> None:
    suite = import_module("outside_suite")
    assert {s.value for s in Status} == suite.REJECTED | suite.ACCEPTED | {"compile_error"}


def test_folder_that_is_no_copy_of_the_suite_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="give the folder of a copy of the suite"):
        import_module("outside_crfm").read(tmp_path)


def test_published_kernel_is_a_problem_of_interface_module() -> None:
    suite = import_module("outside_suite")
    published = suite.Published(name="Conv2D_ReLU", reference="", source="", expected=suite.ACCEPTED)
    data = yaml.safe_load(suite.problem_text(published, "cuda:0"))
    assert (data["name"], data["interface"], data["tolerance"]) == ("conv2d-relu", "module", "crfm")
    assert data["targets"] == {"cuda": {}}
