"""What a caller that blocks sees of an interrupt, in a script and inside a running event loop."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import textwrap
import threading
from contextvars import ContextVar

import pytest
from tests.graph.programs import started

from ridgeline.graph.library.blocking import _WorkThread, run_blocking

HOST: ContextVar[str] = ContextVar("HOST", default="")

WORK = """
import asyncio, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores interrupts
from ridgeline.graph.library.blocking import run_blocking

stop = threading.Event()

async def work():
    print("started", flush=True)
    try:
        while not stop.is_set():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        raise
    print("in order", flush=True)
    return 7

def drain():
    print("draining", flush=True)
    {on_drain}
"""

DRAINED = """
try:
    run_blocking(work(), drain=drain)
except KeyboardInterrupt:
    print("interrupted")
"""


def interrupted(script: str, *, on_drain: str = "stop.set()") -> tuple[str, str, int]:
    """Run a script and interrupt it at each line of output that is not its last; returns output, errors, exit code."""
    code = WORK.format(on_drain=on_drain) + textwrap.dedent(script)
    process = started(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    said = ""
    with process:
        for line in process.stdout:
            said += line
            if line.strip() in {"started", "draining"} and (line.strip() == "started" or "stop.set()" not in on_drain):
                process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
    return said, errors, process.returncode


def test_an_interrupt_lets_the_work_end_in_order_and_leaves_once_it_has() -> None:
    said, errors, _ = interrupted(DRAINED)
    assert said.split("\n") == ["started", "draining", "in order", "interrupted", ""], errors


def test_an_interrupt_that_breaks_the_wait_for_a_threads_start_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = threading.Event.wait

    async def work() -> int:
        return 7

    def broken(event: threading.Event, timeout: float | None = None) -> bool:
        monkeypatch.setattr(threading.Event, "wait", wait)
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("release unlocked lock")

    monkeypatch.setattr(threading.Event, "wait", broken)
    with pytest.raises(KeyboardInterrupt):
        _WorkThread(work()).start()
    monkeypatch.setattr(threading.Event, "wait", broken)
    asked = list[int]()
    with pytest.raises(KeyboardInterrupt):
        run_blocking(work(), drain=lambda: asked.append(1))


def test_a_second_interrupt_cancels_the_work() -> None:
    said, errors, _ = interrupted(
        DRAINED,
        on_drain="pass",
    )
    assert said.split("\n") == ["started", "draining", "cancelled", "interrupted", ""], errors


def test_work_that_cannot_drain_is_cancelled_at_once() -> None:
    said, errors, _ = interrupted("""
        try:
            run_blocking(work())
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert said.split("\n") == ["started", "cancelled", "interrupted", ""], errors


def test_what_asks_for_an_end_in_order_is_called_in_the_thread_of_the_work() -> None:
    said, errors, _ = interrupted(
        DRAINED,
        on_drain="print(threading.current_thread().name, flush=True); stop.set()",
    )
    assert said.split("\n") == ["started", "draining", "ridgeline", "in order", "interrupted", ""], errors


def test_an_exit_that_a_signals_handler_raises_cancels_the_work_and_waits_for_its_end() -> None:
    said, errors, code = interrupted("""
        import signal

        signal.signal(signal.SIGINT, lambda *_: sys.exit(43))
        run_blocking(work(), drain=drain)
    """)
    assert (said.split("\n"), code) == (["started", "cancelled", ""], 43), errors


def test_work_that_ends_while_it_is_interrupted_is_neither_cancelled_nor_called() -> None:
    async def work() -> int:
        return 7

    called: list[str] = []
    thread = _WorkThread(work())
    thread.start()
    assert thread.has_ended.wait(60)
    thread.cancel()
    thread.call(lambda: called.append("late"))
    assert (thread.result(), called) == (7, [])


def test_inside_a_loop_of_asyncio_run_the_first_interrupt_counts_and_the_next_await_tells() -> None:
    said, errors, _ = interrupted("""
        async def main():
            print(run_blocking(work(), drain=drain))
            await asyncio.sleep(0)
            print("never")

        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert said.split("\n") == ["started", "draining", "in order", "7", "interrupted", ""], errors


def test_inside_a_loop_whose_host_takes_interrupts_as_a_notebook_does_it_is_raised() -> None:
    said, errors, _ = interrupted("""
        import signal

        async def main():
            try:
                run_blocking(work(), drain=drain)
            except KeyboardInterrupt:
                print("interrupted")
            await asyncio.sleep(0)
            print("goes on")

        loop = asyncio.new_event_loop()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        loop.run_until_complete(main())
        loop.close()
    """)
    assert said.split("\n") == ["started", "draining", "in order", "interrupted", "goes on", ""], errors


async def test_a_result_and_an_error_come_out_in_a_loop_too_and_the_callers_variables_go_in() -> None:
    async def work(error: Exception | None = None) -> tuple[str, bool]:
        await asyncio.sleep(0)
        if error is not None:
            raise error
        return HOST.get(), threading.current_thread() is threading.main_thread()

    HOST.set("notebook")
    assert run_blocking(work()) == ("notebook", False)
    fault = ValueError("no")
    with pytest.raises(ValueError) as caught:
        run_blocking(work(fault))
    assert caught.value is fault
