"""The order of a shipped kernel's calls on several streams, with streams that only note what they are asked."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ridgeline.graph.shipping.shipped._call_c import Library

GPU = torch.device("cuda", 0)


class Stream:
    def __init__(self, handle: int) -> None:
        self.cuda_stream = handle
        self.waited: list[Any] = []

    def wait_stream(self, other: Any) -> None:
        self.waited.append(other)


class Entry:
    def __call__(self) -> int:
        return 64


@pytest.fixture
def library() -> Library:
    made = Library.__new__(Library)
    made._streams = {}
    return made


def on(monkeypatch: pytest.MonkeyPatch, stream: Stream, *, capturing: bool = False) -> None:
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: stream)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing)


def test_a_call_waits_for_the_last_one_of_another_stream(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Stream(1), Stream(2)
    for stream in (one, two, two):
        on(monkeypatch, stream)
        assert library._stream(GPU) == stream.cuda_stream
    assert (one.waited, two.waited) == ([], [one])


def test_a_captured_stream_waits_for_none_and_none_waits_for_it(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, captured = Stream(1), Stream(2)
    on(monkeypatch, one)
    library._stream(GPU)
    on(monkeypatch, captured, capturing=True)
    assert library._stream(GPU) == captured.cuda_stream
    on(monkeypatch, one)
    library._stream(GPU)
    assert (one.waited, captured.waited) == ([], [])


def test_the_workspace_is_there_before_a_graph_may_be_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace(ridgeline_call=SimpleNamespace(), workspace_bytes=Entry())
    asked: list[Any] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _path: loaded)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(Library, "_workspace", lambda _self, device: asked.append(device))
    Library(Path("kernel.so"), [], torch.device("cuda"))
    Library(Path("kernel.so"), [], GPU)
    assert asked == [torch.device("cuda", 1), GPU]
