"""The parts that a search has: all but those that it leaves out (`search.without`), and that its strategy is without."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.models.requests import Elite, IdeationRequest, KernelRequest
from ridgeline.problems.spec import SearchPart

if TYPE_CHECKING:
    from ridgeline.problems.spec import SearchSettings


REVISION_IS_WITHOUT: tuple[SearchPart, ...] = ("memory", "novelty", "recombination")
"""One lineage has nothing to recombine, and each idea answers the kernel before it, whatever was tried earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """The parts of a search that are left out; without anything, nothing changes."""

    without: frozenset[SearchPart] = frozenset()

    @classmethod
    def of(cls, settings: SearchSettings) -> Ablation:
        """Return what these settings leave out, their strategy included."""
        own = REVISION_IS_WITHOUT if settings.strategy == "revision" else ()
        return cls(without=frozenset((*settings.without, *own)))

    def has(self, part: SearchPart) -> bool:
        """Say whether the search has this part."""
        return part not in self.without

    def of_ideas(self, request: IdeationRequest) -> IdeationRequest:
        """Return a request for ideas that tells nothing of what is left out."""
        tried = request.tried if self.has("memory") else ()
        if not self.has("diagnosis"):
            tried = tuple(dataclasses.replace(idea, before="", after="") for idea in tried)
        return dataclasses.replace(
            request,
            tried=tried,
            elites=tuple(elite for each in request.elites if (elite := self._told(each))),
            blocks=request.blocks if self.has("blocks") else (),
        )

    def of_kernel(self, request: KernelRequest) -> KernelRequest:
        """Return a request for a kernel that tells nothing of what is left out."""
        second = request.second_parent if self.has("recombination") else None
        return dataclasses.replace(
            request,
            parent=self._told(request.parent),
            second_parent=self._told(second),
            block=request.block if self.has("blocks") else None,
        )

    def _told(self, elite: Elite | None) -> Elite | None:
        if elite is None or self.has("diagnosis"):
            return elite
        return dataclasses.replace(elite, diagnosis="", largest_stage="")
