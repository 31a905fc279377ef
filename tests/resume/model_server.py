"""A loopback server that speaks OpenAI's chat completions, answers with real ideas and kernels, and counts.

It runs as its own process, so that it survives the kills of the search that talks to it. Every request and every
answer is a line of the log file: that log, not Ridgeline's database, is what the test counts.

    python model_server.py LOG PORT_FILE MAX_SECONDS [TYPE]

Kernels take exponentials in TYPE: `float` as a rule; `long double` makes them slower than PyTorch's.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

VERBS = ("block", "unroll", "prefetch", "stream", "fuse", "split", "tile", "pipeline", "hoist", "batch", "pin", "widen")
NOUNS = ("rows", "sums", "exponentials", "stores", "loads", "maxima", "registers", "lanes", "threads", "tails", "spans")
CATEGORIES = ["memory_access", "compute_and_instructions", "control_flow_and_loops", "parallelism_and_occupancy"]

KERNEL = """// variant {tag}
#include "problem.h"
#include <cmath>
constexpr long UNROLL = 4;  // tune: UNROLL = 1 | 2 | 4 | 8
extern "C" void run(const float* __restrict__ x, float* __restrict__ out, void*) {{
#pragma omp parallel for
  for (long row = 0; row < X_SHAPE_0; ++row) {{
    const float* in = x + row * X_SHAPE_1;
    float* to = out + row * X_SHAPE_1;
    float top = in[0], sum = 0;
    for (long i = 1; i < X_SHAPE_1; ++i) top = in[i] > top ? in[i] : top;
    for (long i = 0; i < X_SHAPE_1; ++i) sum += to[i] = std::exp(static_cast<{type}>(in[i] - top));
    const float scale = 1 / sum;
#pragma GCC unroll {unroll}
    for (long i = 0; i < X_SHAPE_1; ++i) to[i] *= scale;
  }}
}}
"""


class Handler(BaseHTTPRequestHandler):
    """Answers one request after a short, varying while."""

    protocol_version = "HTTP/1.1"
    log_file: Path
    type_of_exp = "float"
    lock = threading.Lock()

    def do_POST(self) -> None:
        """Log, think, answer, log again."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        digest = hashlib.sha256(body).hexdigest()
        self._log("arrived", digest)
        rng = random.Random(digest)
        time.sleep(rng.uniform(0.05, 0.4))
        payload = json.dumps(_completion(json.loads(body), rng, self.type_of_exp)).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)
            self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            self._log("abandoned", digest)
            return
        self._log("answered", digest)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the terminal quiet."""

    def _log(self, event: str, digest: str) -> None:
        line = json.dumps({"event": event, "request": digest, "time": time.time()})
        with self.lock, self.log_file.open("a") as out:
            out.write(line + "\n")


def _completion(request: dict[str, Any], rng: random.Random, type_of_exp: str) -> dict[str, Any]:
    wanted = request.get("response_format", {}).get("json_schema", {}).get("name", "")
    answer = _ideas(rng) if wanted == "IdeaList" else _kernel(rng, type_of_exp)
    message = {"role": "assistant", "content": json.dumps(answer)}
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150},
    }


def _ideas(rng: random.Random) -> dict[str, Any]:
    ideas = []
    for _ in range(8):
        verb, noun, second = rng.choice(VERBS), rng.choice(NOUNS), rng.choice(NOUNS)
        tag = "".join(rng.choices("bcdfghjklmnpqrstvwxz", k=9))
        ideas.append(
            {
                "title": f"{verb} the {noun} by {tag}",
                "mechanism": f"{tag}: {verb} {noun} together with {second} so that {tag} latency is hidden",
                "category": rng.choice(CATEGORIES),
                "predicted_gain": round(rng.uniform(1.0, 2.0), 2),
                "parent_id": None,
                "second_parent_id": None,
            }
        )
    return {"ideas": ideas}


def _kernel(rng: random.Random, type_of_exp: str) -> dict[str, Any]:
    source = KERNEL.format(tag=rng.getrandbits(60), unroll=rng.choice((2, 4, 8)), type=type_of_exp)
    return {"source": source, "notes": "a variant"}


def main() -> None:
    """Serve on a free loopback port until the time is over."""
    log_file, port_file, max_seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    Handler.log_file = log_file
    Handler.type_of_exp = sys.argv[4] if len(sys.argv) > 4 else Handler.type_of_exp
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    staged = port_file.with_suffix(".tmp")
    staged.write_text(str(server.server_address[1]))
    staged.rename(port_file)
    threading.Timer(max_seconds, server.shutdown).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
