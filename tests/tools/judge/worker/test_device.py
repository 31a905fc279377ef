"""What a CPU and a GPU differ in to the judge: modes of a reference, and room for trials."""

import pytest
from torch.nn.attention import SDPBackend

from ridgeline.tools.errors import DeviceError
from ridgeline.tools.judge.set_count import WORKING_SETS
from ridgeline.tools.judge.worker.device import device_of
from ridgeline.tools.records.reference_mode import ATTENTION_MODES, COMPILED_MODES, WITH_TF32, ReferenceMode
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import worded_for_command_line

CPU, CUDA = device_of(DeviceKind.CPU), device_of(DeviceKind.CUDA)


def test_a_cpu_has_neither_tf32_nor_a_choice_of_attention() -> None:
    assert CPU.modes == {ReferenceMode.EAGER, *COMPILED_MODES}
    assert CUDA.modes == {*CPU.modes, *WITH_TF32.values(), *ATTENTION_MODES}


@pytest.mark.parametrize("mode", ATTENTION_MODES)
def test_a_backend_of_attention_is_one_that_torch_knows(mode: ReferenceMode) -> None:
    assert isinstance(getattr(SDPBackend, mode.attention_backend), SDPBackend)


def test_a_gpu_compiles_without_cuda_graphs() -> None:
    options = {device.kind: device.compile_option(ReferenceMode.MAX_AUTOTUNE_TF32) for device in (CPU, CUDA)}
    assert options == {DeviceKind.CPU: "max-autotune", DeviceKind.CUDA: "max-autotune-no-cudagraphs"}
    assert CUDA.compile_option(ReferenceMode.COMPILE) == "default"


@pytest.mark.parametrize(
    ("set_gb", "kept_gb"),
    [(0.1, 140 / 3), (4, 140 / 3), (6, 38), (8, 4), (10, 0)],  # of a GPU of 140 GB
)
def test_a_large_problem_leaves_room_to_grade_beside_the_trials_kept(set_gb: float, kept_gb: float) -> None:
    taken_bytes = (max(3, int(16 / set_gb)) + WORKING_SETS) * int(set_gb * 1e9)
    assert CUDA.kept_bytes(140 * 10**9, taken_bytes=taken_bytes, set_bytes=int(set_gb * 1e9)) == pytest.approx(
        kept_gb * 1e9
    )


def test_what_leaves_no_room_for_another_trial_is_not_kept_aside() -> None:
    sizes = {"taken_bytes": 11 * 4 * 10**9, "set_bytes": 4 * 10**9}  # of a sine of 2 GB
    assert CUDA.aside_bytes(85 * 10**9, **sizes) == 0 < CUDA.kept_bytes(85 * 10**9, **sizes)
    assert CUDA.aside_bytes(85 * 10**9, taken_bytes=2 * 10**9, set_bytes=10**8) > 80 * 10**9


def test_a_cpu_keeps_an_eighth_of_its_memory_of_trials() -> None:
    assert CPU.kept_bytes(64 << 30, taken_bytes=32 << 30, set_bytes=4 << 30) == 8 << 30


def test_a_pytorch_without_cuda_is_told_as_who_reads_it_gives_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.version.cuda", None)
    with pytest.raises(DeviceError, match="or use device='cpu'$"):
        CUDA.expect_torch()
    with worded_for_command_line(), pytest.raises(DeviceError, match="or use --device cpu$"):
        CUDA.expect_torch()
