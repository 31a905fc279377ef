"""Loopback servers that speak the protocols of OpenAI (chat completions, responses) and Gemini (generateContent)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What the server does with one request."""

    text: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    error: str = "refused"
    finish_reason: str = "stop"  # of a chat completion


@dataclass
class Server:
    """A running server: where it is, and what it was asked."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


Script = Callable[[int, dict[str, Any]], Answer]


def _body(path: str, text: str, finish_reason: str) -> dict[str, Any]:
    if path.endswith("/chat/completions"):
        message = {"role": "assistant", "content": text}
        return {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "served-model",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }
    if path.endswith("/responses"):
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
        return {
            "id": "r1",
            "object": "response",
            "created_at": 1,
            "model": "served-model",
            "status": "completed",
            "output": [message],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 100,
                "output_tokens": 20,
                "total_tokens": 120,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 8},
            },
        }
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "served-model"}


def _prompt_of(request: dict[str, Any]) -> str:
    """Return the user's text of a request in any of the protocols."""
    body = request["body"]
    if "contents" in body:
        return "".join(part["text"] for content in body["contents"] for part in content["parts"])
    messages = body.get("messages") or body["input"]
    texts = [m["content"] for m in messages] if isinstance(messages, list) else [messages]
    return "".join(t if isinstance(t, str) else "".join(p.get("text", "") for p in t) for t in texts)


@contextmanager
def serve(script: Script) -> Iterator[Server]:
    """Run a server whose n-th request is answered by `script(n, request)`; ends every thread on exit."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            request = {"path": self.path.partition("?")[0], "body": json.loads(self.rfile.read(length))}
            request["prompt"] = _prompt_of(request)
            request["headers"] = {k.lower(): v for k, v in self.headers.items()}
            with lock:
                number = len(server.requests)
                server.requests.append(request)
                server.times.append(time.monotonic())
            answer = script(number, request)
            time.sleep(answer.delay_s)
            body: dict[str, Any] = _body(request["path"], answer.text, answer.finish_reason)
            if answer.status != 200:
                body = {"error": {"message": answer.error, "code": answer.status, "status": "ERROR", "type": "e"}}
            data = json.dumps(body).encode()
            try:
                self.send_response(answer.status)
                for name, value in {"content-type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = False
    server = Server(url=f"http://127.0.0.1:{http.server_address[1]}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
