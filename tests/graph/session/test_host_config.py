"""What of a host's LangGraph configuration reaches a search, and what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from typing_extensions import TypedDict

from ridgeline.checkpoints.storage.own_files import CHECKPOINTS
from ridgeline.checkpoints.storage.saver import open_saver
from ridgeline.graph.models.langchain import LangChainModel
from ridgeline.graph.models.retry import RetryPolicy
from ridgeline.graph.session.host_config import checked_config
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import THREAD_ID, run_search
from ridgeline.tools.errors import InputError

SETTINGS = {"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 0, "floor_margin": None}


class Listener(BaseCallbackHandler):
    """Notes what LangGraph and LangChain tell of each node and each call of a model."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.runs: list[tuple[list[str], dict[str, Any]]] = []
        self.calls: list[tuple[list[str], dict[str, Any]]] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **told: Any) -> None:
        self.nodes.append(told.get("name", ""))
        self.runs.append((told.get("tags") or [], told.get("metadata") or {}))

    def on_chat_model_start(self, serialized: Any, messages: Any, **told: Any) -> None:
        self.calls.append((told.get("tags") or [], told.get("metadata") or {}))


def request(folder: Path) -> SearchRequest:
    return SearchRequest(problem=write_problem(folder / "problem", search=SETTINGS), run_dir=folder / "run")


async def test_callbacks_tags_and_metadata_reach_every_node_and_call(tmp_path: Path) -> None:
    heard = Listener()
    model = LangChainModel("fake:one", FakeListChatModel(responses=["no ideas"]), price=None, policy=RetryPolicy())
    config: Any = {"callbacks": [heard], "tags": ["nightly"], "metadata": {"team": "kernels"}, "run_name": "softmax"}
    await run_search(request(tmp_path), engine=MemoryEngine(), models=[model], config=config)
    assert {"baseline", "ideate", "certify"} <= set(heard.nodes) and heard.nodes[0] == "softmax"
    assert heard.calls
    for tags, metadata in (heard.runs[0], *heard.calls):
        assert "nightly" in tags and metadata["team"] == "kernels"


class HostState(TypedDict, total=False):
    state: str


async def test_a_search_inside_a_hosts_node_keeps_its_own_checkpoints_and_tells_the_hosts_callbacks(
    tmp_path: Path,
) -> None:
    async def node(_: HostState) -> HostState:
        result = await run_search(request(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
        return {"state": result.state}

    builder = StateGraph(HostState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    saver, heard = InMemorySaver(), Listener()
    host = builder.compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "host"}, "callbacks": [heard], "tags": ["hosts"]}
    assert await host.ainvoke({}, config) == {"state": "finished"}
    assert {name: set(spaces) for name, spaces in saver.storage.items()} == {"host": {""}}
    async with open_saver(tmp_path / "run" / CHECKPOINTS) as own:
        assert await own.aget_tuple({"configurable": {"thread_id": THREAD_ID}}) is not None
    assert "certify" in heard.nodes and all("hosts" in tags for tags, _ in heard.runs[:2])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"configurable": {"thread_id": "mine"}}, "got configurable, which a search decides itself"),
        ({"recursion_limit": 5}, "got recursion_limit"),
        ({"tags": "nightly"}, "tags must be a list of texts"),
        ({"callbacks": 5}, "callbacks must be a list of callback handlers"),
        ({"metadata": []}, "metadata must be a dict"),
    ],
)
def test_what_a_search_decides_itself_is_refused(config: Any, said: str) -> None:
    with pytest.raises(InputError, match=f"config: .*{said}"):
        checked_config(config)
