"""The line of a module's own code, among those of torch, of the standard library and of other packages."""

from __future__ import annotations

import json
import re
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch

from ridgeline.problems.live.users_line import place_in, place_of

TORCH = Path(torch.__file__).parent
STDLIB = Path(sysconfig.get_path("stdlib"))


def test_a_line_of_the_standard_library_is_not_the_modules_own() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    assert "test_users_line.py line " in place_of(caught.value) and "`json.loads(" in place_of(caught.value)


@pytest.mark.parametrize(
    ("file", "is_own"),
    [
        (TORCH / "nn" / "modules" / "module.py", False),
        (Path(np.__file__).parent / "linalg" / "_linalg.py", False),
        (TORCH.with_name("torch_mine") / "layers.py", True),
        (TORCH.with_name("torchvision") / "models.py", True),
        (STDLIB / "json" / "decoder.py", False),
        (STDLIB / "site-packages" / "mine" / "layers.py", True),
        (STDLIB / "dist-packages" / "mine.py", True),
        (STDLIB.with_name(f"{STDLIB.name}_mine") / "layers.py", True),
        ("<frozen importlib._bootstrap>", False),
    ],
)
def test_a_package_is_the_users_own_unless_it_is_torch_or_numpy(file: Path | str, is_own: bool) -> None:
    frames = f'  File "/mine/model.py", line 3, in forward\n    y = call(x)\n  File "{file}", line 7, in call\n    return x\n'
    expected = (
        f" ({file} line 7 in call: `return x`)" if is_own else " (/mine/model.py line 3 in forward: `y = call(x)`)"
    )
    assert place_in(frames) == expected


def test_a_line_of_a_text_that_nobody_has_is_not_named() -> None:
    called = eval("lambda call: call()")
    with pytest.raises(ZeroDivisionError) as caught:
        called(lambda: called(lambda: called(eval("lambda: 1 / 0"))))
    assert re.search(r"test_users_line.py line \d+ in <lambda>: `called\(", place_of(caught.value))
    made = '  File "/mine/model.py", line 3, in forward\n    y = call(x)\n  File "<string>", line 1, in <lambda>\n'
    assert place_in(made) == " (/mine/model.py line 3 in forward: `y = call(x)`)"
    assert place_in(f'{made}  File "/mine/layers.py", line 9, in call\n    return x\n').startswith(
        " (/mine/layers.py line 9"
    )
