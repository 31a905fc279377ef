"""Models at a loopback server, asked through a journal as a search asks them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.graph.loopback import Server

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.calls.kept_texts import KeptTexts
from ridgeline.graph.models.allowance import Allowance
from ridgeline.graph.models.batch.batches import Batches
from ridgeline.graph.models.journalled import JournalledModels
from ridgeline.graph.models.later_replies import ALIVE, LaterReplies, Waiting
from ridgeline.graph.models.mailbox.mailbox import Mailbox
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.models.registry import make_model
from ridgeline.graph.models.requests import KernelModel
from ridgeline.graph.models.retry import RetryPolicy
from ridgeline.graph.models.sending import CallSender
from ridgeline.problems.model_calls import PriceSettings
from ridgeline.problems.spec import Budget

KEY = "sk-a-planted-key-0123456789"
FAST = RetryPolicy(attempts=3, base_s=0.02, cap_s=0.1, timeout_s=10.0)
PROTOCOLS = ["chat", "responses", "gemini"]
IDEA = {"title": "Fuse both passes", "mechanism": "read each row only once", "category": "memory_access"}
IDEAS = json.dumps({"ideas": [IDEA]})
KERNEL = json.dumps(
    {"source": "void run() { /* the whole kernel, from its first line to its last */ }", "notes": "short"}
)


def model_of(protocol: str, server: Server, policy: RetryPolicy = FAST, *, price: bool = True) -> KernelModel:
    """Return the real client of a protocol, at the loopback server; set OPENAI_API_KEY and GOOGLE_API_KEY first."""
    provider = "google_genai" if protocol == "gemini" else "openai"
    name = f"{provider}:{'o3' if protocol == 'responses' else 'test-model'}"
    prices = {name: PriceSettings(input=1.0, output=10.0, cached_input=0.5)} if price else {}
    url = server.url if protocol == "gemini" else f"{server.url}/v1"
    if protocol == "responses":
        return make_model(name, prices=prices, policy=policy)
    return make_model(name, base_url=url, prices=prices, policy=policy)


@dataclass
class Asked:
    """One search's models, journal and kept texts."""

    models: JournalledModels
    journal: Journal
    texts: KeptTexts
    allowance: Allowance


def journalled(
    pool: ModelPool,
    journal: Journal,
    budget: Budget | None = None,
    *,
    wall_used_s: float = 0.0,
    waiting: Waiting = ALIVE,
) -> tuple[JournalledModels, LaterReplies]:
    """Return models behind a journal, and what waits for their later replies."""
    allowance = Allowance(
        journal, budget or Budget(), wall_used_s=lambda: wall_used_s, awaits_batches=lambda: later.awaits_batches
    )
    later = LaterReplies(
        mailbox=Mailbox(journal),
        batches=Batches(journal, allowance, pool.batch_model),
        journal=journal,
        allowance=allowance,
        waiting=waiting,
        is_stopping=lambda: False,
        is_busy=lambda: False,
    )
    return JournalledModels(pool, journal, CallSender(journal, allowance, later, is_stopping=lambda: False)), later


@contextmanager
def asked(folder: Path, *models: KernelModel, budget: Budget | None = None) -> Iterator[Asked]:
    """Give models behind a journal in `folder`, as a session of a search has them."""
    with Archive.open(folder / "archive.sqlite") as archive:
        journal = Journal(archive)
        behind, later = journalled(ModelPool(models), journal, budget)
        yield Asked(behind, journal, KeptTexts(archive), later.allowance)
