"""What keeps a reference from being judged on a device, found without its memory or its time (no torch here)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from ridgeline.tools.errors import EngineError, ProblemError
from ridgeline.tools.judge.memory_check import check_room, in_gb, smaller_sizes
from ridgeline.tools.judge.set_count import WORKING_SETS, count_sets
from ridgeline.tools.machine.python_env import python_path
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.dtypes import spanned_bytes
from ridgeline.tools.records.problem import Device, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role

OPEN = frozenset({"tight", "values"})
"""Codes of what only a run can tell."""
LIMIT_S = 120.0
"""For one reference; 512 steps of a recurrent layer take 20 s on an idle core."""
MEMORY_BYTES = 8 << 30
"""For what a reference allocates for real: constants, and a model whose constructor reads values."""

_PARAMETER_SETS = 8
"""Copies of the parameters in the judge: shared, default, drawn, placed, float64 (2), rounded, kept with a trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline(Record):
    """A reference's signature and its bytes, and what speaks against it: `code` is "" where nothing does.

    Codes: package, form (no tensor in or out, a type that kernels do not take), raised, random, state, memory,
    time. Two leave it open: "tight", by an estimate too large, and "values", where no outline can be made.
    """

    code: str = ""
    reason: str = ""  # one sentence
    signature: Signature | None = None
    reference_graph: dict[str, Any] | None = None  # when it was asked for and can be exported
    forward_bytes: int = 0  # the most that lives at once in one forward, its arguments included

    @property
    def set_bytes(self) -> int:
        """Return the bytes of one set of inputs and outputs."""
        return self._bytes_of(Role.INPUT, Role.OUTPUT)

    @property
    def parameter_bytes(self) -> int:
        """Return the bytes of parameters and buffers."""
        return self._bytes_of(Role.PARAMETER, Role.BUFFER)

    def judge_bytes(self, device: Device) -> int:
        """Return about how much memory judging takes: rotating sets, grading, copies of parameters, float64's values."""
        cache_bytes, memory_bytes = device.cache_bytes, device.memory_bytes
        sets = count_sets(self.set_bytes, kind=device.kind, cache_bytes=cache_bytes, memory_bytes=memory_bytes)
        between = max(0, self.forward_bytes - self.set_bytes - self.parameter_bytes)
        return (sets + WORKING_SETS) * self.set_bytes + _PARAMETER_SETS * self.parameter_bytes + 2 * between

    def on(self, device: Device) -> Outline:
        """Return the outline as it is on a device: with a reason where its memory is, or may be, too small."""
        if self.signature is None or self.code:
            return self
        try:
            check_room(self.signature, kind=device.kind, memory_bytes=device.memory_bytes)
        except ProblemError as error:
            return replace(self, code="memory", reason=str(error).removeprefix("reference.py: "))
        needed = self.judge_bytes(device)
        if needed <= device.memory_bytes:
            return self
        reason = (
            f"judging it takes about {in_gb(needed)}, this device has {in_gb(device.memory_bytes)}: only a "
            f"run can tell, or choose smaller sizes (targets.{device.kind}.sizes)"
        )
        return replace(self, code="tight", reason=reason)

    def _bytes_of(self, *roles: Role) -> int:
        args = self.signature.with_role(*roles) if self.signature else ()
        return sum(spanned_bytes(a.shape, a.strides, a.dtype) for a in args if a.kind is ArgKind.TENSOR)


class OutlineProcess:
    """A process that outlines one reference after the other; ends with the block and with this process."""

    def __init__(
        self, *, limit_s: float = LIMIT_S, memory_bytes: int = MEMORY_BYTES, with_graphs: bool = False
    ) -> None:
        """Start it (3 to 6 s: it imports torch); each reference then takes about 0.2 s, within these limits.

        `with_graphs` exports each reference too, which takes half a second more.
        """
        self._terms = {"limit_s": limit_s, "memory_bytes": memory_bytes, "with_graph": with_graphs}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ridgeline.tools.judge.worker.outline_main", str(os.getpid())]
            + ["--graphs"] * with_graphs,
            env=os.environ | {"PYTHONPATH": python_path(), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def outline(self, reference_source: str, tolerance: str = "fp32") -> Outline:
        """Return what can be said of a reference without running it for real.

        Raises:
            EngineError: the process went away.
        """
        assert self._process.stdin is not None  # noqa: S101  both are pipes
        assert self._process.stdout is not None  # noqa: S101
        request = {"source": reference_source, "tolerance": tolerance, **self._terms}
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the empty line below tells the same
        line = self._process.stdout.readline()
        if not line:
            raise EngineError(f"the process that outlines references ended with status {self._process.wait()}")
        return _outline_of(json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the process; its child, if it has one, ends with it."""
        self._process.kill()
        self._process.communicate()


def explain_no_room(reference_source: str, tolerance: str, device: Device) -> str:
    """Return how much memory judging takes, for a reference for which it ran out; "" when that is not the reason."""
    with OutlineProcess() as outlines:
        found = outlines.outline(reference_source, tolerance)
    needed = found.judge_bytes(device) if found.signature else 0
    if needed <= device.memory_bytes:
        return ""
    return smaller_sizes(device.kind, f"about {in_gb(needed)}", device.memory_bytes)


def _outline_of(answer: dict[str, Any]) -> Outline:
    refusal = answer.get("reason") or {"code": "", "text": ""}
    signature = answer.get("signature")
    return Outline(
        code=refusal["code"],
        reason=refusal["text"],
        signature=Signature.from_json(signature) if signature else None,
        reference_graph=answer.get("graph"),
        forward_bytes=int(answer.get("forward_bytes", 0)),
    )
