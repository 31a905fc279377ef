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
    finish_reason: str = "stop"  # in the words of a chat completion: "stop", "length", "content_filter"
    refusal: str = ""  # the words in which the model itself refuses, in the place of a text
    input_tokens: int = 100
    output_tokens: int = 20
    cached_tokens: int = 0  # of the input
    body: bytes | None = None  # what is sent in the place of the protocol's JSON


@dataclass
class Server:
    """A running server: where it is, and what it was asked."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


Script = Callable[[int, dict[str, Any]], Answer]


GEMINI_REASONS = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
RESPONSES_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


def _body(path: str, answer: Answer) -> dict[str, Any]:
    if path.endswith("/chat/completions"):
        return _completion(answer)
    if path.endswith("/responses"):
        return _response(answer)
    return _generated(answer)


def _completion(answer: Answer) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text or None, "refusal": answer.refusal or None}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "served-model",
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason}],
        "usage": {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
            "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": 8},
        },
    }


def _response(answer: Answer) -> dict[str, Any]:
    said = {"type": "output_text", "text": answer.text, "annotations": []}
    content = [{"type": "refusal", "refusal": answer.refusal} if answer.refusal else said]
    reason = RESPONSES_REASONS.get(answer.finish_reason)
    status = "incomplete" if reason else "completed"
    return {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "served-model",
        "status": status,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [{"type": "message", "id": "m1", "role": "assistant", "status": status, "content": content}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
            "input_tokens_details": {"cached_tokens": answer.cached_tokens},
            "output_tokens_details": {"reasoning_tokens": 8},
        },
    }


def _generated(answer: Answer) -> dict[str, Any]:
    reason = "SAFETY" if answer.refusal else GEMINI_REASONS[answer.finish_reason]
    content = {"role": "model", "parts": [{"text": answer.text}] if answer.text else []}
    usage = {
        "promptTokenCount": answer.input_tokens,
        "cachedContentTokenCount": answer.cached_tokens,
        "candidatesTokenCount": answer.output_tokens - 8,
        "thoughtsTokenCount": 8,
        "totalTokenCount": answer.input_tokens + answer.output_tokens,
    }
    candidate = {"content": content, "finishReason": reason, "index": 0}
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
            body: dict[str, Any] = _body(request["path"], answer)
            if answer.status != 200:
                body = {"error": {"message": answer.error, "code": answer.status, "status": "ERROR", "type": "e"}}
            data = json.dumps(body).encode() if answer.body is None else answer.body
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
