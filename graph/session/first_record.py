"""The record that a search stores of itself when it begins or goes on, and what it has to say first."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from ridgeline.checkpoints.run_record import RunRecord, path_text
from ridgeline.checkpoints.runs.folders import check_graph_version
from ridgeline.checkpoints.runs.vacant import holds_a_search
from ridgeline.graph.models.allowance import in_words
from ridgeline.graph.search.running.working_time import WorkingTime
from ridgeline.graph.session.resume import source_sha256
from ridgeline.graph.state import GRAPH_VERSION
from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.vocabulary import RunState

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.models.pool import ModelPool
    from ridgeline.graph.search.events import OnEvent
    from ridgeline.graph.session.options import ResolvedSearch

logger = logger_of(__name__)


def begin(archive: Archive, search: ResolvedSearch) -> WorkingTime:
    """Store a new search, or what a resumed one may use now; return its clock, with the seconds of its earlier sessions.

    The state of a resumed one stays until it goes on: it may have nothing to do.

    Raises:
        RunError: the folder holds a search that the request did not mean, or one of another graph version.
    """
    check_graph_version(archive, GRAPH_VERSION)
    stored = archive.run()
    if not stored.has_begun:
        archive.save_run(_record(search))
        return WorkingTime()
    if not search.has_begun:
        raise holds_a_search(search.run_dir)
    archive.save_run(RunRecord(ended_by="", budget=search.budget.model_dump()))
    before_s = stored.wall_s or 0.0
    return WorkingTime(before_s=before_s, finding_before_s=before_s if stored.finding_s is None else stored.finding_s)


def tell_unpriced(models: ModelPool, on_event: OnEvent) -> None:
    """Say once a session which models' cost cannot be counted."""
    for name in models.unpriced():
        said = f"price of {name} is unknown: its cost counts as nothing (`prices:` in problem.yaml can state it)"
        logger.warning("%s", said)
        on_event({"event": "warning", "message": said})


def tell_beyond(search: ResolvedSearch, on_event: OnEvent) -> None:
    """Say once a session, where the clock is limited, what comes after the limit."""
    if search.budget.wall_s is None or search.replays_times:
        return
    said = (
        f"the budget's wall_s ({in_words('wall_s', search.budget.wall_s)}) is for finding kernels, from the first ideas on: "
        "eager PyTorch's time before, and what is under way then, PyTorch's compiled configurations and the certificate "
        "come on top, which takes minutes; a stop ends them, resumably"
    )
    logger.info("%s", said)
    on_event({"event": "note", "message": said})


def _record(search: ResolvedSearch) -> RunRecord:
    """Return what a new search stores of itself."""
    return RunRecord(
        problem=search.problem.model_dump(mode="json"),
        problem_path=path_text(search.problem.path),
        device=search.target.device,
        device_name=search.device,
        settings=search.settings.model_dump(mode="json"),
        strategy=search.settings.strategy,
        budget=search.budget.model_dump(),
        versions=_versions(search),
        rng_seed=search.rng_seed,
        models=tuple(search.model_names),
        replay=search.replay.to_json() if search.replay else None,
        reference_source=search.target.reference_source,
        reference_source_sha256=source_sha256(search.target),
        state=RunState.RUNNING,
        started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        wall_s=0.0,
        finding_s=0.0,
    )


def _versions(search: ResolvedSearch) -> dict[str, str]:
    """Return the compiler's version; none where an engine elsewhere compiles, a recording's where its times are replayed."""
    if search.replay is not None and search.replays_times:
        return dict(search.replay.recording.run.versions)
    from ridgeline.tools.build.toolchain import find_toolchain

    with contextlib.suppress(DeviceError):  # an engine that compiles here says so itself
        return {"compiler": find_toolchain(search.target.device.kind).version}
    return {}
