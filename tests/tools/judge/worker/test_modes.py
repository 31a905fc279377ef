"""The reference as a side of a measurement: its loops, and where inductor keeps what it compiles."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from ridgeline.tools.judge.worker.device import device_of
from ridgeline.tools.judge.worker.modes import ReferenceModes
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.vocabulary import DeviceKind


def test_headers_that_inductor_precompiles_go_to_its_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch._inductor  # a second and more, which no other test's process needs

    codecache = SimpleNamespace()  # the real one takes two seconds to import
    monkeypatch.setattr(torch._inductor, "codecache", codecache, raising=False)
    monkeypatch.setattr(torch, "compile", lambda model, **_: model)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    memory = SimpleNamespace(inputs=[], device=device_of(DeviceKind.CPU))
    ReferenceModes(SimpleNamespace(model=torch.nn.ReLU()), memory)._call(ReferenceMode.COMPILE)
    folder = f"{tmp_path}/precompiled_headers"
    assert vars(codecache) == {"_HEADER_DIR": folder, "_HEADER_LOCK_DIR": f"{folder}/locks"}


def test_torch_reads_the_folder_of_its_headers_at_each_use() -> None:
    import torch._inductor

    text = Path(torch._inductor.__file__).with_name("codecache.py").read_text()
    assert "specified_dir=_HEADER_DIR," in text and "os.makedirs(_HEADER_LOCK_DIR," in text


def test_a_loop_after_one_that_raised_makes_its_own_calls() -> None:
    called: list[float] = []

    def model(x: torch.Tensor) -> torch.Tensor:
        called.append(float(x))
        if float(x) == 2:
            raise ValueError("refused")
        return x

    inputs = [(torch.tensor(float(i)),) for i in range(6)]
    memory = SimpleNamespace(inputs=inputs, outputs=inputs, n_sets=6, device=device_of(DeviceKind.CPU))
    modes = ReferenceModes(SimpleNamespace(model=model, arguments=lambda given: given), memory)
    with pytest.raises(ValueError, match="refused"):
        modes.loop(ReferenceMode.EAGER, [0, 1, 2, 3, 4])
    modes.loop(ReferenceMode.EAGER, [5, 0])
    assert called == [0, 1, 2, 5, 0]
