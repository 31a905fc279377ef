"""Ridgeline inside other programs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from tests.graph.conftest import Search, write_problem
from tests.graph.memory_engine import MemoryEngine
from typing_extensions import TypedDict

from ridgeline.graph.build import GraphConfig, make_graph
from ridgeline.graph.library.evaluation import aevaluate, evaluate
from ridgeline.graph.library.search import asearch, search
from ridgeline.graph.session.options import default_run_dir
from ridgeline.graph.session.problem import find_problem
from ridgeline.tools.engine import BaselineTask, CompileTask, NextBaselineTask, Task
from ridgeline.tools.errors import DeviceError, InputError, ModelError, ProblemError, SandboxError
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import ReasonCode, Status
from ridgeline.tools.sandbox import sandbox

ROOT = Path(__file__).parents[3]

HOST = """
import asyncio, importlib.util, sys
from pathlib import Path
import graph, tools
from graph.app import build_host
from langgraph.checkpoint.memory import InMemorySaver
from ridgeline import search_node
import ridgeline.tools.records


def load(name):
    spec = importlib.util.spec_from_file_location(name, Path({tests!r}) / (name + ".py"))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def main():
    engine, model = load("memory_engine").MemoryEngine(), load("scripted_model").ScriptedModel()
    node = search_node({{"rounds": 1, "runs_dir": sys.argv[2]}}, engine=engine, models=[model])
    host = build_host(node, InMemorySaver())
    config = {{"configurable": {{"thread_id": "host"}}}}
    state = await host.ainvoke({{"profile_ms": {{sys.argv[1]: 2.0, "other": 1.0}}}}, config)
    print(state["report"])
    print(Path(tools.__file__).parent.name, Path(graph.__file__).parent.parent.name)


asyncio.run(main())
"""


@pytest.mark.thorough
def test_host_with_its_own_tools_and_graph_runs_a_search_as_a_node(tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "problem", search={"tune_trials": 0})
    script = HOST.format(tests=str(ROOT / "tests" / "graph"))
    path = os.pathsep.join([str(ROOT / "examples" / "host_app"), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-c", script, str(problem.path), str(tmp_path / "runs")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report, names = done.stdout.splitlines()
    assert report.startswith(f"{problem.path}: finished, 1.3")
    assert report.endswith(str(tmp_path / "runs" / "toy.host" / "best.cpp"))
    assert names == "host_app host_app"


class HostState(TypedDict, total=False):
    max_rounds: int
    outcome: str
    best_id: str | None


class HostContext:
    """A host's own context object, which must not reach the search."""


async def test_context_of_the_host_does_not_leak_into_the_search(search: Search) -> None:
    builder = StateGraph(HostState, context_schema=HostContext)
    builder.add_node("search", make_graph(GraphConfig(context=search.context(rounds=1))))
    builder.add_edge(START, "search")
    builder.add_edge("search", END)
    host = builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    state = await host.ainvoke({"max_rounds": 1}, config, context=HostContext())
    assert state["outcome"] == "finished"
    assert set(state) <= {"max_rounds", "outcome", "best_id"}


async def test_graph_without_a_context_says_what_to_pass() -> None:
    with pytest.raises(ModelError, match="context=SearchContext"):
        await make_graph().ainvoke({})


async def test_evaluate_returns_one_line_for_each_file(tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "problem")
    good, bad = tmp_path / "good.cpp", tmp_path / "bad.cpp"
    good.write_text("// speed 2.0\n")
    bad.write_text("// fails verify\n")
    lines = await aevaluate(problem, [good, bad], engine=MemoryEngine())
    assert [(line.file, line.status, line.speedup) for line in lines] == [
        (str(good), "ok", 2.0),
        (str(bad), "wrong", None),
    ]
    assert lines[0].speedup_vs_best == pytest.approx(1.6)
    assert lines[1].reason == "row 3 differs"
    json.dumps([line.to_dict() for line in lines])


async def test_evaluate_tells_each_step_as_it_begins_and_what_does_not_build_is_not_verified(tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "problem")
    good, wrong, broken = write_kernels(tmp_path, "speed 2.0", "fails verify", "fails compile")
    steps: list[str] = []
    await aevaluate(problem, [good, wrong, broken], engine=MemoryEngine(), on_step=steps.append)
    assert [step.partition(",")[0] for step in steps] == [
        "describing the reference",
        "building 3 kernels",
        f"verifying {good}",
        f"timing {good} in turns with eager PyTorch",
        f"verifying {wrong}",
    ]


async def test_evaluate_names_each_configuration_of_pytorch_that_is_timed_and_none_whose_time_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Timing(MemoryEngine):
        """Takes long for each time but one that is stored."""

        async def submit(self, task: Task[Any]) -> Any:
            is_stored = isinstance(task, BaselineTask)
            if is_stored or isinstance(task, NextBaselineTask):
                await asyncio.sleep(0 if is_stored else 0.5)
            return await super().submit(task)

    monkeypatch.setattr("ridgeline.graph.library.judged_files.STORED_WITHIN_S", 0.2)
    problem = write_problem(tmp_path / "problem")
    (good,) = write_kernels(tmp_path, "speed 2.0")
    steps: list[str] = []
    judged = await aevaluate(problem, good, engine=Timing(), on_step=steps.append)
    told = [step for step in steps if step.startswith("timing PyTorch: ")]
    assert told == ["timing PyTorch: torch.compile, which may take half a minute or more"]
    assert judged.speedup_vs_best == pytest.approx(1.6)


async def test_evaluate_refuses_a_file_of_another_language(tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "problem")
    file = tmp_path / "kernel.cu"
    file.write_text("// speed 2.0\n")
    with pytest.raises(ProblemError, match=r"takes \.cpp files"):
        await aevaluate(problem, [file], engine=MemoryEngine())


def test_search_reports_a_missing_key_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    problem = write_problem(tmp_path / "problem")
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        search(problem, models=["openai:o3"], run_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()


async def test_search_blocks_inside_a_running_loop_and_raises_there(tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "problem")
    with pytest.raises(ModelError, match="provider:name"):
        search(problem, models=["nonsense"], run_dir=tmp_path / "run")


def test_problem_is_found_by_name_path_or_folder(tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "problem")
    assert find_problem(problem.path).name == find_problem(str(tmp_path / "problem")).name == "toy"
    assert find_problem("quickstart").name == "quickstart"
    with pytest.raises(ProblemError):
        find_problem("no-such-problem")
    with pytest.raises(ProblemError, match=r"did you mean softmax\? shipped: .*quickstart"):
        find_problem("softmx")


def test_default_run_folder_is_never_an_existing_one(tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "problem")
    first = default_run_dir(problem, tmp_path)
    assert default_run_dir(problem, tmp_path) != first, "two searches that begin at once"
    (tmp_path / f"{first.name}-2").mkdir()
    assert not default_run_dir(problem, tmp_path).exists()


async def test_evaluate_gives_each_line_before_the_next_file_is_judged(tmp_path: Path) -> None:
    problem, engine = write_problem(tmp_path / "problem"), MemoryEngine()
    files = [tmp_path / "first.cpp", tmp_path / "second.cpp"]
    for file in files:
        file.write_text("// speed 2.0\n")
    verified: list[int] = []
    lines = await aevaluate(
        problem,
        files,
        engine=engine,
        on_evaluation=lambda line: verified.append(engine.counts["VerifyTask:file-second"]),
    )
    assert verified == [0, 1]
    assert len(lines) == 2


def write_kernels(folder: Path, *texts: str) -> list[Path]:
    files = [folder / f"kernel{number}.cpp" for number, _ in enumerate(texts)]
    for file, text in zip(files, texts, strict=True):
        file.write_text(f"// {text}\n")
    return files


async def test_evaluate_times_nothing_when_no_file_builds(tmp_path: Path) -> None:
    problem, engine = write_problem(tmp_path / "problem"), MemoryEngine()
    lines = await aevaluate(problem, write_kernels(tmp_path, "fails compile", "fails compile "), engine=engine)
    assert [line.status for line in lines] == ["compile_error", "compile_error"]
    assert [(line.to_dict()["baselines"], line.floor_ms) for line in lines] == [([], None)] * 2
    assert engine.counts["BaselineTask"] == 0


async def test_evaluate_tells_a_compile_error_before_pytorch_is_timed_and_keeps_the_order(tmp_path: Path) -> None:
    problem, engine = write_problem(tmp_path / "problem"), MemoryEngine()
    files = write_kernels(tmp_path, "fails compile", "speed 2.0", "fails compile ", "speed 3.0")
    timed: list[int] = []
    lines = await aevaluate(
        problem, files, engine=engine, on_evaluation=lambda line: timed.append(engine.counts["BaselineTask"])
    )
    assert [line.file for line in lines] == [str(file) for file in files]
    assert [line.status for line in lines] == ["compile_error", "ok", "compile_error", "ok"]
    assert timed == [0, 1, 1, 1]
    assert [bool(line.to_dict()["baselines"]) for line in lines] == [False, True, False, True]


async def test_missing_file_is_found_before_anything_is_measured(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with pytest.raises(ProblemError, match="absent.cpp does not exist"):
        await aevaluate(write_problem(tmp_path / "problem"), [tmp_path / "absent.cpp"], engine=engine)
    assert not engine.counts


@pytest.mark.parametrize("lacking", ["sandbox", "compiler"])
def test_a_machine_without_sandbox_or_compiler_is_refused_before_anything_begins(
    tmp_path: Path, lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "kernel.cpp"
    kernel.write_text("void run() {}\n")
    if lacking == "sandbox":
        monkeypatch.setattr(sandbox, "reason_against", lambda tier: "not on this machine")
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    sandbox._probe.cache_clear()
    try:
        with pytest.raises((SandboxError, DeviceError)):
            search("quickstart", run_dir=tmp_path / "run")
        with pytest.raises((SandboxError, DeviceError)):
            evaluate("quickstart", [kernel])
    finally:
        sandbox._probe.cache_clear()
    assert list(tmp_path.iterdir()) == [kernel]


def test_a_single_model_and_a_single_file_need_no_list(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="opeani:gpt-5: .*did you mean openai"):
        search("quickstart", models="opeani:gpt-5", run_dir=tmp_path / "run")
    for name in ("no-such.cpp", "no-such.cu", "no-such.cpp\n"):  # of another language, or with the end of its line
        with pytest.raises(ProblemError, match=f"kernel: {name.strip()} does not exist; mend the path$"):
            evaluate("quickstart", name)
    with pytest.raises(
        InputError, match="kernels: 'int main.*' is no file that exists; a text in one line is taken for"
    ):
        evaluate("quickstart", "int main() { return 0; }")


class _Refusing(MemoryEngine):
    def _compile(self, task: CompileTask) -> Build:
        reason = "kernel.cpp:3:5: error: expected ';' before '}'"
        return Build(key="k", status=Status.COMPILE_ERROR, reason_code=ReasonCode.COMPILER_FAILED, reason=reason)


async def test_a_compilers_message_names_the_file_as_the_user_does(tmp_path: Path) -> None:
    (tmp_path / "mine.cpp").write_text("void run( }")
    [line] = await aevaluate(find_problem("quickstart"), [tmp_path / "mine.cpp"], engine=_Refusing())
    assert line.reason == "mine.cpp:3:5: error: expected ';' before '}'"


async def test_arguments_that_there_are_not_are_told_under_the_name_that_was_called() -> None:
    with pytest.raises(TypeError, match=r"^search\(\) got an unexpected keyword argument 'round'$"):
        search("quickstart", round=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^search\(\) too many positional arguments$"):
        search("quickstart", "cpu")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^asearch\(\) got an unexpected keyword argument 'round'$"):
        await asearch("quickstart", round=1)  # type: ignore[call-arg]
