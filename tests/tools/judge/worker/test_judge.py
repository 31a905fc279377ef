"""The judge's process on references of every kind."""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ridgeline.tools.errors import BadReferenceError, EngineError, JudgeCrashed, ProblemError
from ridgeline.tools.judge import hang_limit
from ridgeline.tools.judge.messages import Check, Examine, Loop, Prepare, PrepareMode, Renew, Wipe, operation
from ridgeline.tools.judge.process import JudgeProcess, SharedRegion
from ridgeline.tools.judge.replies import JudgeFailureCode, Missing
from ridgeline.tools.judge.worker.__main__ import _lost_gpu, failure
from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.judge import _contents_may_be_refused
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.vocabulary import ArgKind, Interface, PrecisionClass, Role

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("warm_judge")]
HEAD = "import torch\nfrom torch import nn\ndef get_init_inputs():\n    return []\n"
MODEL = "class Model(nn.Module):\n    def forward(self, {args}):\n        {body}\n"
INPUTS = "def get_inputs():\n    return [{inputs}]\n"


def reference(args: str, body: str, inputs: str) -> str:
    return HEAD + MODEL.format(args=args, body=body) + INPUTS.format(inputs=inputs)


@contextmanager
def judging(
    source: str,
    tmp_path: Path,
    tolerance: str = "fp32",
    memory_bytes: int | None = None,
    call_timeout_s: float = 30.0,
) -> Iterator[JudgeProcess]:
    device = detect_device("cpu")
    device = replace(device, memory_bytes=memory_bytes or device.memory_bytes)
    problem = Target(
        name="p",
        reference_source=source,
        interface=Interface.C,
        tolerance=PrecisionClass(tolerance),
        device=device,
        call_timeout_s=call_timeout_s,
    )
    judge = JudgeProcess(problem, os.urandom(16), tmp_path)
    try:
        yield judge
    finally:
        judge.close()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            reference("x", "raise ValueError('no rows')", "torch.ones(4, 4)"),
            r"forward.* raised ValueError: no rows \(line 7 in forward\)$",
        ),
        (reference("x", "return x @ torch.ones(3)", "torch.ones(4, 4)"), r"RuntimeError: .* \(line 7 in forward\)$"),
        (
            HEAD + "class Model(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n",
            r"Model\(\) raised TypeError: .*'d'; the list that get_init_inputs\(\) returns holds its arguments$",
        ),
        (
            reference("x, y", "return x", "torch.ones(4, 4)"),
            r"forward\(\) raised TypeError: .*'y'; the list that get_inputs\(\) returns holds its arguments$",
        ),
        (reference("x", "return x + torch.rand(4, 4)", "torch.ones(4, 4)"), "nondeterministic.*self.training"),
        (reference("x", "return 3", "torch.ones(4, 4)"), "must return a tensor"),
        (reference("x", "return torch.ones(4)", "3.0"), "gives no tensor"),
        (
            reference("x", "return x.add_(1) if x[0, 0] > 0.6 else x + 1", "torch.rand(4, 4)"),
            "in place on an input for some",
        ),
        (reference("x", "return x", "torch.ones(4, 4, dtype=torch.complex64)"), "complex64"),
        (reference("x", "return x", "'text'"), "is a str"),
        (HEAD, "Model is missing"),
        ("import torch\n1 / 0\n", "ZeroDivisionError"),
        ("raise SystemExit('bye')", r"module raised SystemExit: bye \(line 1\)$"),
        (
            reference("x", "raise KeyboardInterrupt", "torch.ones(4, 4)"),
            "forward.* raised KeyboardInterrupt .line 7 in forward.$",
        ),
        (
            "raise AssertionError('Torch not compiled with CUDA enabled')",  # as `.cuda()` does without a GPU
            "make model and inputs on the CPU: Ridgeline moves them to the device$",
        ),
        ("import helper_beside_it", r"No module named 'helper_beside_it' \(line 1\); .*a reference is one file"),
        ("import os; os.listdir(os.path.dirname(__file__))", "'__file__' is not defined .*; a reference is one file"),
        ("raise ValueError('\\udcff \\x1b[31m\\nred')", r"ValueError: \\udcff \\x1b\[31m red \(line 1\)$"),
        (HEAD + "def Model():\n    return abs\n" + INPUTS.format(inputs="1"), "must give a torch.nn.Module"),
        (reference("x", "return x", "torch.ones(4, 4).to_sparse()"), "input x is sparse_coo"),
        (reference("x", "return x.to_sparse()", "torch.ones(4, 4)"), "returns sparse_coo"),
        (reference("x", "return x", "torch.ones(4, 4, device='meta')"), "input x is on the meta device"),
        (reference("x", "return x[:0]", "torch.ones(4, 4)"), "only empty tensors"),
        (reference("x", "return x[x > 0]", "torch.randn(64, 64)"), r"forward\(\) gives float32 .* and then float32"),
        (reference("x", "return x", "torch.randn(int(torch.randint(9, 99, ())))"), r"get_inputs\(\) gives float32"),
        (reference("x, n", "return x * n", "torch.ones(4, 4), 10**400"), "input n exceeds 2\\^53"),
    ],
)
def test_a_reference_that_cannot_be_judged_gives_one_line(source: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=says) as caught, judging(source, tmp_path):
        pass
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("while True:\n    pass\n", "line [12] in <module>"),
        (reference("x", "while True: pass", "torch.ones(4, 4)"), "line 7 in forward"),
        ("import time\n\ntime.sleep(1e6)\n", "line 3 in <module>"),
        ("while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass\n", "line 3"),
    ],
)
def test_a_reference_that_does_not_end_is_named_with_its_line(
    source: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hang_limit, "SHORTEST_S", 1.0)
    with (
        pytest.raises(ProblemError, match=rf"reference.py: {where}.*: did not end within 2 s; mend") as caught,
        judging(source, tmp_path, call_timeout_s=1.0),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_words_like_those_of_a_hang_on_standard_error_are_no_hang(tmp_path: Path) -> None:
    source = "import os, sys\nsys.stderr.write('Timeout (0:01:00)!\\n')\nsys.stderr.flush()\nos._exit(1)\n"
    with pytest.raises(ProblemError, match="ended the process that ran it"), judging(source, tmp_path):
        pass


def test_a_reference_that_ends_or_crashes_its_process_gives_one_line(tmp_path: Path) -> None:
    for source, says in (("import os; os._exit(0)", "exit status 0"), ("import os; os.abort()", "signal 6")):
        with (
            pytest.raises(ProblemError, match=rf"ended the process that ran it \(.*{says}\)"),
            judging(source, tmp_path),
        ):
            pass


@pytest.mark.parametrize("said", ["hello", "[1]"])
def test_a_reference_that_writes_to_the_judges_connection_is_named(said: str, tmp_path: Path) -> None:
    source = f"""
import os, stat
for fd in range(3, 100):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            os.write(fd, b"{said}\\n")
    except OSError:
        pass
"""
    with (
        pytest.raises(
            BadReferenceError, match=r"^reference.py: it wrote .* to a descriptor that is not its own"
        ) as caught,
        judging(source, tmp_path),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_a_reference_that_the_kernel_ends_is_told_of_memory(tmp_path: Path) -> None:
    line = r"killed by signal 9\); memory probably ran out: .*choose smaller sizes \(targets.cpu.sizes\)$"
    with pytest.raises(ProblemError, match=line), judging("import os; os.kill(os.getpid(), 9)", tmp_path):
        pass


def test_a_judge_that_is_killed_once_while_it_loads_is_started_again(tmp_path: Path) -> None:
    mark = str(tmp_path / "killed")
    once = f"import os\nif not os.path.exists({mark!r}):\n    os.mkdir({mark!r})\n    os.kill(os.getpid(), 9)\n"
    with judging(once + reference("x", "return x * 2", "torch.randn(8, 8)"), tmp_path):
        assert Path(mark).exists()


def test_a_problem_that_does_not_fit_the_memory_is_refused_before_it_is_judged(tmp_path: Path) -> None:
    """3 x 2 x 4 MiB of sets and 2 x 8 MiB in float64."""
    line = (
        r"^reference.py: judging it takes at least 42 MB \(3 sets of inputs and outputs, and one in float64\), "
        r"this machine has 42 MB: choose smaller sizes \(targets.cpu.sizes\)$"
    )
    source = reference("x", "return x * 2", "torch.randn(1024, 1024)")
    with pytest.raises(ProblemError, match=line), judging(source, tmp_path, memory_bytes=(40 << 20) - 1):
        pass


def test_inputs_that_memory_does_not_hold_are_one_line_with_figures_and_remedy(tmp_path: Path) -> None:
    source = reference("x", "return x * 2", "torch.empty(1 << 50)")
    line = r"^reference.py: memory ran out: judging it takes about \d+ GB, this machine has .* \(targets.cpu.sizes\)$"
    with pytest.raises(ProblemError, match=line) as raised, judging(source, tmp_path):
        pass
    assert "\n" not in str(raised.value)


def test_what_a_reference_prints_or_forks_does_not_disturb_the_judge(tmp_path: Path) -> None:
    noise = "import os, sys\nprint('x' * 10**6, file=sys.stderr)\nprint('{}')\nos.fork()\n"
    with judging(noise + reference("x", "print('y'); return x * 2 + 1", "torch.randn(8, 8)"), tmp_path) as judge:
        assert judge.problem.degenerate is None
        judge.ask(Renew())


def test_a_trial_whose_values_grow_beyond_every_type_is_left_out(tmp_path: Path) -> None:
    with judging(reference("x", "return torch.cumprod(x, dim=1)", "torch.rand(2, 512)"), tmp_path) as judge:
        skipped = judge.problem.description.skipped_trials
    assert "shifted" in {trial.name for trial in skipped}, "3x + 2 to the power of 512"


def test_arguments_that_would_share_a_name_get_names_of_their_own(tmp_path: Path) -> None:
    pair = reference("xs, xs_0, X, x, *more", "return xs[0] + xs_0 + X + x + more[0]", "[T()], T(), T(), T(), T()")
    with judging("import torch\nT = lambda: torch.randn(8, 8)\n" + pair, tmp_path) as judge:
        names = [a.name for a in judge.problem.description.signature.args]
    assert names == ["xs_0", "xs_0_", "X", "x_", "arg_4", "out"]


def test_named_tuples_reach_forward_as_such(tmp_path: Path) -> None:
    head = "import torch\nfrom collections import namedtuple\nPair = namedtuple('Pair', 'a b')\n"
    source = head + reference("pair", "return pair.a * pair.b", "Pair(torch.randn(8, 8), torch.randn(8, 8))")
    with judging(source, tmp_path) as judge:
        assert [a.name for a in judge.problem.description.signature.args] == ["pair_0", "pair_1", "out"]


def test_dicts_reach_forward_as_such_and_are_flattened_by_their_keys(tmp_path: Path) -> None:
    inputs = "{'q': torch.randn(8, 8), 'deep': [torch.randn(8, 8), {'a.b': torch.randn(8, 8)}], 's': 2.0}"
    source = reference("batch", "q, (k, m) = batch['q'], batch['deep']; return q - k * batch['s'] + m['a.b']", inputs)
    with judging(source, tmp_path) as judge:
        description = judge.problem.description
    names = [a.name for a in description.signature.args]
    assert names == ["batch_q", "batch_deep_0", "batch_deep_1_a_b", "batch_s", "out"]
    assert description.reference_graph is not None
    assert [n["shape"] for n in description.reference_graph["nodes"] if n["op"] == "placeholder"][:3] == [[8, 8]] * 3


def test_description_flattens_lists_scalars_none_and_outputs(tmp_path: Path) -> None:
    source = reference(
        "xs, scale, flag, mask=None",
        "return xs[0] * scale, (xs[1] > 0) if flag else xs[1]",
        "[torch.randn(4, 32), torch.randn(8, 4).t()], 0.5, True, None",
    )
    with judging(source, tmp_path) as judge:
        args = judge.problem.description.signature.args
    assert [a.name for a in args] == ["xs_0", "xs_1", "scale", "flag", "mask", "out_0", "out_1"]
    assert args[1].strides == (1, 4)
    assert (args[2].kind, args[2].value, args[3].dtype, args[4].kind) == (ArgKind.SCALAR, 0.5, "bool", ArgKind.NONE)
    assert (args[6].role, args[6].dtype, args[6].strides) == (Role.OUTPUT, "bool", (8, 1))


def test_transforms_outside_the_domain_are_skipped_and_named(tmp_path: Path) -> None:
    source = reference("x", "return torch.acos(x)", "torch.rand(64, 64)")
    with judging(source, tmp_path) as judge:
        assert "shifted" not in judge.problem.trials
        assert "shifted" in {trial.name for trial in judge.problem.description.skipped_trials}


def test_a_reference_whose_output_is_constant_is_degenerate(tmp_path: Path) -> None:
    source = reference(
        "x", "y = x.max(1, keepdim=True).values; return y - y.mean(1, keepdim=True)", "torch.randn(64, 64)"
    )
    with judging(source, tmp_path) as judge:
        assert judge.problem.degenerate is not None and judge.problem.degenerate.code == "constant_output"


def test_identity_is_degenerate_and_an_affine_map_is_work(tmp_path: Path) -> None:
    with judging(reference("x", "return x.clone()", "torch.randn(64, 64)"), tmp_path) as judge:
        assert judge.problem.degenerate is not None and judge.problem.degenerate.code == "trivial_output_passes"
    with judging(reference("x", "return x * 3 + 1", "torch.randn(64, 64)"), tmp_path) as judge:
        assert judge.problem.degenerate is None


def test_zeros_do_not_pass_for_softmax_at_the_loose_tolerance(tmp_path: Path) -> None:
    source = reference("x", "return torch.softmax(x, 1)", "torch.randn(32, 4096)")
    with judging(source, tmp_path, tolerance="crfm") as judge:
        assert judge.problem.degenerate is None
        judge.ask(Prepare(trial="nominal_0", set_index=0, nan=True))
        missing = judge.ask(Examine(trial="nominal_0", set_index=0))
        assert isinstance(missing, Missing) and missing.count == 32 * 4096


def test_references_in_bf16_with_integer_inputs_and_buffers_load(tmp_path: Path) -> None:
    source = (
        HEAD
        + "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + "        self.register_buffer('table', torch.rand(10, 64, dtype=torch.bfloat16))\n"
        + "    def forward(self, x, index):\n        return x * self.table[index]\n"
        + INPUTS.format(inputs="torch.randn(32, 64, dtype=torch.bfloat16), torch.randint(0, 10, (32,))")
    )
    with judging(source, tmp_path) as judge:
        assert [a.name for a in judge.problem.description.signature.args] == ["x", "index", "table", "out"]
        assert judge.ask(PrepareMode(mode=ReferenceMode.EAGER)).measured is PrecisionClass.BF16
        judge.ask(Renew())
        judge.ask(Loop(mode=ReferenceMode.EAGER, sets=(1, 2, 0)))


def test_a_judge_that_dies_is_an_engine_error(tmp_path: Path) -> None:
    with judging(reference("x", "return x * 2", "torch.randn(8, 8)"), tmp_path) as judge:
        os.kill(judge.pid, 9)
        with pytest.raises(JudgeCrashed, match="signal 9"):
            judge.ask(Renew())


def test_runner_cannot_write_or_resize_inputs(tmp_path: Path) -> None:
    import fcntl
    import mmap

    with judging(reference("x", "return x * 2", "torch.randn(64, 64)"), tmp_path) as judge:
        region = judge.problem.regions[0]
        assert not region.writable
        reopened = os.open(f"/proc/self/fd/{region.fd}", os.O_RDWR)
        with pytest.raises(PermissionError):
            mmap.mmap(reopened, region.size_bytes)
        with pytest.raises(PermissionError):
            os.pwrite(reopened, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(reopened, 0)
        with pytest.raises(PermissionError):
            fcntl.fcntl(reopened, fcntl.F_ADD_SEALS, 0)
        os.close(reopened)


def test_a_wipe_leaves_nothing_that_a_runner_wrote(tmp_path: Path) -> None:
    with judging(reference("x", "return x * 2", "torch.randn(10, 10)"), tmp_path) as judge:
        inputs, _, outputs = (_floats(region) for region in judge.problem.regions)
        judge.ask(Wipe())  # before the first runner, as before every one
        judge.ask(Renew())
        outputs[:] = 7.0  # between the tensors too: 100 floats end in the middle of a page
        judge.ask(Wipe())
        assert not outputs.any()
        assert inputs[:100].all()


def test_only_loading_blames_the_reference(tmp_path: Path) -> None:
    """One that ran when it was loaded and fails later ran out of something: no reason to end a search."""
    switch = tmp_path / "fails"
    body = f"if Path({str(switch)!r}).exists():\n            raise RuntimeError('no memory')\n        return x * 2"
    source = "from pathlib import Path\n" + reference("x", body, "torch.randn(8, 8)")
    with judging(source, tmp_path) as judge:
        judge.ask(Prepare(trial="nominal_0", set_index=0, nan=True))
        switch.touch()
        for request in (Check(set_index=0), Loop(mode=ReferenceMode.EAGER, sets=(0,))):
            with pytest.raises(EngineError, match=f"{operation(type(request))}: .*no memory"):
                judge.ask(request)
        switch.unlink()
        judge.ask(Renew())
    switch.touch()
    with pytest.raises(ProblemError, match="no memory"), judging(source, tmp_path):
        pass


def test_checks_of_one_block_use_the_parameters_that_the_candidate_saw(tmp_path: Path) -> None:
    """With so little memory no trial is kept: making one again must not replace what lies in the judge's memory."""
    source = (
        HEAD
        + "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + "        self.gain = nn.Parameter(torch.ones(64))\n"
        + "    def forward(self, x):\n        return x * self.gain\n"
        + INPUTS.format(inputs="torch.randn(64, 64)")
    )
    with judging(source, tmp_path, memory_bytes=200_000) as judge:
        inputs, parameters, outputs = (_floats(region) for region in judge.problem.regions)
        judge.ask(Renew())
        gain = parameters[:64].copy()
        for index in range(judge.problem.n_sets):
            one_set = slice(64 * 64 * index, 64 * 64 * (index + 1))
            outputs[one_set] = (inputs[one_set].reshape(64, 64) * gain).ravel()
        for index in range(judge.problem.n_sets):
            assert judge.ask(Check(set_index=index)).passed
        assert (parameters[:64] == gain).all()


def _floats(region: SharedRegion) -> np.ndarray:
    access = mmap.PROT_READ | (mmap.PROT_WRITE if region.writable else 0)
    return np.frombuffer(mmap.mmap(region.fd, region.size_bytes, prot=access), dtype=np.float32)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 12.00 GiB.')", "forward"),
        (
            "if x.dtype is torch.float64: raise torch.OutOfMemoryError('Tried to allocate 24 GiB.')\n        return x * x",
            "",
        ),
    ],
)
def test_a_problem_that_does_not_fit_the_gpu_is_one_line_with_the_remedy(body: str, what: str, tmp_path: Path) -> None:
    with (
        pytest.raises(
            ProblemError, match=rf"{what}.*Tried to allocate.*smaller sizes \(targets.cuda.sizes\)$"
        ) as raised,
        judging(reference("x", body, "torch.randn(8, 8)"), tmp_path),
    ):
        pass
    assert "\n" not in str(raised.value)
    assert str(raised.value).count("smaller sizes") == 1


def test_contents_that_the_reference_refuses_are_the_problem_s_fault_and_told_in_one_line() -> None:
    with pytest.raises(ProblemError, match=r"refuses contents .* _LinAlgError") as caught, _contents_may_be_refused():
        torch.linalg.cholesky(torch.zeros(2, 2))
    failed = failure(caught.value, Loop(mode=ReferenceMode.EAGER, sets=(0,)))
    assert (failed.code, "\n" in failed.message) == (JudgeFailureCode.REFERENCE, False)
    with pytest.raises(RuntimeError, match="no room"), _contents_may_be_refused():
        raise RuntimeError("no room")


LOSES_THE_GPU = """import torch
from torch import nn
from ridgeline.tools.judge.worker.device import Cpu
def lost(device):
    raise RuntimeError("CUDA error: device-side assert triggered")
class Model(nn.Module):
    def forward(self, x):
        if bool((x == x.round()).all()):
            Cpu.settle = lost
        return x * 2
def get_inputs():
    return [torch.randn(64, 8)]
"""
"""A reference that leaves its process as one that lost the GPU: nothing can be waited for any more."""


def test_a_new_judge_leaves_out_what_lost_the_first_one_its_gpu(tmp_path: Path) -> None:
    with judging(LOSES_THE_GPU, tmp_path) as judge:
        assert "integers" not in judge.problem.trials and "shifted" in judge.problem.trials
        (skipped,) = judge.problem.description.skipped_trials
        assert skipped.name == "integers" and "device-side assert" in skipped.reason


def test_a_loaded_judge_that_lost_its_gpu_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace(memory=SimpleNamespace(device=Cpu()))
    error = RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED")
    assert _lost_gpu(error, loaded) is None

    def settle(_device: Cpu) -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(Cpu, "settle", settle)
    found = _lost_gpu(error, loaded)
    assert found is not None and found.code is JudgeFailureCode.JUDGE_LOST
    assert "CUBLAS_STATUS_EXECUTION_FAILED" in found.message
