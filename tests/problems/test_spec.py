"""problem.yaml in, a checked spec or one line out."""

import json
from pathlib import Path
from typing import get_args

import pytest

from ridgeline.problems.files import ProblemPlace
from ridgeline.problems.kernel_files import MODULE_SUFFIX, SOURCE_SUFFIX
from ridgeline.problems.spec import (
    InterfaceName,
    ProblemSpec,
    ToleranceClass,
    load_problem,
    parse_problem,
    shipped_problems,
)
from ridgeline.problems.targets import TargetKind
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass

REFERENCE = """\
import torch

ROWS = 4
COLS = 8
HALF = COLS // 2


class Model(torch.nn.Module):
    def forward(self, x):
        return x


def get_inputs():
    return [torch.randn(ROWS, COLS)]
"""
MINIMAL = "name: mine\nreference: reference.py\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "reference.py").write_text(REFERENCE)
    return tmp_path


def load(folder: Path, text: str) -> ProblemSpec:
    path = folder / "problem.yaml"
    path.write_text(text)
    return load_problem(path)


def message(folder: Path, text: str) -> str:
    with pytest.raises(ProblemError) as caught:
        load(folder, text)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(str(folder / "problem.yaml"))
    return line.removeprefix(f"{folder / 'problem.yaml'}: ")


@pytest.mark.parametrize(
    ("line", "tolerance"),
    [
        ("X = torch.randn(3, dtype=torch.float64)", "fp64"),
        ("X = torch.randn(3).double()", "fp64"),
        ("from torch import float64", "fp64"),
        ('DTYPE = "float64"', "fp64"),
        ("import numpy as np", "fp64"),
        ("X = torch.zeros(3, dtype=float)", "fp64"),
        ("X = float(3)  # double of float64", "fp32"),
    ],
)
def test_without_a_tolerance_a_reference_that_names_float64_asks_for_its_digits(
    folder: Path, line: str, tolerance: str
) -> None:
    (folder / "reference.py").write_text(f"{REFERENCE}\n{line}\n")
    assert load(folder, MINIMAL).tolerance == tolerance
    assert load(folder, f"{MINIMAL}tolerance: fp32\n").tolerance == "fp32"
    assert ProblemSpec.from_dict({"name": "mine", "reference": "reference.py"}, folder=folder).tolerance == tolerance


def test_everything_but_name_and_reference_has_a_default(folder: Path) -> None:
    spec = load(folder, MINIMAL)
    assert (spec.interface, spec.tolerance, spec.models, spec.seeds) == ("c", "fp32", [], [])
    assert set(spec.targets) == {"cpu", "cuda"}
    assert (spec.search.rounds, spec.search.ideas, spec.search.implementations, spec.search.repairs) == (5, 4, 2, 2)
    assert spec.budget.usd is None
    assert spec.path == folder / "problem.yaml"


def test_the_words_of_a_problem_are_those_of_the_records() -> None:
    assert get_args(TargetKind) == tuple(DeviceKind)
    assert {kind: f".{Interface.C.language(kind)}" for kind in DeviceKind} == SOURCE_SUFFIX
    assert {MODULE_SUFFIX} == {f".{Interface.MODULE.language(kind)}" for kind in DeviceKind}
    assert get_args(InterfaceName) == tuple(Interface)
    assert {*get_args(ToleranceClass), PrecisionClass.EXACT} == set(PrecisionClass)


def test_a_folder_stands_for_its_problem_file(folder: Path) -> None:
    load(folder, MINIMAL)
    assert load_problem(folder).path == folder / "problem.yaml"


def test_a_source_in_the_place_of_a_problem_is_told_where_it_belongs(folder: Path) -> None:
    reference, kernel = folder / "reference.py", folder / "kernel.cpp"
    with pytest.raises(ProblemError, match=r"kernel.cpp does not exist; mend the path$"):
        load_problem(kernel)
    with pytest.raises(ProblemError, match=f"a Python file: ridgeline new NAME --from {reference} makes a problem"):
        load_problem(reference)
    kernel.write_text("void run() {}\n")
    with pytest.raises(ProblemError, match=r"kernel.cpp: a kernel's source, not a problem: .*evaluate after it"):
        load_problem(kernel)


def test_a_spec_is_frozen(folder: Path) -> None:
    with pytest.raises(ValueError):
        load(folder, MINIMAL).name = "other"


def test_a_spec_knows_the_place_that_it_was_stated_for() -> None:
    place = ProblemPlace(path=Path("/problems/mine/problem.yaml"), given=Path("mine/problem.yaml"))
    spec = ProblemSpec.stated({"name": "mine", "reference": "reference.py"}, place)
    assert (spec.path, spec.given, spec.reference_given) == (place.path, place.given, Path("mine/reference.py"))
    copied = spec.model_copy(update={"tolerance": "fp64"})
    assert (copied.path, copied.given) == (place.path, place.given)


def test_a_spec_survives_json(folder: Path) -> None:
    spec = load(folder, MINIMAL + "targets: {cpu: {sizes: {ROWS: 16}}}\nbudget: {usd: 5}\n")
    again = parse_problem(json.loads(spec.model_dump_json()), spec.path)
    assert again == spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nmae: mine\nreference: reference.py\n", "nmae: unknown key; did you mean `name`?"),
        (MINIMAL + "search: {rouds: 3}\n", "search.rouds: unknown key; did you mean `rounds`?"),
        (MINIMAL + "targets: {gpu: {}}\n", "targets.gpu: must be one of cpu, cuda, got 'gpu'; did you mean cuda?"),
        (MINIMAL + "interface: C\n", "got 'C'; did you mean c?"),
        (MINIMAL + "interface: cpp\n", "got 'cpp'; did you mean c?"),
        (MINIMAL + "interface: Triton\n", "got 'Triton'; did you mean module?"),
        ("targets: {cpu: {sizes: {\n", "not valid YAML: "),
        (MINIMAL + "tolerance: float32\n", "got 'float32'; did you mean fp32?"),
        (MINIMAL + "ideas: use AVX, and tiles\n", "ideas: must be a list: write ['use AVX, and tiles']"),
        (MINIMAL + "targets: {cpu: {size: {}}}\n", "targets.cpu.size: unknown key; did you mean `sizes`?"),
        (MINIMAL + "zzz: 1\n", "zzz: unknown key; known are schema_version, name, "),
        ("reference: reference.py\n", "name: is missing; add it"),
        ("name: My Problem\nreference: reference.py\n", "name: must be 1 to 64 of a-z, 0-9, _ and -"),
        ("name: ../x\nreference: reference.py\n", "name: must be 1 to 64 of a-z, 0-9, _ and -"),
        ("name: mine\nreference: 3\n", "reference: must be text, got 3"),
        ("name: mine\nreference: none.py\n", "none.py does not exist; mend the path"),
        (
            MINIMAL + "tolerance: fp23\n",
            "tolerance: must be one of fp64, fp32, tf32, fp16, bf16, fp8, crfm, got 'fp23'; did",
        ),
        (MINIMAL + "interface: cuda\n", "interface: must be one of c, torch, module, got 'cuda'"),
        (MINIMAL + "search: {rounds: five}\n", "search.rounds: must be a whole number, got 'five'"),
        (MINIMAL + "search: {rounds: true}\n", "search.rounds: must be a whole number, got True"),
        (MINIMAL + "schema_version: true\n", "schema_version: must be a whole number, got True"),
        (MINIMAL + "schema_version: 1.0\n", "schema_version: must be a whole number, got 1.0"),
        (MINIMAL + "search: {rounds: 0}\n", "search.rounds: must be greater than or equal to 1, got 0"),
        (MINIMAL + "search: 3\n", "search: must be a mapping, got 3"),
        (MINIMAL + "budget: {usd: -1}\n", "budget.usd: must be greater than 0, got -1"),
        (MINIMAL + "targets: {gpu: {}}\n", "targets.gpu: must be one of cpu, cuda, got 'gpu'"),
        (MINIMAL + "targets: {}\n", "targets: must not be empty"),
        (MINIMAL + "targets: {cpu: {sizes: {ROW: 3}}}\n", "targets.cpu.sizes: the reference assigns no `ROW`"),
        (
            MINIMAL + "targets: {cpu: {sizes: {ROWS: big}}}\n",
            "targets.cpu.sizes.ROWS: must be a number or one of float32, ",
        ),
        (
            MINIMAL + "targets: {cpu: {sizes: {ROWS: .inf}}}\n",
            "targets.cpu.sizes.ROWS: must be a number that a float can hold, got inf",
        ),
        (MINIMAL + "targets: {cpu: {sizes: {ROWS: bfloat16}}}\n", "targets.cpu.sizes.ROWS: must be a number as in the"),
        (MINIMAL + "seeds: seeds/a.cpp\n", "seeds: must be a list: write [seeds/a.cpp]"),
        (MINIMAL + "seeds: [seeds/*.cpp]\n", "seeds: `seeds/*.cpp` matches no file in "),
        (MINIMAL + "seeds: [../*.cpp]\n", "seeds: `../*.cpp` leaves the problem's folder"),
        (MINIMAL + "seeds: [/etc/*.cpp]\n", "seeds: `/etc/*.cpp` leaves the problem's folder"),
        (MINIMAL + "seeds: ['.']\n", "seeds: `.` is the problem's folder; name the kernels in it, as in `seeds/*.cpp`"),
        (MINIMAL + f"seeds: [{'x' * 300}]\n", "seeds: `'xxxx"),
        (
            MINIMAL + f"targets: {{cpu: {{sizes: {{ROWS: {'9' * 309}}}}}}}\n",
            "must be a number that a float can hold, got 99",
        ),
        (MINIMAL + "seeds: [problem.yaml]\n", "a seed is a .cpp, .cu or .py file"),
        (MINIMAL + "prices: {mine: {input: 1}}\n", "prices.mine.output: is missing; add it"),
        ("schema_version: 2\n" + MINIMAL, "schema_version: must be one of 1, got 2"),
        ("name: mine\nname: yours\n", "line 2: not valid YAML: `name` is written twice; mend it"),
        ("name: mine\n  reference: [\n", "line 2: "),
        ("name: \x07\n", "unacceptable character"),
        ("- name\n", "holds a list; write `name:` and `reference:` at least"),
        ("", "holds nothing; write `name:` and `reference:` at least"),
    ],
)
def test_a_mistake_is_one_line_with_field_and_remedy(folder: Path, text: str, expected: str) -> None:
    assert expected in message(folder, text)


def test_a_missing_problem_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"nowhere\.yaml does not exist; mend the path$"):
        load_problem(tmp_path / "nowhere.yaml")


def test_a_problem_file_of_another_ending_names_the_one_beside_it(folder: Path) -> None:
    (folder / "problem.yaml").write_text(MINIMAL)
    with pytest.raises(ProblemError, match=r"problem\.yml: does not exist; did you mean .*/problem\.yaml\?$"):
        load_problem(folder / "problem.yml")


def test_a_message_has_the_path_as_it_was_given(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec_path = folder / "problem.yaml"
    spec_path.write_text(MINIMAL)
    monkeypatch.chdir(folder.parent)
    spec = load_problem(Path(folder.name))
    assert spec.path == spec_path
    assert (str(spec.given), str(spec.reference_given)) == (
        f"{folder.name}/problem.yaml",
        f"{folder.name}/reference.py",
    )
    with pytest.raises(ProblemError, match=rf"^{folder.name}/problem\.yaml: targets: has no `tpu`"):
        spec.target("tpu")


def test_a_problem_file_that_is_not_text_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "problem.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProblemError, match="is not UTF-8 text"):
        load_problem(tmp_path / "problem.yaml")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("class Model(:\n", "reference.py: line 1: "),
        ("def get_inputs():\n    return []\n", "reference.py: has no `Model`; define `class Model"),
        ("class Model:\n    pass\n", "reference.py: has no `get_inputs`; define `def get_inputs()`"),
    ],
)
def test_a_reference_without_its_parts_is_one_line(folder: Path, reference: str, expected: str) -> None:
    (folder / "reference.py").write_text(reference)
    with pytest.raises(ProblemError) as caught:
        load(folder, MINIMAL)
    line = str(caught.value)
    assert line.startswith(f"{folder}/{expected}") and "\n" not in line


def test_the_reference_is_never_run(folder: Path) -> None:
    marker = folder / "ran"
    (folder / "reference.py").write_text(f"open({str(marker)!r}, 'w')\n" + REFERENCE)
    load(folder, MINIMAL).reference_source("cpu")
    assert not marker.exists()


def test_sizes_apply_to_their_target_only(folder: Path) -> None:
    spec = load(folder, MINIMAL + "targets: {cpu: {sizes: {ROWS: 16}}, cuda: {sizes: {ROWS: 64, COLS: 32}}}\n")
    assert spec.reference_source("cpu") == REFERENCE.replace("ROWS = 4", "ROWS = 16")
    assert spec.reference_source("cuda") == REFERENCE.replace("ROWS = 4", "ROWS = 64").replace("COLS = 8", "COLS = 32")


def test_a_target_that_the_problem_does_not_name_is_refused(folder: Path) -> None:
    spec = load(folder, MINIMAL + "targets: {cpu: {}}\n")
    with pytest.raises(ProblemError, match="targets: has no `cuda`, only cpu; add `cuda: "):
        spec.reference_source("cuda")


def test_seeds_go_to_the_target_of_their_language(folder: Path) -> None:
    (folder / "seeds").mkdir()
    for name in ("b.cpp", "a.cpp", "a.cu"):
        (folder / "seeds" / name).write_text(f"// {name}\n")
    spec = load(folder, MINIMAL + "seeds: [seeds/*.cpp, seeds/*, seeds/a.cu]\n")
    assert spec.seed_sources("cpu") == [("a", "// a.cpp\n"), ("b", "// b.cpp\n")]
    assert spec.seed_sources("cuda") == [("a", "// a.cu\n")]


def test_two_seeds_of_one_name_are_refused(folder: Path) -> None:
    for sub in ("one", "two"):
        (folder / sub).mkdir()
        (folder / sub / "a.cpp").write_text("")
    assert "two kernels are called `a.cpp`; rename one" in message(folder, MINIMAL + "seeds: ['*/a.cpp']\n")


def test_a_glob_through_thousands_of_folders_is_refused(folder: Path) -> None:
    said = message(folder, MINIMAL + f"seeds: ['{'a/' * 3000}']\n")
    assert "names too many folders; shorten it" in said


def test_a_seed_that_links_out_of_the_folder_is_refused(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "reference.py").write_text(REFERENCE)
    (folder / "secret.cpp").write_text("// secret")
    (inner / "a.cpp").symlink_to(folder / "secret.cpp")
    with pytest.raises(ProblemError, match="is a link out of the problem's folder"):
        load(inner, MINIMAL + "seeds: ['*.cpp']\n")


def test_a_number_in_scientific_notation_is_a_number(folder: Path) -> None:
    assert load(folder, MINIMAL + "budget: {usd: 1e3}\n").budget.usd == 1000


SEEDLESS = {"attention_causal", "conv2d_bias_silu"}
SHIPPED = SEEDLESS | {
    "attention_fp16",
    "attention_fp16_d128",
    "conv2d",
    "conv2d_relu_maxpool",
    "layernorm",
    "matmul",
    "matmul_fp16",
    "quickstart",
    "rms_norm_gate_torch",
    "softmax",
}


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_shipped_problem_loads_and_most_have_a_seed_kernel(name: str) -> None:
    spec = load_problem(shipped_problems()[name])
    assert spec.name == name
    assert bool(spec.seed_sources("cpu")) is (name not in SEEDLESS)


def test_every_shipped_problem_is_tested_here() -> None:
    assert set(shipped_problems()) == SHIPPED


def test_relative_path_is_remembered_as_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "problem.yaml").write_text(MINIMAL)
    monkeypatch.chdir(tmp_path)
    assert load_problem(Path("problem.yaml")).path == tmp_path / "problem.yaml"
    (tmp_path / "reference.py").unlink()
    with pytest.raises(ProblemError, match="^problem.yaml: reference"):
        load_problem(Path("problem.yaml"))
