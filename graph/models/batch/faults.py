"""Errors of a provider's batch interface, as what each comes to: told at once, or not known yet."""

from __future__ import annotations

from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.prices import BATCH_SUFFIX
from ridgeline.graph.models.retry import (
    RETRYABLE_STATUS,
    first_line,
    is_provider_error,
    refusal,
    status_of,
    unreadable,
)
from ridgeline.tools.errors import RidgelineError
from ridgeline.tools.wording import option

NOT_FOUND = 404


def is_certain(error: Exception) -> bool:
    """Say whether no further try can change an error: a refusal, or an answer that the client cannot read."""
    if isinstance(error, RidgelineError) or not is_provider_error(error):
        return True
    status = status_of(error)
    return (status is not None and status not in RETRYABLE_STATUS and status < 500) or "insufficient_quota" in str(
        error
    )


def batch_fault(model: str, error: Exception) -> RidgelineError:
    """Return an error that is certain: a ModelError of a key or a model, a ModelUnavailable of a batch alone."""
    if isinstance(error, RidgelineError):
        return error
    if not is_provider_error(error):
        return unreadable(model, error)
    if status_of(error) == NOT_FOUND:
        plain = model.removesuffix(BATCH_SUFFIX)
        return ModelUnavailable(
            f"{model}: the provider knows neither batch nor model by this name and key (HTTP 404): {first_line(error)}; "
            f"{option('model', plain)} asks without a batch"
        )
    return refusal(model, error) or ModelUnavailable(f"{model} did not answer: {first_line(error)}")
