"""The record that a search stores of itself when it begins or goes on."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs import check_graph_version, holds_a_search
from ridgeline.graph.session.resume import source_sha256
from ridgeline.tools.errors import DeviceError
from ridgeline.tools.records.vocabulary import RunState

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.session.options import ResolvedSearch
    from ridgeline.tools.records.problem import Target


def begin(archive: Archive, search: ResolvedSearch) -> float:
    """Store a new search, or that a resumed one goes on; return the seconds of its earlier sessions.

    Raises:
        RunError: the folder holds a search that the request did not mean, or one of another graph version.
    """
    from ridgeline.graph.build import GRAPH_VERSION

    check_graph_version(archive, GRAPH_VERSION)
    stored = archive.run()
    if not stored.has_begun:
        archive.save_run(_record(search))
        return 0.0
    if not search.has_begun:
        raise holds_a_search(search.run_dir)
    archive.save_run(RunRecord(state=RunState.RUNNING, budget=search.budget.model_dump()))
    return stored.wall_s or 0.0


def _record(search: ResolvedSearch) -> RunRecord:
    """Return what a new search stores of itself."""
    return RunRecord(
        problem=search.problem.model_dump(mode="json"),
        problem_path=str(search.problem.path),
        device=search.target.device,
        device_name=search.device,
        settings=search.settings.model_dump(mode="json"),
        strategy=search.settings.strategy,
        budget=search.budget.model_dump(),
        versions=_versions(search.target),
        rng_seed=search.rng_seed,
        models=tuple(search.model_names),
        reference_source=search.target.reference_source,
        reference_source_sha256=source_sha256(search.target),
        state=RunState.RUNNING,
        started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        wall_s=0.0,
    )


def _versions(target: Target) -> dict[str, str]:
    """Return the compiler's version; none where an engine elsewhere compiles."""
    from ridgeline.tools.build.toolchain import find_toolchain

    with contextlib.suppress(DeviceError):  # an engine that compiles here says so itself
        return {"compiler": find_toolchain(target.device.kind).version}
    return {}
