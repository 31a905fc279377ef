"""The protocol of a search's models: what is known of one before it is asked, and the way that its calls take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from ridgeline.graph.models.requests import KernelModel, Traits

if TYPE_CHECKING:
    from ridgeline.graph.models.batch.model import BatchModel
    from ridgeline.graph.models.prices import Tariff
    from ridgeline.graph.models.requests import IdeationRequest, KernelRequest, Reply
    from ridgeline.problems.model_calls import PriceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A call whose prompt is rendered and whose reply the journal does not hold."""

    id: str
    request: IdeationRequest | KernelRequest
    prompt: str
    sha256: str  # of the prompt


class AnsweringModel(KernelModel, Protocol):
    """A model that answers when it is asked, and says what is known of the cost."""

    @property
    def traits(self) -> Traits:
        """Return how the model differs from others."""
        ...

    @property
    def tariff(self) -> Tariff | None:
        """Return what is known of a call's cost before it is sent; None of a model that states nothing."""
        ...


class PostedModel(Protocol):
    """A model whose calls go into the mailbox."""

    @property
    def name(self) -> str:
        """Return the name that its requests bear."""
        ...

    @property
    def price(self) -> PriceSettings | None:
        """Return the price of the tokens that an answer states."""
        ...


class Sender(Protocol):
    """The ways that a call can take. `CallSender` goes them; here models know no journal and no mailbox."""

    async def at_once(self, call: ModelCall, model: AnsweringModel) -> Reply:
        """Return the reply of a model that answers when it is asked."""
        ...

    async def by_mailbox(self, call: ModelCall, model: PostedModel) -> Reply:
        """Put a call into the mailbox and return its reply."""
        ...

    async def by_batch(self, call: ModelCall, model: BatchModel) -> Reply:
        """Put a call among those that go into a batch, and return its reply."""
        ...


@runtime_checkable
class SearchModel(Protocol):
    """A model as a search holds it."""

    @property
    def name(self) -> str:
        """Return "provider:model", as the user wrote it."""
        ...

    @property
    def tariff(self) -> Tariff | None:
        """Return what is known of a call's cost before it is sent; None of a model that states nothing."""
        ...

    @property
    def traits(self) -> Traits:
        """Return how the model differs from others."""
        ...

    @property
    def batched(self) -> BatchModel | None:
        """Return the model of a provider's batches that calls may go to, or None."""
        ...

    async def deliver(self, call: ModelCall, sender: Sender) -> Reply:
        """Let `sender` send a call the way that this model's calls take, and return the reply once it is stored."""
        ...


AnyModel: TypeAlias = SearchModel | KernelModel
"""A model as a caller gives it: a KernelModel is asked at once."""


class AskedAtOnce:
    """A KernelModel as a search's model: it answers when it is asked."""

    def __init__(self, model: KernelModel, traits: Traits | None = None) -> None:
        """Take `traits` in the place of those that the model states, if any: KernelModel asks for none."""
        self.model = model
        stated: Traits = getattr(model, "traits", Traits())
        self.traits = stated if traits is None else traits

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.model.name

    @property
    def tariff(self) -> Tariff | None:
        """Return the model's tariff, which KernelModel does not ask for: a model of the user's own may have none."""
        return getattr(self.model, "tariff", None)

    @property
    def batched(self) -> None:
        """Return None: no call goes into a batch."""

    async def propose(self, request: IdeationRequest) -> Reply:
        """Return the model's ideas."""
        return await self.model.propose(request)

    async def write(self, request: KernelRequest) -> Reply:
        """Return the model's kernel."""
        return await self.model.write(request)

    async def deliver(self, call: ModelCall, sender: Sender) -> Reply:
        """Return the reply of a call that is sent now."""
        return await sender.at_once(call, self)


@dataclass(frozen=True, slots=True)
class AskedInBatches:
    """A model of a provider's batches as a search's model."""

    batched: BatchModel
    traits: Traits = field(default_factory=Traits)

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.batched.name

    @property
    def tariff(self) -> Tariff | None:
        """Return what is known of a call's cost."""
        return self.batched.tariff

    async def deliver(self, call: ModelCall, sender: Sender) -> Reply:
        """Return the reply of a call once its batch is over."""
        return await sender.by_batch(call, self.batched)


def search_model(model: AnyModel) -> SearchModel:
    """Return a model as a search holds it."""
    return model if isinstance(model, SearchModel) else AskedAtOnce(model)
