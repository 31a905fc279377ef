"""Retries of model calls; the retries of every client below are off.

The SDKs' own retries differ (OpenAI's honours Retry-After, Gemini's ignores it) and would multiply with these. A request
that its provider refuses for its rate was not tried: the provider's pacer says when it is sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ridgeline.graph.models.call_in_hand import ATTEMPT, Attempt
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.pacer import Pacer
from ridgeline.graph.models.requests import Usage
from ridgeline.tools.errors import ModelError, RidgelineError
from ridgeline.tools.records.printable import encodable

if TYPE_CHECKING:
    from ridgeline.problems.model_calls import CallSettings

T = TypeVar("T")

RATE_LIMITED = 429
RETRYABLE_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
REFUSED_STATUS = {401: "the key was refused", 402: "payment is required", 403: "access is denied", 404: "no such model"}
TRANSPORT_ERRORS = frozenset(
    {"TransportError", "TimeoutException", "APIConnectionError", "ModelConnectionError", "ModelTimeoutError"}
)
"""Class names, so that no HTTP library is imported: each client wraps another library (httpx, httpx2, aiohttp)."""
UNREAD_NAMES = frozenset({"APIResponseValidationError", "UnknownApiResponseError"})
"""Class names of the errors that clients raise for an answer of another form: OpenAI's and Google's."""
UNREAD_ERRORS = (ValueError, RecursionError, AttributeError, TypeError, LookupError)
"""What a client raises for a body that is no text, no JSON, JSON of another form, or an error beside HTTP 200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential backoff with full jitter, unless the server says how long to wait."""

    attempts: int = 5
    base_s: float = 1.0
    cap_s: float = 60.0  # of a pause that the server did not ask for
    timeout_s: float = 600.0  # of one attempt; reasoning models think for minutes
    max_output_tokens: int | None = None  # of a reply, as the provider is told
    max_reply_chars: int = 400_000

    @classmethod
    def of(cls, settings: CallSettings) -> Self:
        """Return the policy of a problem's settings."""
        return cls(**settings.model_dump())

    def delay_s(self, attempt: int) -> float:
        """Return the pause before attempt `attempt` + 1, where the server names none."""
        return random.uniform(0.5, 1.0) * min(self.cap_s, self.base_s * 2.0**attempt)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an SDK's exception, or one it wraps, carries."""
    for link in _chain(error):
        for name in ("status_code", "code"):
            value = getattr(link, name, None)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def retry_after_s(error: BaseException) -> float | None:
    """Return how long a provider asks to wait, or None.

    By a Retry-After header, in seconds or until a date (RFC 9110), or as Gemini says it, in the error itself.
    """
    for link in _chain(error):
        headers: Any = getattr(getattr(link, "response", None), "headers", None)
        value = (headers.get("retry-after") if headers is not None else None) or _retry_delay(link)
        if value is not None:
            return _seconds_of(value)
    return None


def _retry_delay(error: BaseException) -> str | None:
    """Return the seconds of google.rpc.RetryInfo in an error of Google's client, whose JSON is `details`."""
    told: Any = getattr(error, "details", None)
    for name in ("error", "details"):
        told = told.get(name) if isinstance(told, dict) else None
    delays = (each.get("retryDelay") for each in told if isinstance(each, dict)) if isinstance(told, list) else ()
    return next((delay.removesuffix("s") for delay in delays if isinstance(delay, str)), None)


def _seconds_of(value: str) -> float | None:
    with contextlib.suppress(ValueError):
        return max(0.0, float(value)) if math.isfinite(float(value)) else None
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # a number in it may have any number of digits
        return None
    if until.tzinfo is None:  # "-0000", which the header's form does not have
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def is_transport_error(error: BaseException) -> bool:
    """Say whether no answer arrived: a timeout or a broken connection."""
    return any(
        isinstance(link, TimeoutError | ConnectionError) or TRANSPORT_ERRORS & {c.__name__ for c in type(link).__mro__}
        for link in _chain(error)
    )


def is_provider_error(error: BaseException) -> bool:
    """Say whether an exception stands for a provider's answer or silence, not for an error of this program."""
    return status_of(error) is not None or is_transport_error(error)


def is_unread(error: BaseException) -> bool:
    """Say whether this attempt's answer arrived and the client could not read it: half of one, or a proxy's page.

    An answer that was read and refused, as for its length, is none of these: it carries the completion. Nor is what is
    raised before the client has an answer, or by one whose transport is not ours, of which that is not known.
    """
    attempt = ATTEMPT.get()
    if attempt is None or not attempt.has_answer:
        return False
    if is_provider_error(error) or any(isinstance(link, RidgelineError) for link in _chain(error)):
        return False
    return isinstance(error, UNREAD_ERRORS) or any(c.__name__ in UNREAD_NAMES for c in type(error).__mro__)


def refusal(model: str, error: BaseException) -> ModelError | None:
    """Return the ModelError of a refusal that no retry and no other prompt can change, else None."""
    status = status_of(error)
    if status in REFUSED_STATUS:
        return ModelError(f"{model}: {REFUSED_STATUS[status]} (HTTP {status}): {first_line(error)}")
    if status == 429 and "insufficient_quota" in str(error):
        return ModelError(f"{model}: the account's quota is used up: {first_line(error)}")
    return None


def first_line(error: BaseException) -> str:
    """Return an exception's first line, short enough for a message."""
    text = str(error).strip() or type(error).__name__
    return encodable(text.splitlines()[0][:300])


def unreadable(model: str, error: BaseException) -> ModelUnavailable:
    """Return the failure of a call whose answer the SDK could not read, with the tokens that the call cost.

    An SDK's exceptions share no base: openai.LengthFinishReasonError, for example, is no APIError and carries the
    completion.
    """
    counts: Any = getattr(getattr(error, "completion", None), "usage", None)
    tokens_in, tokens_out = (getattr(counts, name, None) or 0 for name in ("prompt_tokens", "completion_tokens"))
    usage = Usage(input_tokens=tokens_in, output_tokens=tokens_out)
    failure = ModelUnavailable(f"{model} gave no usable answer: {type(error).__name__}: {first_line(error)}", usage)
    failure.is_answered = True
    return failure


async def with_retries(
    model: str, call: Callable[[], Awaitable[T]], policy: RetryPolicy, pacer: Pacer | None = None
) -> T:
    """Return the first answer of `call`, each attempt sent when the provider's pacer says so.

    A stored answer, of a batch or of an earlier session, is read in one attempt: no other is sent in its place.

    Raises:
        ModelError: the provider refuses this key or model; at once.
        ModelUnavailable: no answer that can be read after `policy.attempts`, this request is rejected, the client refuses
            the answer, or the provider has refused `policy.attempts` requests in a row for their rate.
        OutOfBudget, NotBegun: the provider asks for a longer wait than the budget has time, or than a stop allows.
    """
    pacer = pacer or Pacer(model)
    failures, is_refused = 0, False
    while True:
        turn = await pacer.turn(gives_up_after=policy.attempts if is_refused else None)
        attempt = Attempt()
        ATTEMPT.set(attempt)
        try:
            async with asyncio.timeout(policy.timeout_s):
                answer = await call()
        except Exception as error:
            wait_s = retry_after_s(error)
            _raise_final(model, error, attempt)
            if status_of(error) == RATE_LIMITED:
                is_refused = True
                pacer.refused(turn, wait_s)
                continue
            failures += 1
            if failures >= policy.attempts:
                if is_unread(error):
                    raise unreadable(model, error) from error
                raise ModelUnavailable(f"{model} did not answer: {first_line(error)}") from error
            await pacer.pause(policy.delay_s(failures - 1) if wait_s is None else wait_s)
        else:
            pacer.admitted()
            return answer


def _raise_final(model: str, error: Exception, attempt: Attempt) -> None:
    """Raise what a failed attempt comes to where no further attempt can change it."""
    for link in _chain(error):
        if isinstance(link, RidgelineError):  # a client wraps what its transport raises
            raise link
    if is_unread(error) and not attempt.is_kept:
        return
    if attempt.is_kept or not is_provider_error(error):
        raise unreadable(model, error) from error
    if refused := refusal(model, error):
        raise refused from error
    status = status_of(error)
    if status is not None and status not in RETRYABLE_STATUS:
        raise ModelUnavailable(f"{model} did not answer: {first_line(error)}") from error
