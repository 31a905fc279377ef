"""The judge's process on references of every kind."""

import mmap
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.tools.judge.worker.judging import HEAD, INPUTS, judging, reference

from ridgeline.tools.errors import (
    ContentsRefusedError,
    EngineError,
    JudgeDied,
    JudgeKilled,
    ProblemError,
    TrustedProcessLost,
)
from ridgeline.tools.judge.messages import Check, Examine, Loop, Prepare, PrepareMode, Renew, Wipe, operation
from ridgeline.tools.judge.process import SharedRegion
from ridgeline.tools.judge.replies import Missing
from ridgeline.tools.judge.worker.__main__ import _lost_gpu, failure
from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.user_code import contents_may_be_refused
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.trial_names import NOMINAL
from ridgeline.tools.records.vocabulary import ArgKind, Label, PrecisionClass, Role

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("warm_judge")]


def test_a_judge_that_is_killed_once_while_it_loads_is_started_again(tmp_path: Path) -> None:
    mark = str(tmp_path / "killed")
    once = f"import os\nif not os.path.exists({mark!r}):\n    os.mkdir({mark!r})\n    os.kill(os.getpid(), 9)\n"
    with judging(once + reference("x", "return x * 2", "torch.randn(8, 8)"), tmp_path):
        assert Path(mark).exists()


def test_a_judge_that_meets_no_candidate_runs_the_reference_a_few_times_and_still_times_it(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    body = f"open({str(calls)!r}, 'a').write('x'); return torch.softmax(x @ y, -1)"
    source = reference("x, y", body, "torch.randn(8, 16), torch.randn(16, 16)")
    ran = []
    for has_candidates in (True, False):
        with judging(source, tmp_path, has_candidates=has_candidates) as judge:
            ran.append(calls.stat().st_size)
            calls.write_text("")
            assert (judge.problem.trials == NOMINAL) == (not has_candidates)
            judge.ask(Renew())
            assert judge.ask(Loop(mode=ReferenceMode.EAGER, sets=(0, 1))).own_s > 0
    assert ran[0] > 4 * ran[1]


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


def test_positions_that_are_drawn_anew_and_written_to_are_named_as_such_and_not_as_always_the_same(
    tmp_path: Path,
) -> None:
    body = "return torch.zeros(1024).index_put((pos,), x.expand(32, 64))"
    source = reference("pos, x", body, "torch.randint(0, 900, (32, 1)) + torch.arange(64), torch.randn(64)")
    with judging(source, tmp_path) as judge:
        labels = {trial.name: trial.label for trial in judge.problem.description.skipped_trials}
    assert labels["only_as_drawn pos"] is Label.ONLY_AS_DRAWN and "not_varied pos" not in labels


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
        os.kill(judge.pid, signal.SIGSEGV)
        with pytest.raises(JudgeDied, match="signal 11") as died:
            judge.ask(Renew())
        assert not isinstance(died.value, JudgeKilled)


def test_a_judge_that_was_killed_says_so_and_is_no_fault_of_ours(tmp_path: Path) -> None:
    with judging(reference("x", "return x * 2", "torch.randn(8, 8)"), tmp_path) as judge:
        os.kill(judge.pid, signal.SIGKILL)
        with pytest.raises(JudgeKilled, match=r"^during renew the judge was killed \(signal 9\): by the kernel"):
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
        renewed = inputs[:100].copy()  # some contents have zeros
        outputs[:] = 7.0  # between the tensors too: 100 floats end in the middle of a page
        judge.ask(Wipe())
        assert not outputs.any()
        assert renewed.any() and (inputs[:100] == renewed).all()


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
        stride = {place.region: place.set_stride // 4 for place in judge.problem.places}
        for index in range(judge.problem.n_sets):
            x, out = (slice(stride[region] * index, stride[region] * index + 64 * 64) for region in (0, 2))
            outputs[out] = (inputs[x].reshape(64, 64) * gain).ravel()
        for index in range(judge.problem.n_sets):
            assert judge.ask(Check(set_index=index)).passed
        assert (parameters[:64] == gain).all()


def _floats(region: SharedRegion) -> np.ndarray:
    access = mmap.PROT_READ | (mmap.PROT_WRITE if region.writable else 0)
    return np.frombuffer(mmap.mmap(region.fd, region.size_bytes, prot=access), dtype=np.float32)


def test_contents_that_the_reference_refuses_are_the_problem_s_fault_and_told_in_one_line() -> None:
    with pytest.raises(ProblemError, match=r"refuses contents .* _LinAlgError") as caught, contents_may_be_refused():
        torch.linalg.cholesky(torch.zeros(2, 2))
    failed = failure(caught.value, Loop(mode=ReferenceMode.EAGER, sets=(0,)))
    assert (type(failed), "\n" in str(failed)) == (ContentsRefusedError, False)
    with pytest.raises(RuntimeError, match="no room"), contents_may_be_refused():
        raise RuntimeError("no room")
    with pytest.raises(ProblemError, match="refuses contents"), contents_may_be_refused(lambda: True):
        raise RuntimeError("all elements of input should be between 0 and 1")
    with pytest.raises(MemoryError), contents_may_be_refused(lambda: True):
        raise MemoryError


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
    assert type(found) is TrustedProcessLost
    assert "CUBLAS_STATUS_EXECUTION_FAILED" in str(found)
