"""A built kernel to look into, and the findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ridgeline.tools.profile.executed import ExecutedWork
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.problem import Description, Device
from ridgeline.tools.records.results import OwnWork, Timing
from ridgeline.tools.sandbox.rules import Confined
from ridgeline.tools.sandbox.sandbox import Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """A candidate's library with all that is known of it."""

    device: Device
    description: Description
    floor: Floor | None
    timing: Timing | None
    library: Path
    sandbox: Sandbox
    build_log: str = ""  # the compiler's messages
    runner: Confined | None = None  # how the candidate's runner is confined; None: the candidate is not run
    source: str = ""
    profile_library: Path | None = None  # of the profile's own build: the lines of a CPU's loops

    @property
    def is_memory_bound(self) -> bool:
        """Return whether the memory floor is the higher one; so too where no floor is known."""
        return self.floor is None or self.floor.bound == "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Notes for a person or a model, the most rewarding first, and figures by name."""

    notes: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()  # how busy each kernel of a GPU's candidate keeps it; no advice
    details: dict[str, float] = field(default_factory=dict)
    own_work: OwnWork | None = None
    executed: ExecutedWork | None = None  # None: not counted
