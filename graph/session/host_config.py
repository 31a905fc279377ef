"""The part of a host's LangGraph configuration that a search gets: callbacks, tags, metadata and a name.

A search that runs inside a node of a host's graph would otherwise be taken for a part of that graph: its checkpoints would
go to the host's saver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ridgeline.graph.session.arguments import checked
from ridgeline.tools.errors import InputError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

TAKEN = ("callbacks", "tags", "metadata", "run_name")


def checked_config(given: RunnableConfig | None) -> RunnableConfig:
    """Return what a caller hands on to LangGraph, checked.

    Raises:
        InputError: it is no mapping, or holds what the search decides itself.
    """
    from langchain_core.callbacks import BaseCallbackManager

    config: Mapping[str, Any] = checked("config", given) or {}
    other = sorted(str(name) for name in config if name not in TAKEN)
    if other:
        raise InputError(
            f"config: takes {', '.join(TAKEN)}, got {other[0]}, which a search decides itself; leave it out"
        )
    kinds: tuple[tuple[str, Any, str], ...] = (
        ("callbacks", list | BaseCallbackManager | None, "a list of callback handlers"),
        ("tags", list | None, "a list of texts"),
        ("metadata", dict | None, "a dict"),
        ("run_name", str | None, "a text"),
    )
    for name, kind, words in kinds:
        if not isinstance(config.get(name), kind):
            raise InputError(f"config: {name} must be {words}")
    return {name: config[name] for name in TAKEN if name in config}  # type: ignore[return-value]  # names of the TypedDict


@contextmanager
def apart_from_host(given: RunnableConfig, own: RunnableConfig) -> Iterator[RunnableConfig]:
    """Give the configuration of the search's own graph, apart from the one that the caller's own node runs in."""
    from langchain_core.runnables.config import merge_configs, var_child_runnable_config

    around: Mapping[str, Any] = var_child_runnable_config.get() or {}
    inherited: Any = {name: around[name] for name in ("callbacks", "tags", "metadata") if around.get(name)}
    token = var_child_runnable_config.set(None)
    try:
        yield merge_configs(inherited, given, own)
    finally:
        var_child_runnable_config.reset(token)
