"""A model that answers from a script: the only stand-in of these tests, and a whole KernelModel."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Any

from ridgeline.graph.models.requests import IdeationRequest, KernelRequest, Reply, Usage

Ideas = Callable[[IdeationRequest], Any]
Kernel = Callable[[KernelRequest], Any]

WORDS = [
    "alpha",
    "bravo",
    "charlie",
    "delta",
    "echo",
    "foxtrot",
    "golf",
    "hotel",
    "india",
    "juliet",
    "kilo",
    "lima",
    "mike",
    "november",
    "oscar",
    "papa",
]


def distinct_ideas(request: IdeationRequest) -> dict[str, Any]:
    """Return `count` ideas that share no words, each from the best elite."""
    parent = request.elites[0].candidate_id if request.elites else None
    ideas = []
    for n in range(request.count):
        word = WORDS[(request.round * 5 + n) % len(WORDS)] + f"{request.round}x{n}"
        idea = {"title": f"{word} {word}a", "mechanism": f"{word}b {word}c {word}d", "category": "memory_access"}
        ideas.append({**idea, "predicted_gain": 1.2, "parent_id": parent})
    return {"ideas": ideas}


def own_structure(*parts: object) -> str:
    """Return a line of source whose structure is that of these parts alone: 32 operators in an order of their own."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return "int run = 1" + "".join(f" {'+-*/%&|^'[byte % 8]} 1" for byte in digest) + ";\n"


def faster_each_round(request: KernelRequest) -> dict[str, Any]:
    """Return a kernel a tenth faster than its parent, a little better for later variations."""
    speed = (request.parent.speedup if request.parent else 1.0) * 1.1 + 0.01 * request.variation
    structure = own_structure(request.idea.title, request.variation)
    source = f"// {request.idea.title} {request.variation}\n// speed {speed:.4f}\n{structure}"
    return {"source": source, "notes": "faster"}


class ScriptedModel:
    """Answers with the JSON (or the raw text) that its two functions return; counts its calls."""

    def __init__(
        self,
        name: str = "scripted",
        ideas: Ideas = distinct_ideas,
        kernel: Kernel = faster_each_round,
        delay_s: float = 0.0,
    ) -> None:
        self._name, self._ideas, self._kernel, self._delay_s = name, ideas, kernel, delay_s
        self.proposals: list[IdeationRequest] = []
        self.writes: list[KernelRequest] = []

    @property
    def name(self) -> str:
        """Return the name given."""
        return self._name

    async def propose(self, request: IdeationRequest) -> Reply:
        """Answer from `ideas`."""
        self.proposals.append(request)
        return await self._reply(self._ideas(request))

    async def write(self, request: KernelRequest) -> Reply:
        """Answer from `kernel`."""
        self.writes.append(request)
        return await self._reply(self._kernel(request))

    async def _reply(self, answer: Any) -> Reply:
        await asyncio.sleep(self._delay_s)
        if isinstance(answer, Exception):
            raise answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return Reply(text=text, usage=Usage(input_tokens=10, output_tokens=5, usd=0.001, latency_s=self._delay_s))
