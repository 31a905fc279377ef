"""A run's winner as a module. The kernels are written here, and so are trusted: they run in this process."""

from __future__ import annotations

import dataclasses
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.descriptions import description_of

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.library.run import open_run
from ridgeline.graph.library.winner import load
from ridgeline.graph.shipping.shipped._denormals import flushes_denormals
from ridgeline.tools.build.flags import base_flags, link_flags
from ridgeline.tools.errors import InputError, RunError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import ArgSpec, Device, Signature, SkippedTrial
from ridgeline.tools.records.results import Evaluation, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import (
    ArgKind,
    Interface,
    Label,
    Origin,
    Purpose,
    ReasonCode,
    Role,
    RunState,
    Status,
)

pytestmark = pytest.mark.any_tier

ROWS, COLS = 8, 16
KERNEL = """
void run(const float* __restrict__ x, double t, const float* __restrict__ lin_scale, float* __restrict__ out_0,
         float* __restrict__ out_1, void* workspace) {
  float* sums = static_cast<float*>(workspace);
  for (int64_t row = 0; row < X_SHAPE_0; row++) {
    sums[row] = 0;
    for (int64_t col = 0; col < X_SHAPE_1; col++) {
      out_0[row * X_SHAPE_1 + col] = x[row * X_SHAPE_1 + col] * lin_scale[col] * static_cast<float>(t);
      sums[row] += out_0[row * X_SHAPE_1 + col];
    }
    out_1[row] = sums[row];
  }
}

size_t workspace_bytes() { return X_SHAPE_0 * sizeof(float); }
"""
PLAIN = "void run(const float* x, float* out, void*) { for (int i = 0; i < X_NUMEL; i++) out[i] = 2 * x[i]; }\n"
X = ArgSpec(name="x", role=Role.INPUT, shape=(ROWS, COLS), strides=(COLS, 1), source="x")
T = ArgSpec(name="t", role=Role.INPUT, kind=ArgKind.SCALAR, dtype="float64", value=0.5, source="t")
SCALE = ArgSpec(name="lin_scale", role=Role.PARAMETER, shape=(COLS,), strides=(1,), source="lin.scale")
Y = dataclasses.replace(X, name="out_0", role=Role.OUTPUT, source="out_0")
SUMS = ArgSpec(name="out_1", role=Role.OUTPUT, shape=(ROWS,), strides=(1,), source="out_1")
OUT = dataclasses.replace(Y, name="out", source="out")
FULL, SMALL = Signature(args=(X, T, SCALE, Y, SUMS)), Signature(args=(X, OUT))


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Module()
        self.lin.scale = torch.nn.Parameter(torch.rand(COLS))


def write_run(
    folder: Path,
    signature: Signature = SMALL,
    source: str = PLAIN,
    *,
    device_name: str = "cpu",
    interface: str = "c",
    passed: bool | None = True,
    flags: tuple[str, ...] | None = None,
    fixed: str = "",
    reference: str = "",
    device: Device | None = None,
) -> Path:
    """Write what `load` reads of a finished search."""
    device = device or detect_device(device_name)
    built = base_flags(device) + link_flags(device.kind) if flags is None else flags
    skipped = (SkippedTrial(name=f"not_varied {fixed}", reason="", label=Label.NOT_VARIED),) if fixed else ()
    timing = Timing(status=Status.OK, median_ms=1.0, reference_ms=2.0, speedup=2.0, speedup_ci95=(1.9, 2.1))
    folder.mkdir()
    with Archive.open(folder / "archive.sqlite") as archive:
        problem = {"name": "scaled", "interface": interface, "tolerance": "fp32"}
        archive.save_run(
            RunRecord(problem=problem, device=device, device_name=device_name, reference_source=reference,
                      settings={}, state=RunState.FINISHED, best_id="w")
        )  # fmt: skip
        archive.save_description(description_of(signature, skipped_trials=skipped))
        archive.add_candidate(
            Candidate(
                id="w",
                origin=Origin.MODEL,
                round=1,
                idea_id=None,
                parent_id=None,
                source=source,
                language=device.kind.language,
                interface=Interface(interface),
            )
        )
        archive.add_evaluation(
            Evaluation(key="k", candidate_id="w", purpose=Purpose.SEARCH, status=Status.OK,
                       verdict=Verdict(status=Status.OK), timing=timing)
        )  # fmt: skip
        if passed is not None:
            build = {"key": "k", "flags": list(built), "toolchain": "g++"}
            archive.save_certificate({"passed": passed, "reason": "", "candidate": {"id": "w"}, "build": build})
    return folder


def test_a_winner_does_what_its_reference_does_with_the_models_own_weights(tmp_path: Path) -> None:
    model, x = Model(), torch.randn(ROWS, COLS)
    kernel = load(write_run(tmp_path / "run", FULL, KERNEL), model)
    for _ in range(2):
        y, sums = kernel(x, 0.5)
        torch.testing.assert_close(y, x * model.lin.scale.detach() * 0.5)
        torch.testing.assert_close(sums, y.sum(-1))
        model.load_state_dict({"lin.scale": torch.rand(COLS)})
    assert torch.equal(kernel(t=0.5, x=x)[0], kernel(x, t=0.5)[0])
    assert set(kernel.state_dict()) == {"model.lin.scale"} and not y.requires_grad
    assert "scaled, 2 inputs, cpu" in repr(kernel)


@pytest.mark.slow  # PyTorch's headers take half a minute to compile
def test_a_winner_that_is_an_extension_takes_tensors_and_numbers_in_their_order(tmp_path: Path) -> None:
    extension = """
    #include <torch/extension.h>
    std::vector<torch::Tensor> forward(torch::Tensor x, double t, torch::Tensor lin_scale) {
      torch::Tensor y = x * lin_scale * t;
      return {y, y.sum(-1)};
    }
    """
    model, x = Model(), torch.randn(ROWS, COLS)
    kernel = load(write_run(tmp_path / "run", FULL, extension, interface="torch", flags=()), model)
    y, sums = kernel(x, 0.5)
    torch.testing.assert_close(y, x * model.lin.scale.detach() * 0.5)
    torch.testing.assert_close(sums, y.sum(-1))
    assert torch.equal(kernel(t=0.25, x=x)[0], y / 2) and not y.requires_grad
    with pytest.raises(InputError, match="t must be a number, got str"):
        kernel(x, "0.5")


def test_a_kernel_without_parameters_needs_no_model_and_one_output_comes_alone(tmp_path: Path) -> None:
    folder, x = write_run(tmp_path / "run"), torch.randn(ROWS, COLS)
    for given in (folder, str(folder), open_run(folder)):
        assert torch.equal(load(given)(x), 2 * x)


def test_the_run_folder_that_a_program_runs_in_is_loaded_as_a_dot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_run(tmp_path / "run"))
    x = torch.randn(ROWS, COLS)
    assert torch.equal(load(".")(x), 2 * x)


def test_a_kernel_is_given_nothing_but_what_it_was_made_for(tmp_path: Path) -> None:
    kernel = load(write_run(tmp_path / "run", FULL, KERNEL, fixed="t"), Model())
    x = torch.randn(ROWS, COLS)
    refused: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((x.double(), 0.5), {}, r"x must be float32 \(8, 16\) on cpu, got float64"),
        ((x[:4], 0.5), {}, r"got float32 \(4, 16\)"),
        ((torch.randn(COLS, ROWS).t(), 0.5), {}, r"must have strides \(16, 1\)"),
        ((torch.randn(ROWS * COLS + 1)[1:].view(ROWS, COLS), 0.5), {}, "must start at a multiple of 64 bytes"),
        (([1.0], 0.5), {}, "x must be a tensor"),
        ((x, "0.5"), {}, "t must be a number, got str"),
        ((x, True), {}, "t must be a number, got True"),
        ((x, 0.75), {}, "t must be 0.5: the kernel was tried with no other value"),
        ((x,), {}, "takes x, t, once each"),
        ((x, 0.5, 1), {}, "takes x, t, once each"),
        ((x, 0.5), {"x": x}, "takes x, t, once each"),
        ((x,), {"t": 0.5, "mask": None}, "takes x, t, once each"),
    ]
    for args, kwargs, said in refused:
        with pytest.raises(InputError, match=said):
            kernel(*args, **kwargs)


def test_a_model_without_the_parameters_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", FULL, KERNEL)
    with pytest.raises(InputError, match=r"takes lin.scale: pass model=, an instance of the reference's Model"):
        load(folder)
    with pytest.raises(InputError, match=r"takes lin.scale: the model has none"):
        load(folder, torch.nn.ReLU())


@pytest.mark.parametrize("passed", [False, None])
def test_a_winner_without_a_certificate_is_loaded_only_where_that_is_said(tmp_path: Path, passed: bool | None) -> None:
    folder, x = write_run(tmp_path / "run", passed=passed), torch.randn(ROWS, COLS)
    with pytest.raises(RunError, match="its best kernel w is not certified; uncertified=True loads it all the same"):
        load(folder)
    assert torch.equal(load(folder, uncertified=True)(x), 2 * x)


def test_what_cannot_be_loaded_says_so_before_anything_is_built(tmp_path: Path) -> None:
    nested = dataclasses.replace(X, name="xs_0", source="xs[0]")
    after = dataclasses.replace(OUT, name="x_after")
    for name, run, said in [
        ("module", {"interface": "module"}, "interface module: load takes no file with ModelNew; ridgeline ship makes"),
        ("nested", {"signature": Signature(args=(nested, OUT))}, r"the input xs\[0\] lies in a list or a dict"),
        ("written", {"signature": Signature(args=(X, OUT, after))}, "its reference writes its input x; docs"),
    ]:
        folder: Any = write_run(tmp_path / name, **run)  # type: ignore[arg-type]
        with pytest.raises(RunError, match=said):
            load(folder)
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        archive.save_run(RunRecord(state="running"))
    with pytest.raises(RunError, match="has no winner to load: no kernel was judged yet"):
        load(tmp_path)
    refused = write_run(tmp_path / "refused")
    with Archive.open(refused / "archive.sqlite") as archive:
        archive.save_run(RunRecord(best_id=""))
        archive.add_evaluation(
            Evaluation(key="again", candidate_id="w", purpose=Purpose.CERTIFY, status=Status.WRONG,
                       reason_code=ReasonCode.WRONG_VALUES)
        )  # fmt: skip
    with pytest.raises(RunError, match="no winner to load: each kernel that was right in the search failed"):
        load(refused)


def test_a_kernel_that_builds_other_than_it_was_certified_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"certified with other flags than it is built with here \(.*-Oz"):
        load(write_run(tmp_path / "flags", flags=("-Oz",)))
    with pytest.raises(RunError, match="w: does not build here"):
        load(write_run(tmp_path / "broken", source="void run( }"))


def test_a_number_of_another_type_and_one_that_a_double_would_change_are_refused(tmp_path: Path) -> None:
    times, is_on = (dataclasses.replace(T, name=n, source=n, dtype=d) for n, d in (("t", "int64"), ("on", "bool")))
    source = """
    void run(const float* x, int64_t t, bool on, float* out, void*) {
      for (int i = 0; i < X_NUMEL; i++) out[i] = on ? static_cast<float>(t) : x[i];
    }
    """
    kernel, x = (
        load(write_run(tmp_path / "run", Signature(args=(X, times, is_on, OUT)), source)),
        torch.zeros(ROWS, COLS),
    )
    assert kernel(x, 2**53, True)[0, 0] == kernel(x, 2**60, True)[0, 0] / 2**7 == 2**53
    for t, on, said in [
        (2.7, True, "t must be a whole number, got 2.7"),
        (2.0, True, "t must be a whole number, got 2.0"),
        (True, True, "t must be a whole number, got True"),
        (2**53 + 1, True, "t must be a number that a double holds, got 9007199254740993"),
        (-(2**63) - 2**11, True, "t must be a number that a double holds"),
        (2**63, True, "t must be a number that a double holds"),
        (10**400, True, "t must be a number that a double holds"),
        (1, 1, "on must be True or False, got int"),
    ]:
        with pytest.raises(InputError, match=said):
            kernel(x, t, on)


def test_the_denormals_of_the_caller_stay_as_a_library_that_flushes_them_found_them(tmp_path: Path) -> None:
    assert not flushes_denormals()
    flushing = """
    static const bool is_set = (__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040), true);
    """
    kernel, x = load(write_run(tmp_path / "run", source=flushing + PLAIN)), torch.randn(ROWS, COLS)
    assert not flushes_denormals()
    assert torch.equal(kernel(x), 2 * x)


def test_calls_from_several_threads_take_turns(tmp_path: Path) -> None:
    source = """
    #include <unistd.h>
    static int inside = 0;
    void run(const float* x, float* out, void*) {
      int most = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
      usleep(20000);
      for (int i = 0; i < X_NUMEL; i++) out[i] = most;
      __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    }
    """
    kernel, x = load(write_run(tmp_path / "run", source=source)), torch.randn(ROWS, COLS)
    with ThreadPoolExecutor(8) as threads:
        outs = list(threads.map(kernel, [x] * 16))
    assert {out[0, 0].item() for out in outs} == {1}


def test_training_mode_and_autocast_are_refused(tmp_path: Path) -> None:
    model = Model()
    kernel, x = load(write_run(tmp_path / "run", FULL, KERNEL), model), torch.randn(ROWS, COLS)
    assert model.training and not kernel.training, "the model keeps its mode"
    kernel(x, 0.5)
    with pytest.raises(InputError, match=r"in eval mode; call eval\(\) first"):
        kernel.train()(x, 0.5)
    with torch.autocast("cpu"), pytest.raises(InputError, match="without autocast"):
        kernel.eval()(x, 0.5)


@pytest.mark.parametrize(("passed", "how"), [(True, "certified"), (None, "searched")])
def test_a_run_of_another_cpu_is_loaded_only_where_that_is_said(tmp_path: Path, passed: bool | None, how: str) -> None:
    device = dataclasses.replace(detect_device("cpu"), name="Another CPU", arch="x86_64-another")
    folder, x = write_run(tmp_path / "run", device=device, passed=passed), torch.randn(ROWS, COLS)
    here = re.escape(f"this CPU ({detect_device('cpu').arch})")
    said = (
        rf"{here} is not the Another CPU \(x86_64-another\) that it was {how} on \(any_cpu=True runs it all the same\)"
    )
    with pytest.raises(RunError, match=said):
        load(folder, uncertified=passed is None)
    assert torch.equal(load(folder, uncertified=passed is None, any_cpu=True)(x), 2 * x)
