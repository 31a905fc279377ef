"""A loopback server that speaks the batch interfaces of OpenAI (Files and Batches) and of Gemini (batchGenerateContent)."""

from __future__ import annotations

import email
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.graph.loopback import Answer, _body, _prompt_of

Script = Callable[[int, dict[str, Any]], Answer]
GEMINI_STATES = {
    "in_progress": "BATCH_STATE_RUNNING",
    "completed": "BATCH_STATE_SUCCEEDED",
    "expired": "BATCH_STATE_EXPIRED",
    "cancelled": "BATCH_STATE_CANCELLED",
    "failed": "BATCH_STATE_FAILED",
}


class LostAnswer(Exception):
    """Raised by `on_created`: the connection closes without an answer."""


@dataclass
class Held:
    """One batch at the provider."""

    id: str
    tag: str
    lines: list[dict[str, Any]]  # call's id, path and body of each request
    status: str = "in_progress"
    looks: int = 0
    error: dict[str, Any] = field(default_factory=dict)


@dataclass
class BatchServer:
    """A running server: what it holds, and how it behaves."""

    url: str = ""
    batches: list[Held] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)  # method and path of each exchange
    looks_needed: int = 1  # before a batch is over
    fates: dict[int, str] = field(default_factory=dict)  # how the n-th batch ends; else completed
    refuses: Callable[[str, str], Answer | None] = lambda method, path: None
    shows: Callable[[dict[str, Any]], dict[str, Any]] = lambda shown: shown  # a batch, in place of what it is
    fills: Callable[[bytes], bytes] = lambda content: content  # a file of answers or errors, likewise
    on_created: Callable[[Held], None] = lambda batch: None  # before its id is answered

    @property
    def asked(self) -> list[str]:
        """Return the call of each request that was asked in any batch."""
        return [line["call_id"] for batch in self.batches for line in batch.lines]


class Provider:
    """The answers of a server to each exchange."""

    def __init__(self, server: BatchServer, script: Script) -> None:
        self.server, self.script = server, script
        self.lock = threading.Lock()

    def handle(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, bytes]:
        with self.lock:
            self.server.seen.append((method, path))
        refused = self.server.refuses(method, path)
        if refused is not None:
            time.sleep(refused.delay_s)
            error = {"message": refused.error, "code": refused.status, "status": "ERROR", "type": "e"}
            return refused.status, json.dumps({"error": error}).encode()
        if method == "POST" and path.endswith("/files"):
            return self._upload(headers, body)
        if method == "POST" and path.endswith("/batches"):
            return self._created_of_file(json.loads(body))
        if method == "POST" and path.endswith(":batchGenerateContent"):
            return self._created_inline(path, json.loads(body))
        if path.endswith("/content"):
            return 200, self.server.fills(self.server.files[path.split("/")[-2]])
        is_gemini = path.startswith("/v1beta/")
        if path.endswith("/batches"):
            shown = [self._shown(batch, is_gemini=is_gemini) for batch in reversed(self.server.batches)]
            return _ok({"operations": shown} if is_gemini else {"object": "list", "data": shown, "has_more": False})
        return self._looked(path.rsplit("/", maxsplit=1)[-1], is_gemini=is_gemini)

    def _upload(self, headers: Any, body: bytes) -> tuple[int, bytes]:
        parts = email.message_from_bytes(b"content-type: " + headers["content-type"].encode() + b"\n\n" + body)
        values = {p.get_param("name", header="content-disposition"): p.get_payload(decode=True) for p in parts.walk()}
        assert values["purpose"] == b"batch"
        file_id = f"file-{len(self.server.files)}"
        self.server.files[file_id] = values["file"]
        shown = {"id": file_id, "object": "file", "bytes": 1, "created_at": 1, "filename": "f", "purpose": "batch"}
        return _ok(shown | {"status": "processed"})

    def _created_of_file(self, body: dict[str, Any]) -> tuple[int, bytes]:
        assert body["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.server.files[body["input_file_id"]].splitlines()]
        assert {line["url"] for line in lines} == {body["endpoint"]}
        assert not any("stream" in line["body"] for line in lines)
        asked = [{"call_id": line["custom_id"], "path": line["url"], "body": line["body"]} for line in lines]
        return _ok(self._shown(self._hold(body["metadata"]["ridgeline"], asked), is_gemini=False))

    def _created_inline(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        model, batch = path.rsplit("/", maxsplit=1)[-1].partition(":")[0], body["batch"]
        asked = [
            {"call_id": each["metadata"]["key"], "path": f"/{model}:generateContent", "body": each["request"]}
            for each in batch["inputConfig"]["requests"]["requests"]
        ]
        held = self._hold(batch["displayName"].removeprefix("ridgeline-"), asked)
        return _ok(self._shown(held, is_gemini=True))

    def _hold(self, tag: str, lines: list[dict[str, Any]]) -> Held:
        with self.lock:
            held = Held(id=f"batch{len(self.server.batches)}", tag=tag, lines=lines)
            self.server.batches.append(held)
        self.server.on_created(held)
        return held

    def _looked(self, batch_id: str, *, is_gemini: bool) -> tuple[int, bytes]:
        held = next((batch for batch in self.server.batches if batch.id == batch_id), None)
        if held is None:
            return 404, b'{"error": {"message": "no such batch", "code": 404, "status": "NOT_FOUND"}}'
        held.looks += 1
        if held.looks >= self.server.looks_needed:
            held.status = self.server.fates.get(self.server.batches.index(held), "completed")
        return _ok(self._shown(held, is_gemini=is_gemini))

    def _shown(self, held: Held, *, is_gemini: bool) -> dict[str, Any]:
        if is_gemini:
            return self.server.shows(self._operation(held))
        shown: dict[str, Any] = {
            "id": held.id,
            "object": "batch",
            "status": held.status,
            "metadata": {"ridgeline": held.tag},
        }
        shown |= {"created_at": int(time.time()), "completion_window": "24h", "endpoint": "e", "input_file_id": "f"}
        if held.status == "failed":
            shown["errors"] = {"object": "list", "data": [held.error or {"code": "invalid", "message": "bad line"}]}
        if held.status in ("completed", "expired"):
            good, bad = self._files(held)
            shown |= {"output_file_id": good, "error_file_id": bad}
        return self.server.shows(shown)

    def _answers(self, held: Held) -> list[tuple[dict[str, Any], Answer]]:
        numbers = range(len(held.lines))
        return [
            (line, self.script(n, line | {"prompt": _prompt_of(line)}))
            for n, line in zip(numbers, held.lines, strict=True)
        ]

    def _files(self, held: Held) -> tuple[str | None, str | None]:
        good, bad = [], []
        for line, answer in self._answers(held):
            shown: dict[str, Any] = {"id": "x", "custom_id": line["call_id"], "error": None}
            if answer.status == 200:
                body = _body(line["path"], answer)
                good.append(shown | {"response": {"status_code": 200, "request_id": "q", "body": body}})
            elif answer.status == 408:
                bad.append(shown | {"response": None, "error": {"code": "batch_expired", "message": "not in time"}})
            else:
                response = {"status_code": answer.status, "body": {"error": {"message": answer.error}}}
                bad.append(shown | {"response": response})
        ids: list[str | None] = []
        for name, lines in (("good", good), ("bad", bad)):
            text = "".join(json.dumps(line) + "\n" for line in reversed(lines)).encode()
            self.server.files[f"{held.id}-{name}"] = text
            ids.append(f"{held.id}-{name}" if lines else None)
        return ids[0], ids[1]

    def _operation(self, held: Held) -> dict[str, Any]:
        metadata: dict[str, Any] = {"displayName": f"ridgeline-{held.tag}", "state": GEMINI_STATES[held.status]}
        metadata |= {"model": "models/m", "createTime": "2026-01-01T00:00:00Z"}
        if held.status == "completed":
            inlined = []
            for line, answer in self._answers(held):
                good = {"response": _body(line["path"], answer)}
                inlined.append(good if answer.status == 200 else {"error": {"code": 8, "message": answer.error}})
            metadata["output"] = {"inlinedResponses": {"inlinedResponses": inlined}}
        return {"name": f"batches/{held.id}", "metadata": metadata, "done": held.status != "in_progress"}


def _ok(value: Any) -> tuple[int, bytes]:
    return 200, json.dumps(value).encode()


@contextmanager
def serve_batches(script: Script) -> Iterator[BatchServer]:
    """Run a server that answers the n-th request of a batch by `script(n, request)`; ends every thread on exit."""
    server = BatchServer()
    provider = Provider(server, script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._answer("POST", self.rfile.read(int(self.headers.get("content-length", 0))))

        def do_GET(self) -> None:
            self._answer("GET", b"")

        def _answer(self, method: str, body: bytes) -> None:
            try:
                status, data = provider.handle(method, self.path.partition("?")[0], self.headers, body)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError, LostAnswer):
                self.close_connection = True  # the client was killed, or is to learn nothing

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = False
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
