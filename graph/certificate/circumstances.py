"""The circumstances of a certificate: problem, device, versions, and the hashes of everything that was judged."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ridgeline.tools.build.interfaces import problem_header
from ridgeline.tools.records.keys import JUDGE_VERSION
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import PrecisionClass

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.tools.records.search import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """All that a certificate's figures rest on, and when they were measured."""

    began_at: str
    ended_at: str = ""  # "" until the last step has ended
    problem: str
    tolerance: PrecisionClass
    device: Device
    cores_in_use_by_others: float | None  # None where nobody looked
    torch_version: str
    source_sha256: str
    header_sha256: str
    reference_sha256: str

    def to_json(self) -> dict[str, Any]:
        """Return the part of certificate.json that says what the figures rest on."""
        from ridgeline import __version__

        return {
            "date": self.began_at,
            "problem": self.problem,
            "tolerance": self.tolerance,
            "device": self.device.to_json(),
            "cores_in_use_by_others": self.cores_in_use_by_others,
            "versions": {
                "ridgeline": __version__,
                "judge": str(JUDGE_VERSION),
                "torch": self.torch_version,
            },
            "hashes": {
                "source_sha256": self.source_sha256,
                "header_sha256": self.header_sha256,
                "reference_sha256": self.reference_sha256,
            },
            "ended_at": self.ended_at,
        }


def circumstances_of(context: SearchContext, candidate: Candidate) -> Circumstances:
    """Return the circumstances of a certificate that begins now."""
    target, cores_in_use = context.described, context.measuring.cores_in_use
    description = target.description
    header = problem_header(description.signature, target.device.kind, target.interface)
    return Circumstances(
        began_at=now_in_words(),
        problem=context.problem.name,
        tolerance=target.told_tolerance,
        device=target.device,
        cores_in_use_by_others=None if cores_in_use is None else round(cores_in_use(), 2),
        torch_version=description.torch_version,
        source_sha256=_sha256(candidate.source),
        header_sha256=_sha256(header),
        reference_sha256=description.reference_sha256,
    )


def now_in_words() -> str:
    """Return the time in UTC, ISO 8601, as a certificate holds that of its begin and of its end."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
