"""A problem made of a live module: its folder, the reference in it, and what is refused."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from ridgeline.graph.search.coverage import why_uncovered
from ridgeline.problems.spec import ProblemSpec, load_problem
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.outline_main import outline
from ridgeline.tools.local.engine import on_device
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, PrecisionClass, Role

CPU = Device(
    kind=DeviceKind.CPU, name="cpu", arch="native", uuid="", cores=2, memory_bytes=1 << 33, cache_bytes=1 << 25
)


class Chain(nn.Module):
    """A layer norm and a GELU: a family that the offline model composes."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(functional.gelu(self.norm(x)))


class Block(nn.Module):
    """What a module of a program may hold: tied weights, buffers of each kind, a plain tensor, contexts, writes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16), nn.Linear(16, 16)])
        self.layers[1].weight = self.layers[0].weight
        self.norm = nn.BatchNorm1d(16)
        self.register_buffer("table", torch.linspace(0, 1, 64).reshape(4, 16).sin(), persistent=False)
        self.register_buffer("mask", torch.ones(16, 16).tril().bool())
        self.unused = nn.Parameter(torch.zeros(3))
        self.steps = torch.arange(16.0).sqrt()  # neither a parameter nor a buffer

    def forward(self, x: torch.Tensor, n: int, scale: float, other: torch.Tensor | None = None) -> dict[str, Any]:
        with torch.no_grad():
            y = functional.silu(self.layers[0](x)) + self.table
        with torch.autocast("cpu", enabled=False):
            y = y @ torch.where(self.mask, self.layers[1].weight, 0.0) * scale + self.steps
        y = y.relu_()
        y += n
        a, b = self.norm(y).to(x.dtype)[:, :].chunk(2, -1)
        return {"a": a, "b": (b[..., None], [torch.arange(4, device=x.device) * 2])}


def made(folder: Path, module: nn.Module, *example: Any, **keys: Any) -> ProblemSpec:
    return ProblemSpec.from_module(module, example, folder=folder / "own", **{"name": "own", **keys})


def reference_of(spec: ProblemSpec) -> Any:
    """Run a problem's reference, whose module is this file's own."""
    module = types.ModuleType("reference")
    exec(spec.reference_source("cpu"), module.__dict__)
    return module


def test_the_folder_is_an_ordinary_problem_that_says_what_it_is(tmp_path: Path) -> None:
    spec = made(tmp_path, Chain(), torch.randn(8, 64), search={"rounds": 1}, models=["offline"])
    assert load_problem(tmp_path / "own") == spec and (spec.search.rounds, spec.tolerance) == (1, "fp32")
    assert {path.name for path in (tmp_path / "own").iterdir()} == {"problem.yaml", "reference.py"}
    text = spec.reference_source("cpu")
    for part in (
        "- x: float32 (8, 64)",
        "# class Chain(nn.Module):",
        "#   (norm): LayerNorm((64,)",
        "_parameter(self, 'norm.weight', torch.ones((64,)",
        "layer_norm = torch.layer_norm(x, [64], self.norm.weight, self.norm.bias, 1e-05, False)  # (8, 64) float32",
        "gelu = F.gelu(layer_norm); del layer_norm",
        "_normal((8, 64), torch.float32, mean=0.0, std=1.0),  # x",
    ):
        assert part in text
    assert str(tmp_path) not in text


def test_the_example_of_the_page_makes_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "problem.md"
    block = page.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    assert "from_module" in block
    monkeypatch.chdir(tmp_path)
    exec(block, {})
    assert load_problem(Path("own/block")).name == "block"


def test_the_reference_does_what_the_module_does_with_the_modules_own_tensors(tmp_path: Path) -> None:
    module = Block()
    spec = made(tmp_path, module, torch.randn(4, 16), 3, 0.5)
    model = reference_of(spec).Model().eval()
    assert [n for n, _ in model.named_parameters()] == [n for n, _ in module.named_parameters()]
    assert [n for n, _ in model.named_buffers()] == [n for n, _ in module.named_buffers()]
    assert set(model.state_dict()) == set(module.state_dict())
    assert model.layers._modules["1"].weight is model.layers._modules["0"].weight
    assert torch.equal(model.mask, module.mask) and torch.equal(model.table, module.table)
    model.load_state_dict(module.state_dict())
    x = torch.randn(4, 16)
    with torch.no_grad():
        got, wanted = model(x, 3, 0.25), module.eval()(x, 3, 0.25)
        assert model.double()(x.double(), 3, 0.25)["a"].dtype is torch.float64, "types follow the input's"
    torch.testing.assert_close(got, wanted)
    with pytest.raises(ValueError, match="n is 3 here"):
        model(x, 4, 0.5)


def test_the_judge_exports_the_reference_and_the_offline_model_knows_its_family(tmp_path: Path) -> None:
    spec = made(tmp_path, Chain(), torch.randn(8, 64))
    found = outline(spec.reference_source("cpu"), PrecisionClass.FP32, with_graph=True)
    assert found.description is not None and found.description.reference_graph is not None, found.reason
    assert why_uncovered(on_device(spec, CPU).described(found.description)) is None
    other = outline(
        made(tmp_path / "b", Block(), torch.randn(4, 16), 3, 0.5).reference_source("cpu"), PrecisionClass.FP32
    )
    assert other.signature is not None and not other.reason
    assert [(a.source, a.kind) for a in other.signature.with_role(Role.INPUT)] == [
        ("x", ArgKind.TENSOR), ("n", ArgKind.SCALAR), ("scale", ArgKind.SCALAR)
    ]  # fmt: skip
    assert "layers.0.weight" in {a.source for a in other.signature.with_role(Role.PARAMETER)}


def test_the_module_and_the_example_are_left_as_they_were(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(inplace=True)).train()
    module[1].eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    x = torch.randn(4, 8, requires_grad=True)
    held, drawn = x.detach().clone(), torch.get_rng_state()
    spec = made(tmp_path, module, x)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert [part.training for part in module] == [True, False, True, True] and module.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert torch.equal(x, held) and all(p.requires_grad for p in module.parameters())
    text = spec.reference_source("cpu")
    assert "dropout" not in text.partition("class Model")[2] and "False, 0.1, 1e-05" in text


def test_a_module_that_fails_gets_its_mode_back(tmp_path: Path) -> None:
    module = Chain().train()
    with pytest.raises(ProblemError, match="cannot be exported"):
        made(tmp_path, module, torch.randn(8, 63))
    assert module.training and module.drop.training and not (tmp_path / "own").exists()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, "bf16"), (torch.float16, "fp16")])
def test_half_precision_is_judged_as_such(tmp_path: Path, dtype: torch.dtype, tolerance: str) -> None:
    module = nn.Linear(8, 8, dtype=dtype)
    spec = made(tmp_path, module, torch.randn(4, 8, dtype=dtype))
    assert spec.tolerance == tolerance
    model, (x,) = reference_of(spec).Model(), reference_of(spec).get_inputs()
    assert model.weight.dtype is dtype and model(x).dtype is dtype
    assert made(tmp_path / "other", module, torch.randn(4, 8, dtype=dtype), tolerance="crfm").tolerance == "crfm"


# -------------------------------------------------------------------------------------------------------------- inputs


class Given(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def drawn_like(folder: Path, example: torch.Tensor) -> torch.Tensor:
    spec = ProblemSpec.from_module(Given(), (example,), name="given", folder=folder / "given")
    drawn = reference_of(spec).get_inputs()[0]
    assert (drawn.shape, drawn.dtype, drawn.stride()) == (example.shape, example.dtype, example.stride())
    return drawn  # type: ignore[no-any-return]


CAUSAL = torch.full((64, 64), float("-inf")).triu(1)
KEPT: dict[str, torch.Tensor] = {
    "causal": CAUSAL,
    "boolean": torch.ones(64, 64).tril().bool(),
    "lengths": torch.tensor([0, 7, 9, 20], dtype=torch.int32),
    "positions": torch.arange(600),
    "permutation": torch.randperm(600),
    "one": torch.tensor(7),
    "true": torch.ones(3, dtype=torch.bool),
    "grid": torch.linspace(0, 1, 50),
    "biased": torch.where(CAUSAL == 0, torch.randn(64, 64), CAUSAL),
    "empty": torch.zeros(0, 3),
}


@pytest.mark.parametrize("name", KEPT)
def test_an_example_with_a_structure_is_kept(tmp_path: Path, name: str) -> None:
    assert torch.equal(drawn_like(tmp_path, KEPT[name]), KEPT[name])


def test_a_permuted_layout_is_drawn_in_its_own_strides(tmp_path: Path) -> None:
    drawn_like(tmp_path, torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last))


@pytest.mark.parametrize(
    ("example", "is_like"),
    [
        (torch.randn(64, 64) * 100 + 1000, lambda t: 64 < t.std() < 160 and 900 < t.mean() < 1100),
        (torch.rand(64, 64), lambda t: 0 <= t.min() < 0.1 and 0.9 < t.max() <= 1.1),
        (-torch.rand(64, 64) - 1, lambda t: t.min() >= -2.2 and t.max() <= -0.9),
        (torch.ones(64, 64), lambda t: t.min() >= 0.5 and t.max() <= 1.5 and t.std() > 0.1),
        (torch.zeros(64, 64), lambda t: t.min() < 0 < t.max()),
        (torch.randint(3, 50, (64, 64)), lambda t: t.min() == 3 and t.max() == 49),
        (torch.rand(1024, 1024) < 0.25, lambda t: 0.2 < t.double().mean() < 0.3),
        ((torch.rand(1024, 1024) < 0.25).float(), lambda t: 0.2 < t.mean() < 0.3 and set(t.unique().tolist()) == {0, 1}),
        (torch.randn(64, dtype=torch.float64) * 1e-5, lambda t: 4e-6 < t.std() < 3e-5),
    ],
)  # fmt: skip
def test_other_inputs_are_drawn_in_the_way_of_the_example(
    tmp_path: Path, example: torch.Tensor, is_like: Callable[[torch.Tensor], bool]
) -> None:
    assert is_like(drawn_like(tmp_path, example))


def test_indices_stay_within_those_of_the_example(tmp_path: Path) -> None:
    spec = made(tmp_path, nn.Embedding(32, 8), torch.randint(0, 32, (4, 16)))
    reference = reference_of(spec)
    assert reference.Model()(*reference.get_inputs()).shape == (4, 16, 8)


# ------------------------------------------------------------------------------------------------- the folder once more


def test_the_same_problem_is_found_again_with_other_weights_and_another_draw(tmp_path: Path) -> None:
    spec = made(tmp_path, Chain(), torch.randn(8, 64))
    spec.path.write_text(spec.path.read_text() + "ideas: [mine]\n")
    text = spec.reference_source("cpu")
    trained = Chain()
    again = made(tmp_path, trained, torch.randn(8, 64))
    assert again.ideas == ["mine"] and again.reference_source("cpu") == text
    with pytest.raises(ProblemError, match="another `interface` than is asked for; change it there"):
        made(tmp_path, trained, torch.randn(8, 64), interface="torch")


@pytest.mark.parametrize(
    "other",
    [
        lambda folder: made(folder, Chain(), torch.randn(4, 64)),
        lambda folder: made(folder, Chain(), torch.randn(8, 64) * 10),
        lambda folder: made(folder, nn.LayerNorm(64), torch.randn(8, 64)),
        lambda folder: made(folder, Chain(), torch.randn(8, 64), name="other"),
    ],
)
def test_another_problem_in_the_folder_is_refused(tmp_path: Path, other: Callable[[Path], ProblemSpec]) -> None:
    made(tmp_path, Chain(), torch.randn(8, 64))
    with pytest.raises(ProblemError, match="another") as caught:
        other(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_variance_of_few_channels_stays_positive(tmp_path: Path) -> None:
    module = nn.BatchNorm1d(4)
    module.running_var.copy_(torch.tensor([0.1, 0.2, 5.0, 0.4]))
    variance = reference_of(made(tmp_path, module, torch.randn(8, 4))).Model().running_var
    assert (variance > 0).all() and not torch.equal(variance, module.running_var)


def test_a_count_that_training_raises_is_no_part_of_the_problem(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    made(tmp_path, module, torch.randn(4, 8))
    module[1].num_batches_tracked += 1000
    made(tmp_path, module, torch.randn(4, 8))


def test_another_table_is_another_problem(tmp_path: Path) -> None:
    tables = [torch.arange(64.0).sin(), torch.arange(64.0).cos()]

    class Table(nn.Module):
        def __init__(self, table: torch.Tensor) -> None:
            super().__init__()
            self.register_buffer("table", table, persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.table

    made(tmp_path, Table(tables[0]), torch.randn(8, 64))
    made(tmp_path, Table(tables[0]), torch.randn(8, 64))
    with pytest.raises(ProblemError, match="holds another problem, own; give another folder"):
        made(tmp_path, Table(tables[1]), torch.randn(8, 64))


class Scaled(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = torch.tensor(scale)
        self.register_buffer("shift", torch.full((4,), scale), persistent=False)

    def forward(self, x: torch.Tensor, least: float = 0.0) -> torch.Tensor:
        return (x * self.scale).clamp(min=least) + self.shift[0]


def test_another_constant_of_about_the_same_size_is_another_problem(tmp_path: Path) -> None:
    made(tmp_path, Scaled(0.125), torch.randn(8, 64))
    made(tmp_path, Scaled(0.125), torch.randn(8, 64))
    with pytest.raises(ProblemError, match="holds another problem"):
        made(tmp_path, Scaled(0.2), torch.randn(8, 64))


@pytest.mark.parametrize("number", [float("-inf"), float("nan")])
def test_a_number_that_is_not_finite_is_given_as_it_is(tmp_path: Path, number: float) -> None:
    reference = reference_of(made(tmp_path, Scaled(0.125), torch.randn(8, 64), number))
    x, given = reference.get_inputs()
    assert repr(given) == repr(number)
    assert torch.allclose(reference.Model()(x, given), Scaled(0.125)(x, given), equal_nan=True)


def test_a_forward_that_fails_only_when_it_is_run_is_told_in_one_line(tmp_path: Path) -> None:
    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if type(x) is torch.Tensor and not torch.compiler.is_exporting():
                raise OSError("no room")
            return x + 1

    with pytest.raises(ProblemError, match="forward fails on the example: OSError: no room"):
        made(tmp_path, Fails(), torch.randn(8, 64))


def test_a_folder_of_something_else_and_one_that_cannot_be_written_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    made(tmp_path, Given(), torch.randn(4))  # an empty folder is as good as none
    (tmp_path / "b" / "own").mkdir(parents=True)
    (tmp_path / "b" / "own" / "precious").write_text("")
    (tmp_path / "c").write_text("")
    for folder, said in (
        (tmp_path / "b", "holds no problem.yaml; give a new folder"),
        (tmp_path / "c", "give another folder"),
    ):
        with pytest.raises(ProblemError, match=said):
            made(folder, Given(), torch.randn(4))
    assert [path.name for path in (tmp_path / "b" / "own").iterdir()] == ["precious"]


# ----------------------------------------------------------------------------------------------------- what is refused


class Refused(nn.Module):
    def __init__(self, forward: Callable[..., Any]) -> None:
        super().__init__()
        self.call = forward
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(self, x)


def counted(module: Refused, x: torch.Tensor) -> torch.Tensor:
    module.count += 1
    return x * module.count


def with_autocast(_: Refused, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu"):
        return x @ x


@pytest.mark.parametrize(
    ("forward", "said"),
    [
        (lambda _, x: x if x.sum() > 0 else -x, "cannot be exported: .*data-dependent"),
        (lambda _, x: x * x.sum().item(), "makes a number or a shape of a tensor's values"),
        (lambda _, x: x[x > 0], "makes a number or a shape of a tensor's values"),
        (lambda _, x: functional.dropout(x, 0.5), "gives another result than the module"),
        (counted, "gives another result|changes count"),
        (with_autocast, "forward uses autocast"),
        (lambda _, x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), "forward uses cond"),
        (lambda _, x: 1 / 0, "cannot be exported: ZeroDivisionError"),
    ],
)
def test_what_a_reference_cannot_do_is_told_in_one_line(
    tmp_path: Path, forward: Callable[..., Any], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ProblemError, match=f"^ProblemSpec.from_module: .*({said})") as caught:
            made(tmp_path, Refused(forward), torch.randn(4, 4))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
    assert not (tmp_path / "own").exists()
    said_by_torch = capfd.readouterr()
    assert not said_by_torch.out and "def forward" not in said_by_torch.err


def test_arguments_that_are_none_are_told_in_one_line(tmp_path: Path) -> None:
    x = torch.randn(4, 4)
    lazy, sparse = nn.LazyLinear(4), Given()
    sparse.weight = nn.Parameter(torch.eye(4).to_sparse())
    large = Refused(lambda module, x: x + module.noise[0])
    large.register_buffer("noise", torch.randn(1 << 21), persistent=False)
    refused: list[tuple[Any, Any, dict[str, Any], str]] = [
        (Given, (x,), {}, "module must be a torch.nn.Module, got"),
        (Given(), x, {}, "example_inputs must be a tuple of forward's arguments, got a Tensor"),
        (Given(), ([x],), {}, "input x: must be a tensor, a number or None, got a list; pass its tensors"),
        (Given(), ({"x": x},), {}, "input x: must be a tensor, a number or None, got a mapping"),
        (Given(), ("x",), {}, "input x: must be a tensor"),
        (Given(), (2.0,), {}, "hold no tensor"),
        (Given(), (), {}, "hold no tensor"),
        (Given(), (x.to_sparse(),), {}, "input x: is nested, sparse"),
        (Given(), (x.to(torch.complex64),), {}, "input x: is complex64"),
        (Given(), (x.to("meta"),), {}, "input x: is nested, sparse or without values"),
        (lazy, (x,), {}, "parameter weight: is not initialised; call the module once first"),
        (sparse, (x,), {}, "parameter weight: is nested, sparse"),
        (large, (x,), {}, "buffer noise: its 8388608 bytes are held exactly"),
        (Given(), (x,), {"reference": "x.py"}, "reference: is written here"),
        (Given(), (x,), {"serach": {}}, "serach: unknown key; did you mean `search`"),
        (Given(), (x,), {"name": "Own"}, "name: must be 1 to 64"),
        (Given(), (x,), {"tolerance": "fp33"}, "tolerance: must be one of"),
        (Given(), (x,), {"folder": 5}, "folder must be a path, got 5"),
    ]
    for module, example, keys, said in refused:
        given = {"name": "own", "folder": tmp_path / "own", **keys}
        with pytest.raises(ProblemError, match=f"^ProblemSpec.from_module: .*{said}") as caught:
            ProblemSpec.from_module(module, example, **given)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "own").exists()
