"""The circumstances of a certificate: problem, device, versions, and the hashes of everything that was judged."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ridgeline.tools.build.interfaces import problem_header
from ridgeline.tools.records.keys import JUDGE_VERSION

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.tools.records.search import Candidate


def circumstances(context: SearchContext, candidate: Candidate) -> dict[str, Any]:
    """Return the part of certificate.json that says what the figures rest on."""
    from ridgeline import __version__

    target = context.described
    description = target.description
    header = problem_header(description.signature, target.device.kind, target.interface)
    return {
        "date": now_in_words(),
        "problem": context.problem.name,
        "tolerance": target.told_tolerance,
        "device": target.device.to_json(),
        "cores_in_use_by_others": None
        if context.measuring.cores_in_use is None
        else round(context.measuring.cores_in_use(), 2),
        "versions": {
            "ridgeline": __version__,
            "judge": str(JUDGE_VERSION),
            "torch": description.torch_version,
        },
        "hashes": {
            "source_sha256": _sha256(candidate.source),
            "header_sha256": _sha256(header),
            "reference_sha256": description.reference_sha256,
        },
    }


def now_in_words() -> str:
    """Return the time in UTC, ISO 8601, as a certificate holds that of its begin and of its end."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
