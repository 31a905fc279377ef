"""A coroutine run to its end for a caller that blocks, in a script and inside a running event loop.

It runs in a thread of its own with a loop of its own, so that an interrupt reaches the caller, which waits, and not the
work. A loop that runs in the caller's thread stands still meanwhile; whoever wants it to go on awaits the coroutine.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

LOOK_EVERY_S = 0.1
"""Between two looks for an interrupt: one that comes just before a wait begins does not end it, nor does a cancellation
of the caller's own task."""
LONGEST_END_S = 10.0
"""For work that is cancelled because its caller ends, as by a handler of SIGTERM; what it started ends with it."""


def run_blocking(
    work: Coroutine[Any, Any, T],
    *,
    drain: Callable[[], object] | None = None,
    note: Callable[[T], str] | None = None,
) -> T:
    """Run `work` to its end and return its result, or raise what it raises.

    The first interrupt calls `drain` in the work's thread, between two of its steps; it asks the work to end in order. The
    second cancels the work, and so does the first without `drain`. A third leaves the work behind. `asyncio.run` turns the
    first one of its process into a cancellation of the caller's task, which counts as one here. Whatever else is raised in
    the caller, such as the SystemExit of a signal's handler, cancels the work and waits for its end, not for long.

    Raises:
        KeyboardInterrupt: once the work has ended, with the `note` on a result that it leaves. Of a cancellation, the
            caller's next `await` tells instead.
    """
    thread = _WorkThread(work)
    steps: list[Callable[[], object]] = [*([functools.partial(thread.call, drain)] if drain else []), thread.cancel]
    try:
        interrupt = _wait(thread, steps)
    except KeyboardInterrupt:  # the third
        raise
    except BaseException:
        thread.cancel()
        if thread.has_begun:
            thread.has_ended.wait(LONGEST_END_S)
        raise
    if interrupt is not None:
        if note is not None and thread.has_result:
            interrupt.add_note(note(thread.result()))
        raise interrupt
    return thread.result()


def _wait(thread: _WorkThread[Any], steps: list[Callable[[], object]]) -> KeyboardInterrupt | None:
    """Wait for the end of the thread and take a step at each interrupt; return the last interrupt."""
    caller = _task_of_caller()
    cancelled = caller.cancelling() if caller else 0
    interrupt: KeyboardInterrupt | None = None
    asked = 0  # interrupts to act upon, which is done outside of `except`: a further one may come meanwhile
    while True:
        try:
            while asked and steps:
                asked -= 1
                steps.pop(0)()
            if not thread.has_begun:
                thread.start()
            if thread.has_ended.wait(LOOK_EVERY_S):
                return interrupt
            if caller and caller.cancelling() > cancelled:
                asked, cancelled = asked + 1, caller.cancelling()
        except KeyboardInterrupt as error:
            if not steps:
                raise
            interrupt, asked = error, asked + 1


def _task_of_caller() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


class _WorkThread(Generic[T]):
    """The thread of one coroutine; a daemon, so that a process can end without it."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.has_ended = threading.Event()
        self._begun = threading.Lock()
        self._work = work
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False
        self._calls: deque[Callable[[], object]] = deque()

    @property
    def has_begun(self) -> bool:
        """Say whether the thread runs, or ran."""
        return self._begun.locked()

    @property
    def has_result(self) -> bool:
        """Say whether the coroutine returned."""
        return bool(self._result)

    def start(self) -> None:
        """Start, with the caller's context variables; a start that an interrupt cut short may be repeated.

        An interrupt while `threading` waits for the thread to run may come out of it as the release of a lock that is not held.
        """
        context = contextvars.copy_context()
        try:
            threading.Thread(target=context.run, args=(self._run,), name="ridgeline", daemon=True).start()
        except RuntimeError as error:
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise

    def cancel(self) -> None:
        """Cancel the coroutine; it ends what it started."""
        self._is_cancelled = True
        if self._task is not None:
            self._in_loop(self._task.cancel)

    def call(self, work: Callable[[], object]) -> None:
        """Call this in the thread as soon as the coroutine waits, or begins; not at all once it has ended."""
        self._calls.append(work)
        self._in_loop(self._make_calls)

    def result(self) -> T:
        """Return the result of the coroutine, which has ended, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _in_loop(self, work: Callable[[], object]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it is closed: the coroutine has ended
                self._loop.call_soon_threadsafe(work)

    def _make_calls(self) -> None:
        while self._calls:
            self._calls.popleft()()

    def _run(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._result.append(asyncio.run(self._whole()))
        except BaseException as error:  # noqa: BLE001  # whatever it is, the caller raises it
            self._error = error
        finally:
            self.has_ended.set()

    async def _whole(self) -> T:
        self._task = asyncio.current_task()
        # from here on the other threads reach it; what came before is done here
        self._loop = asyncio.get_running_loop()
        self._make_calls()
        if self._is_cancelled and self._task is not None:
            self._task.cancel()
        return await self._work
