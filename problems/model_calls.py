"""The parts of a problem file that say how models are called, and what a call costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints, ValidationError

from ridgeline.problems.mistakes import explain_mistake
from ridgeline.tools.errors import ProblemError

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Section(BaseModel):
    """A part of a problem file: frozen, nothing unknown, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    if not TYPE_CHECKING:  # a checker keeps the fields as arguments

        def __init__(self, /, **given: Any) -> None:
            """Take what a caller of the library states.

            Raises:
                ProblemError: one line that names the field and the remedy. `model_validate` raises pydantic's own error,
                    which knows the place in a whole file.
            """
            try:
                super().__init__(**given)
            except ValidationError as error:
                mistake = explain_mistake(error.errors(), type(self), {})
                raise ProblemError(f"{type(self).__name__}: {mistake}") from None

        # pydantic goes on to fill nested sections itself, as without this method
        __init__.__pydantic_base_init__ = True


class PriceSettings(Section):
    """The price of one model, in US dollars for a million tokens."""

    input: Annotated[FiniteFloat, Field(ge=0)] = Field(description="Dollars for a million input tokens.")
    output: Annotated[FiniteFloat, Field(ge=0)] = Field(description="Dollars for a million output tokens.")
    cached_input: Annotated[FiniteFloat, Field(ge=0)] | None = Field(
        default=None, description="Dollars for a million input tokens read from the provider's cache; null: as `input`."
    )

    def usd(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Return the US dollars that a call costs; `cached_tokens` of its input were read from the provider's cache."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh_tokens = input_tokens - cached_tokens
        return (fresh_tokens * self.input + cached_tokens * cached + output_tokens * self.output) / 1e6


class CallSettings(Section):
    """How a model is called. A resumed search takes these anew."""

    timeout_s: Annotated[FiniteFloat, Field(ge=1, le=86_400)] = Field(
        default=600.0, description="Longest wait for one reply, in seconds; reasoning models think for minutes."
    )
    attempts: int = Field(
        default=5, ge=1, le=100, description="Times that a request is sent while its provider fails or is silent."
    )
    max_output_tokens: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Longest reply in tokens, thought included, as the provider is told; null: its own."
    )
    max_reply_chars: int = Field(
        default=400_000, ge=1000, le=100_000_000, description="A reply of more characters than this is refused."
    )
