import json

import pytest

from ridgeline.tools.records.reference_mode import COMPILED_MODES, EAGER_MODES, WITH_TF32, ReferenceMode


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
    assert all(mode.compile_mode == name for name, mode in COMPILED_MODES.items())
    assert not any(mode.compile_mode for mode in EAGER_MODES)
