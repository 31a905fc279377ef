"""Programs of their own that begin with the imports of a search done: to be read, killed and begun again."""

from __future__ import annotations

from pathlib import Path

from tests.environments import ROOT, child_environment
from tests.warm_python import WarmProgram, WarmPython

SEARCHING = WarmPython(
    "ridgeline.graph.cli.commands.run",
    "ridgeline.graph.session.session",
    "ridgeline.graph.build",
    "ridgeline.checkpoints.report.outputs",
    "ridgeline.graph.models.wire",
    "langchain_openai",
    "langchain_google_genai",
    "langgraph.checkpoint.sqlite.aio",
    PYTHONPATH=str(ROOT / "src"),
)


def started(
    code: str,
    *words: str | Path,
    cwd: Path | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    **environment: str,
) -> WarmProgram:
    """Start Python code with these words, in this process's environment and these variables; it finds the tests too."""
    env = child_environment(ROOT, **environment)
    return SEARCHING.start(["-c", code, *map(str, words)], env=env, cwd=cwd, stdout=stdout, stderr=stderr)


def ended(code: str, *words: str | Path, cwd: Path | None = None, **environment: str) -> tuple[int, str, str]:
    """Run Python code to its end; returns the exit code, what it wrote and what it wrote to its standard error.

    Code that takes too long is killed.
    """
    env = child_environment(ROOT, **environment)
    done = SEARCHING.run(["-c", code, *map(str, words)], env=env, cwd=cwd or Path.cwd())
    return done.returncode, done.stdout, done.stderr
