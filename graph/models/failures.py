"""The ways in which one model call fails without ending the search."""

from __future__ import annotations

from ridgeline.graph.models.requests import Usage
from ridgeline.tools.errors import EngineError


class ModelUnavailable(EngineError):
    """One call has no usable answer; its branch fails, the other branches go on."""

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        """`usage` is the call's consumption, which is paid without an answer too."""
        super().__init__(message)
        self.usage = usage or Usage()
        self.is_answered = False  # an answer came, and is paid although it cannot be used


class Unrecorded(ModelUnavailable):
    """A replay has no recorded answer to this call, and goes on without."""


class NoText(ModelUnavailable):
    """A paid answer holds no text: empty, refused by a filter, or all of its tokens went into thought.

    `advice` is what the model is told when it is asked once more.
    """

    def __init__(self, message: str, usage: Usage | None = None, *, advice: str) -> None:
        super().__init__(message, usage)
        self.advice = advice
        self.is_answered = True


class ReplyTooLong(NoText):
    """A reply is longer than any kernel or list of ideas, and was not read."""

    def __init__(self, max_reply_chars: int, *, received_chars: int) -> None:
        """`received_chars` came before the rest was refused; they are paid."""
        super().__init__(
            f"a reply of more than {max_reply_chars:,} characters was refused (max_reply_chars of model_calls)",
            Usage(output_tokens=min(received_chars, max_reply_chars) // 4),  # no count came: English has 4 a token
            advice=f"it was refused for its length, more than {max_reply_chars:,} characters; be brief",
        )
