import json

import pytest

from ridgeline.tools.records.baselines import Baseline
from ridgeline.tools.records.reference_mode import (
    COMPILED_MODES,
    EAGER_MODES,
    MODES_ON,
    WITH_TF32,
    ReferenceMode,
    mode_words,
)
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass


def test_a_mode_is_its_name_in_json_and_knows_what_it_sets() -> None:
    assert json.dumps([ReferenceMode.MAX_AUTOTUNE_TF32]) == '["compile_max_autotune_tf32"]'
    assert ReferenceMode("compile_tf32").compile_mode == "default"
    assert [mode.value for mode in ReferenceMode if mode.uses_tf32] == [
        "eager_tf32",
        "compile_tf32",
        "compile_max_autotune_tf32",
    ]


@pytest.mark.parametrize("mode", WITH_TF32)
def test_tf32_is_all_that_differs_in_a_pair(mode: ReferenceMode) -> None:
    pair = WITH_TF32[mode]
    assert (pair.compile_mode, mode.uses_tf32, pair.uses_tf32) == (mode.compile_mode, False, True)


def test_modes_are_grouped_by_what_they_compile() -> None:
    assert [mode.compile_mode for mode in COMPILED_MODES] == ["default", "max-autotune"]
    assert not any(mode.compile_mode for mode in EAGER_MODES)


def test_a_cpu_has_every_mode_that_needs_no_gpu() -> None:
    assert set(MODES_ON) == set(DeviceKind)
    assert MODES_ON[DeviceKind.CPU] == {mode for mode in ReferenceMode if not mode.needs_gpu}
    assert MODES_ON[DeviceKind.CUDA] == set(ReferenceMode)


def test_a_stored_baseline_knows_its_mode() -> None:
    stored = Baseline(name=ReferenceMode.COMPILE_TF32, precision_class=PrecisionClass.TF32, median_ms=1.0).to_json()
    assert stored["name"] == "compile_tf32"
    assert Baseline.from_json(stored).name.uses_tf32


def test_each_mode_has_words_of_its_own_for_a_reader() -> None:
    words = [mode_words(mode) for mode in ReferenceMode]
    assert len(set(words)) == len(words)
    assert not any("_" in each for each in words)
    assert mode_words("another") == "another"
