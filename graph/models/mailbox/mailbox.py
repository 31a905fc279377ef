"""The mailbox of one run: its waiting requests, and the answers that come by a command, a file or a host's graph."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.calls.kept_texts import KeptTexts
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.graph.models.mailbox.answers import MailboxAnswer, RefusedAnswer, read_answer, read_value
from ridgeline.graph.models.mailbox.folder import Drop, Folder
from ridgeline.graph.models.mailbox.model import is_mailbox
from ridgeline.graph.models.prices import is_batch
from ridgeline.graph.models.requests import Reply, Usage
from ridgeline.graph.models.waiting_request import WaitingRequest, seconds_since, stem_of, stored_request
from ridgeline.problems.model_calls import PriceSettings
from ridgeline.tools.errors import RunError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.wording import counted

if TYPE_CHECKING:
    from ridgeline.checkpoints.calls.journal import Call, Journal
    from ridgeline.graph.models.requests import IdeationRequest, KernelRequest
    from ridgeline.graph.models.search_model import PostedModel

logger = logger_of(__name__)

MOST_REFUSALS = 100
"""Refusals of a session that are put beside the answers to one request, or to none: each is a file, written durably."""
_UNKNOWN = "no request of this run has this name; ridgeline mailbox list RUN names those that wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxLook:
    """The findings of a look into the folder."""

    taken: tuple[str, ...] = ()  # ids of the requests that were answered
    is_unsettled: bool = False  # a file may still be written


class Mailbox:
    """The waiting calls of a journal, and the folder beside it. Blocks; safe to use from many threads and processes."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._texts = KeptTexts(journal.archive)
        self._folder = Folder(journal.path.parent)
        self._seen: set[Drop] = set()  # states of files that were taken or refused
        self._strange: set[Drop] = set()  # states of those that are named after no request yet
        self._refusals: Counter[str] = Counter()  # put beside a request's answers; "": beside strange ones
        self._lock = threading.RLock()

    @property
    def is_asked(self) -> bool:
        """Say whether the search has a mailbox among its models, or had one in an earlier session."""
        models = self._journal.archive.run().models
        return models is None or any(map(is_mailbox, models)) or self.path.exists()

    @property
    def path(self) -> Path:
        """Return the folder."""
        return self._folder.path

    def post(
        self, call_id: str, model: PostedModel, request: IdeationRequest | KernelRequest, *, prompt: str, sha256: str
    ) -> WaitingRequest | None:
        """Let a call wait, put its file into the folder and return it; None when it has its reply.

        A call that waits already keeps the request that was made first.
        """
        stored = stored_request(request, model.price)
        self._texts.keep_prompt(sha256, prompt)
        self._journal.begin(call_id, model=model.name, prompt_sha256=sha256, request=stored, waiting=True)
        return next((waiting for waiting in self.publish() if waiting.id == call_id), None)

    def publish(self) -> list[WaitingRequest]:
        """Make the request files those of the requests that wait, and return these."""
        with self._lock:
            waiting = self.waiting()
            self._folder.publish(waiting)
        return waiting

    def waiting(self) -> list[WaitingRequest]:
        """Return the requests that wait, oldest first."""
        return [self._request(call) for call in self._journal.calls("waiting") if not is_batch(call.model)]

    def find(self, name: str) -> WaitingRequest:
        """Return the waiting request of this id, or of this file name's stem.

        Raises:
            RunError: there is none, or it is answered already; one line that says which.
        """
        waiting = self.waiting()
        found = next((request for request in waiting if name in (request.id, request.stem)), None)
        if found is not None:
            return found
        known = next((call for call in self._journal.calls() if name in (call.call_id, stem_of(call.call_id))), None)
        raise RunError(f"{self._run}: {_why_not(name, known, [request.id for request in waiting])}")

    def answer(self, request: WaitingRequest, content: bytes, suffix: str = "") -> None:
        """Store the answer in the content of a file, durably; the first answer to a request counts.

        Raises:
            RefusedAnswer: it is no answer; the request waits on, with the reason.
            RunError: the request is answered already.
        """
        self._store(request, self._checked(request, lambda: read_answer(request, content, suffix)), "command")

    def answer_value(self, request: WaitingRequest, value: Any) -> None:
        """Store the value with which a host resumed as the answer; one that is none is refused and the request waits on."""
        try:
            self._store(request, self._checked(request, lambda: read_value(request, value)), "interrupt")
        except (RefusedAnswer, RunError) as error:
            logger.warning("%s: an answer was not taken: %s", request.id, error)

    def take_up(self) -> MailboxLook:
        """Store the answers that lie whole in the folder; what is wrong with one is put beside it."""
        with self._lock:
            drops = [drop for drop in self._folder.drops() if drop not in self._seen]
            if not drops:
                return MailboxLook()
            refusals = self._refusals.copy()
            waiting = {request.stem: request for request in self.waiting()}
            answered = {stem_of(call_id) for call_id in self._journal.ids()} - waiting.keys()
            taken: list[str] = []
            for drop in drops:
                request = waiting.get(drop.stem)
                if drop.stem in answered:
                    self._seen.add(drop)
                elif request is None:
                    self._refuse_strange(drop)
                elif self._take(drop, request):
                    taken.append(request.id)
                    answered.add(drop.stem)
            self._log_untold(self._refusals - refusals)
            is_unsettled = any(drop.stem in waiting and drop not in self._seen for drop in drops)
        return MailboxLook(taken=tuple(taken), is_unsettled=is_unsettled)

    def marked(self, pending: WaitingRequest, task: str) -> WaitingRequest | None:
        """Return the request that this task of a host's graph puts to its host; None when that one is answered.

        It stays the one that the task put first, which `pending` becomes in a new task: LangGraph gives the host's value to
        the task, whatever the task waits for by then.
        """
        marked = self._journal.marked(task)
        if marked is None:
            self._journal.mark(pending.id, task)
            return pending
        return self._request(marked) if marked.state == "waiting" else None

    def _take(self, drop: Drop, request: WaitingRequest) -> bool:
        """Store the answer in a file; False while it is being written, and when it is refused."""
        try:
            content = self._folder.content(drop)
            if content is None:
                return False
            answer = read_answer(request, content, drop.suffix)
        except RefusedAnswer as error:
            self._seen.add(drop)
            self._refusals[drop.stem] += 1
            if self._refusals[drop.stem] <= MOST_REFUSALS:
                logger.warning("%s: refused: %s", drop.name, error)
                self._journal.refuse(request.id, str(error))
                self._folder.refuse(drop.stem, str(error))
            return False
        self._seen.add(drop)
        try:
            self._store(request, answer, "file")
        except RunError as error:  # another process was faster
            logger.info("%s: %s", drop.name, error)
            return False
        return True

    def _refuse_strange(self, drop: Drop) -> None:
        """Refuse, once, a file that is named after no request of the run; a request of its name may come yet."""
        if drop not in self._strange:
            self._strange.add(drop)
            self._refusals[""] += 1
            if self._refusals[""] <= MOST_REFUSALS:
                self._folder.refuse(drop.stem, _UNKNOWN)

    def _log_untold(self, refused: Counter[str]) -> None:
        """Say in one line how many files of this look were refused without a word beside them."""
        untold = sum(min(new, max(0, self._refusals[stem] - MOST_REFUSALS)) for stem, new in refused.items())
        if untold:
            logger.warning("%s: %s more refused, which is not said beside each", self.path, counted(untold, "answer"))

    def _checked(self, request: WaitingRequest, read: Callable[[], MailboxAnswer]) -> MailboxAnswer:
        try:
            return read()
        except RefusedAnswer as error:
            self._journal.refuse(request.id, str(error))
            raise

    def _store(self, request: WaitingRequest, answer: MailboxAnswer, how: str) -> None:
        usage = Usage(
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            usd=_usd(request, answer),
            latency_s=seconds_since(request.asked_at),
        )
        reply = Reply(text=answer.text, usage=usage, raw={"answered_by": how})
        if not self._journal.answer(request.id, {"text": reply.text, "raw": reply.raw, **usage.to_json()}):
            raise RunError(f"{self._run}: {_why_not(request.id, self._journal.call(request.id), [])}")
        logger.info("%s: answered by %s", request.id, how)
        self._folder.withdraw(request)

    def _request(self, call: Call) -> WaitingRequest:
        with record_errors(self._journal.path):
            prompt = self._texts.prompt(call.prompt_sha256)
            if prompt is None:
                raise ValueError(f"{call.call_id}: its prompt is missing")
            return WaitingRequest.from_call(call, prompt)

    @property
    def _run(self) -> Path:
        return self._journal.path.parent


def _why_not(name: str, call: Call | None, waiting: list[str]) -> str:
    """Return why a name is none of a waiting request."""
    if call is not None and call.state == "finished":
        return f"{call.call_id} was answered already, at {call.ended_at}; the first answer counts"
    if call is not None:
        return f"{call.call_id} does not wait for an answer: another model was asked"
    shown = name if len(name) <= 80 else f"{name[:80]}…"
    which = f"; waiting: {', '.join(waiting[:8])}{', …' if len(waiting) > 8 else ''}" if waiting else "; none waits"
    return f"no request {shown!r}{which}"


def _usd(request: WaitingRequest, answer: MailboxAnswer) -> float:
    """Return the cost that an answer states, else that of its tokens where problem.yaml has a price."""
    if answer.usd is not None or request.price is None:
        return answer.usd or 0.0
    return PriceSettings.model_validate(request.price).usd(answer.input_tokens, answer.output_tokens)
