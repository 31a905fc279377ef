"""The tools as a client of the SDK calls them, over runs that need no process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.memory import create_connected_server_and_client_session as connected
from tests.graph.conftest import write_problem
from tests.graph.mailbox_agent import answer_of
from tests.graph.mcp.scenario import ask, config_in, parked, refused, text_of, toy
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.graph.mcp.answers import RunStatus
from ridgeline.graph.mcp.runs import uri_of
from ridgeline.graph.mcp.server import RidgelineServer
from ridgeline.graph.mcp.watching import progress_words
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.engine import Task

TOOLS = {
    *(
        "start_search",
        "resume_search",
        "status",
        "wait",
        "best",
        "stop",
        "evaluate_kernel",
        "list_problems",
        "list_runs",
    ),
    *("next_request", "answer", "ship"),
}


async def finished(folder: Path, name: str = "done") -> Path:
    """Return the folder of a search that is over."""
    problem = write_problem(folder / "problem", search={"rounds": 1, "ideas": 1, "implementations": 1})
    request = SearchRequest(problem=problem, run_dir=folder / "runs" / name)
    return (await run_search(request, engine=MemoryEngine(), models=[ScriptedModel()])).run_dir


async def test_every_tool_says_what_it_takes_and_gives(tmp_path: Path) -> None:
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.description and "  " not in tool.description
        assert tool.outputSchema is not None and tool.outputSchema["type"] == "object"
    read_only = {tool.name for tool in tools if tool.annotations and tool.annotations.readOnlyHint}
    assert read_only == TOOLS - {"start_search", "resume_search", "stop", "answer", "ship", "evaluate_kernel"}


async def test_problems_that_ship_are_listed_with_what_needs_no_key(tmp_path: Path) -> None:
    config = config_in(tmp_path, keyless={"softmax": ["cpu"]})
    async with connected(RidgelineServer(config)) as client:
        problems = {each["name"]: each for each in (await ask(client, "list_problems"))["problems"]}
    assert problems["softmax"]["keyless"] == ["cpu"]
    assert "name: softmax" in text_of(problems["softmax"]["path"])


async def test_a_request_is_read_answered_and_refused_with_what_to_mend(tmp_path: Path) -> None:
    run = await parked(tmp_path)
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        told = await ask(client, "next_request", run="parked")
        request = told["request"]
        assert (told["run"], told["waiting"], told["state"]) == (str(run), ["r1:ideate:0"], "waiting")
        assert (request["id"], request["purpose"], request["model"]) == ("r1:ideate:0", "ideas", "mailbox")
        assert request["prompt"].strip() in text_of(request["prompt_path"])
        assert "ideas" in request["schema"]["properties"]
        assert (await ask(client, "next_request", run="parked", with_prompt=False))["request"]["prompt"] is None

        answer: dict[str, Any] = {"run": str(run), "request_id": "r1:ideate:0"}
        assert "ideas" in await refused(client, "answer", **answer, text="no JSON")
        assert "got text, source" in await refused(client, "answer", **answer, text="x", source="y")
        assert "no request 'r9:ideate:0'; waiting: r1:ideate:0" in await refused(
            client, "answer", run="parked", request_id="r9:ideate:0", text="{}"
        )
        assert "no such file" in await refused(client, "answer", **answer, file=str(tmp_path / "none.json"))
        assert "no such file" in await refused(client, "answer", **answer, file="answer.json")
        assert (await ask(client, "next_request", run="parked"))["request"]["refused"]

        _, text = answer_of(text_of(request["prompt_path"]))
        taken = await ask(client, "answer", **answer, reply=json.loads(text))
        assert (taken["waiting"], taken["is_running"]) == ([], False)
        assert "resume_search" in taken["next_step"]
        assert "answered already" in await refused(client, "answer", **answer, text=text)
        none = await ask(client, "next_request", run="parked")
        assert none["request"] is None and "no request waits" in none["says"]


async def test_an_answer_may_be_a_file(tmp_path: Path) -> None:
    run = await parked(tmp_path)
    _, text = answer_of((run / "mailbox" / "r1_ideate_0.request.md").read_text())
    (tmp_path / "mine.json").write_text(text)
    (tmp_path / "mine.so").write_bytes(b"\x7fELF\xff")
    (tmp_path / "large.json").write_bytes(b" " * (3 * 2**20))
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        given = {"run": "parked", "request_id": "r1:ideate:0"}
        for name, says in (("mine.so", "UTF-8"), ("large.json", "MiB")):
            assert says in await refused(client, "answer", **given, file=str(tmp_path / name))
        assert (await ask(client, "answer", **given, file=str(tmp_path / "mine.json")))["waiting"] == []


async def test_the_best_kernel_has_figures_a_source_and_resources(tmp_path: Path) -> None:
    run = await finished(tmp_path)
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        told = await ask(client, "best", run="done")
        assert told["best"]["certified"] and told["best"]["speedup"] > 1
        low, high = told["best"]["speedup_ci95"]
        assert low <= told["best"]["speedup"] <= high
        assert Path(told["source_path"]) == run / "best.cpp"
        assert told["source"] is None
        source = (await ask(client, "best", run=str(run), with_source=True))["source"]
        assert source == (run / "best.cpp").read_text()
        read = {uri.rpartition("/")[2]: (await client.read_resource(uri)).contents[0] for uri in told["resources"]}
        assert read["source"].text == source
        assert json.loads(read["certificate"].text) == json.loads((run / "certificate.json").read_text())
        assert (read["report"].mimeType, "<html" in read["report"].text) == ("text/html", True)
        named = await client.read_resource("ridgeline://runs/done/source")
        assert named.contents[0].text == source
        listed = await ask(client, "list_runs")
        assert [(each["run"], each["state"]) for each in listed["runs"]] == [(str(run), "finished")]
        waited = await ask(client, "wait", run="done", seconds=300)
        assert (waited["state"], waited["is_running"], waited["rounds_done"]) == ("finished", False, 1)


async def test_a_resource_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    run = await parked(tmp_path)
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        for uri, says in (
            (uri_of(run, "certificate"), "has no certificate yet"),
            ("ridgeline://runs/none/report", "no such run"),
            ("ridgeline://runs/parked/secrets", "no such resource"),
            ("ridgeline://runs/..%2F..%2Fetc/report", "give the name of a folder"),
        ):
            with pytest.raises(Exception, match=says) as caught:
                await client.read_resource(uri)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tool", "given", "says"),
    [
        ("start_search", {"problem": "softmx"}, "did you mean softmax?"),
        ("start_search", {"problem": "problem.yaml"}, "absolute path"),
        ("start_search", {"problem": "/nowhere/problem.yaml"}, "/nowhere/problem.yaml"),
        ("start_search", {"problem": "softmax", "rounds": 0}, "rounds: "),
        ("start_search", {"problem": "softmax", "idea": 1}, "no argument 'idea'; did you mean ideas?"),
        ("start_search", {"problem": "softmax", "budget": {"usd": -1}}, "budget.usd: "),
        ("start_search", {"problem": "softmax", "rounds": True}, "rounds: must be a number"),
        ("start_search", {"problem": "softmax", "budget": {"tokens": True}}, "budget.tokens: must be a number"),
        ("start_search", {"problem": "softmax", "budget": {"cents": 1}}, "budget.cents: "),
        ("start_search", {"problem": "softmax", "run": "parked"}, "holds a search already; resume_search"),
        ("start_search", {"problem": "softmax", "run": "../elsewhere"}, "or an absolute path"),
        ("resume_search", {"run": "none"}, "none: no such run"),
        ("status", {"run": "none"}, "none: no such run"),
        ("status", {"run": "a\0b"}, "run: must be"),
        ("status", {}, "run: Field required"),
        ("wait", {"run": "parked", "seconds": 3600}, "seconds: "),
        ("wait", {"run": "parked", "seconds": True}, "seconds: must be a number"),
        ("stop", {"run": "parked"}, "no process searches in it now"),
        ("answer", {"run": "none", "request_id": "r1:ideate:0", "text": "x"}, "none: no such run"),
        ("evaluate_kernel", {"problem": "softmax"}, "either source or file"),
        ("evaluate_kernel", {"problem": "softmax", "file": "kernel.cpp"}, "absolute path"),
        ("evaluate_kernel", {"problem": "softmax", "file": "/nowhere.cpp"}, "/nowhere.cpp"),
        ("evaluate_kernel", {"problem": "softmax", "source": "a\nb", "device": "tpu"}, "device 'tpu'"),
        ("ship", {"run": "parked", "out": "relative"}, "absolute path"),
        ("ship", {"run": "parked", "out": "/nowhere/out"}, "is not certified"),
        ("no_such_tool", {}, "no_such_tool"),
    ],
)
async def test_bad_input_is_one_line(tool: str, given: dict[str, Any], says: str, parked_once: Path) -> None:
    async with connected(RidgelineServer(config_in(parked_once))) as client:
        assert says in await refused(client, tool, **given)


async def test_progress_tells_the_words_of_the_log_without_their_head(parked_once: Path) -> None:
    async with connected(RidgelineServer(config_in(parked_once))) as client:
        status = RunStatus.model_validate(await ask(client, "status", run="parked"))
    for level, name in (("INFO", "ridgeline.graph.session.parking"), ("WARNING", "ridgeline")):
        line = f"2026-11-26 01:48:46,044 {level} {name}: r1i0v0a0: ok 1.3x"
        told = progress_words(status.model_copy(update={"last_event": line}))
        assert told.endswith("best 1.20x eager; r1i0v0a0: ok 1.3x")


@pytest.mark.parametrize("tool", ["start_search", "evaluate_kernel"])
async def test_of_a_file_that_states_no_problem_a_client_is_told_no_word(tool: str, tmp_path: Path) -> None:
    (tmp_path / "shadow").write_text("root:SECRET:0:::::\n")
    given = {"problem": str(tmp_path / "shadow")} | ({"source": "// a"} if tool == "evaluate_kernel" else {})
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        said = await refused(client, tool, **given)
    assert said.endswith("shadow: states no problem; write `name:` and `reference:` at least, see docs/problem.md")


@pytest.fixture(scope="module")
def parked_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder whose runs hold one that is parked."""
    folder = tmp_path_factory.mktemp("parked")
    asyncio.run(parked(folder))
    return folder


async def test_a_defect_is_one_line_and_its_traceback_goes_to_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Path) -> None:
        raise ZeroDivisionError("a\ndefect")

    monkeypatch.setattr("ridgeline.graph.mcp.tools.newest_runs", broken)
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        said = await refused(client, "list_runs")
    assert said == "internal error, please report: ZeroDivisionError: a defect"
    assert "Traceback" in caplog.text


async def test_a_kernel_is_judged_without_a_search(tmp_path: Path) -> None:
    problem, kernel = toy(tmp_path), tmp_path / "mine.cpp"
    kernel.write_text("// mine\n// speed 2.5\n")
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        for given in ({"source": kernel.read_text()}, {"file": str(kernel)}):
            verdict = await ask(client, "evaluate_kernel", problem=problem, **given)
            assert (verdict["status"], verdict["speedup"]) == ("ok", 2.5)
        one = await refused(client, "evaluate_kernel", problem=problem, source="class ModelNew: pass")
        assert one == "source: must be a whole kernel with its line breaks, got one line"
        wrong = await ask(client, "evaluate_kernel", problem=problem, source="// fails verify\n//")
        assert (wrong["status"], wrong["reason_code"], wrong["speedup"]) == ("wrong", "wrong_values", None)


class Slow(MemoryEngine):
    """Judges until it is cancelled, then takes its time to end what it started."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.ended = asyncio.Event(), False

    async def submit(self, task: Task[Any]) -> Any:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            self.ended = True


async def test_cancelling_an_evaluation_ends_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification

    monkeypatch.setattr("ridgeline.graph.mcp.judging.TELL_EVERY_S", 0.01)
    problem, engine, told = toy(tmp_path), Slow(), asyncio.Event()

    async def progress(passed_s: float, total: float | None, message: str | None) -> None:
        assert message and "verifies" in message and total is None
        told.set()

    async with connected(RidgelineServer(config_in(tmp_path, engine=engine))) as client:
        given = {"problem": problem, "source": "// a\n// b"}
        calling = asyncio.create_task(client.call_tool("evaluate_kernel", given, progress_callback=progress))
        await engine.began.wait()
        await told.wait()
        cancelled = CancelledNotificationParams(requestId=client._request_id - 1)
        await client.send_notification(ClientNotification(CancelledNotification(params=cancelled)))
        with pytest.raises(Exception, match="cancel"):
            await calling
        assert engine.ended


async def test_a_kernel_that_waits_for_its_turn_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgeline.graph.mcp.judging.TELL_EVERY_S", 0.01)
    engine, waits = Slow(), asyncio.Event()

    async def progress(_passed_s: float, _total: float | None, message: str | None) -> None:
        if message == "waits for a kernel that is judged before it":
            waits.set()

    async with connected(RidgelineServer(config_in(tmp_path, engine=engine))) as client:
        given = {"problem": toy(tmp_path), "source": "// a\n// b"}
        first = asyncio.create_task(client.call_tool("evaluate_kernel", given))
        await engine.began.wait()
        second = asyncio.create_task(client.call_tool("evaluate_kernel", given, progress_callback=progress))
        await waits.wait()
        for calling in (first, second):
            calling.cancel()


async def test_a_client_that_leaves_ends_its_evaluation(tmp_path: Path) -> None:
    engine = Slow()
    async with connected(RidgelineServer(config_in(tmp_path, engine=engine))) as client:
        given = {"problem": toy(tmp_path), "source": "// a\n// b"}
        calling = asyncio.create_task(client.call_tool("evaluate_kernel", given))
        await engine.began.wait()
        calling.cancel()
    assert engine.ended


async def test_a_wait_is_told_as_progress_and_ends_in_time(tmp_path: Path) -> None:
    run = await parked(tmp_path)
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(passed_s: float, total: float | None, message: str | None) -> None:
        told.append((passed_s, total, message))

    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        known = await ask(client, "wait", run="parked", seconds=300)
        assert known["waiting"] == ["r1:ideate:0"], "somebody has to answer: there is nothing to wait for"
        with lock_run(run):
            running = await ask(client, "wait", run="parked", seconds=300, seen=known["seen"])
            assert (running["state"], running["is_running"]) == ("running", True)
            same = await ask(client, "wait", progress, run="parked", seconds=1, seen=running["seen"])
            assert same["seen"] == running["seen"]
    assert told and told[0][1] == 1.0 and "round 1 of 1, 0 candidates" in str(told[0][2])
