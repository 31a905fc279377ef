"""What importing the library costs."""

from __future__ import annotations

import subprocess
import sys

from tests.environments import child_environment


def imported_by(code: str) -> set[str]:
    """Return the top-level packages that a fresh process has loaded after `code`."""
    script = f"{code}\nimport sys\nprint(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    environment = child_environment()
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_library_facade_imports_neither_langgraph_nor_a_provider_nor_torch() -> None:
    loaded = imported_by("import ridgeline.graph.library.search")
    assert not loaded & {"langgraph", "langchain_core", "langchain_openai", "langchain_google_genai", "openai", "torch"}


def test_graph_and_offline_model_run_without_torch() -> None:
    loaded = imported_by(
        "from ridgeline.graph.build import make_graph\n"
        "from ridgeline.graph.models.registry import make_model\n"
        "make_graph(); make_model('offline')"
    )
    assert "langgraph" in loaded
    assert not loaded & {"torch", "langchain_openai", "langchain_google_genai"}
