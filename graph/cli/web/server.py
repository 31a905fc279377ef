"""A run's page over HTTP, on this machine alone: read only, for a search under way.

Covered: other machines (it listens on 127.0.0.1), pages of other sites that reach for it under a name of their own (the
Host header has to be a name of this machine), writes (GET and HEAD alone), clients that open many connections or send no
whole request (connections.py). Not covered: other users of this machine, who can read what it serves.
"""

from __future__ import annotations

import errno
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ridgeline.checkpoints.report.page import read_template
from ridgeline.graph.cli.web.connections import Connections
from ridgeline.graph.cli.web.pages import RunPages
from ridgeline.tools.errors import InputError, RunError, one_line
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.printable import printable

logger = logger_of(__name__)

HOST = "127.0.0.1"
NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
MOST_CONNECTIONS = 64
"""Of a browser, a window takes one to six."""
LONGEST_WAIT_S = 30.0
"""For a whole request, from its connection's start or its last answer."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_HTML, _JSON = "text/html; charset=utf-8", "application/json"
_TEXT, _SCRIPT = "text/plain; charset=utf-8", "text/javascript; charset=utf-8"


class WebServer(ThreadingHTTPServer):
    """Serves one run until it is shut down."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, pages: RunPages, port: int) -> None:
        """Listen on a port of the loopback device; 0 takes a free one.

        Raises:
            RunError: the port is taken or not allowed.
        """
        self.pages = pages
        self.script = read_template("live.js").encode()
        self.connections = Connections(MOST_CONNECTIONS, LONGEST_WAIT_S)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            raise RunError(f"port {port}: {error.strerror}; choose another --port, or leave it out") from error

    def server_bind(self) -> None:
        """Bind without asking a name server for this machine's name, as HTTPServer would."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    @property
    def url(self) -> str:
        """Return the address to open."""
        return f"http://{HOST}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own."""
        self.connections.admit(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self.connections.forget(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End, at each turn of the loop, what has waited for too long."""
        self.connections.end_late()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Note a request that broke off; a browser that goes away is no error."""
        logger.debug("a request of %s broke off: %r", client_address, sys.exception())


class _Handler(BaseHTTPRequestHandler):
    server: WebServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "ridgeline", ""
    timeout = LONGEST_WAIT_S  # of one read, and of an answer that is not taken

    def handle_one_request(self) -> None:
        self.server.connections.waits(self.connection)
        super().handle_one_request()

    def parse_request(self) -> bool:
        is_request = super().parse_request()
        self.server.connections.is_served(self.connection)
        return is_request

    def do_GET(self) -> None:
        if not self._is_addressed():
            self._answer(
                HTTPStatus.MISDIRECTED_REQUEST, _TEXT, b"this server answers to 127.0.0.1 and localhost alone\n"
            )
            return
        path = self.path.partition("?")[0]
        if path == "/live.js":
            self._answer(HTTPStatus.OK, _SCRIPT, self.server.script)
        elif path in ("/", "/status"):
            self._answer_run(is_page=path == "/")
        else:
            self._answer(HTTPStatus.NOT_FOUND, _TEXT, b"there is / and /status\n")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer_run(self, *, is_page: bool) -> None:
        try:
            shown = self.server.pages.shown()
        except InputError as error:
            words = printable(one_line(error))
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, f"{words}\n".encode())
            return
        self._answer(HTTPStatus.OK, *((_HTML, shown.page) if is_page else (_JSON, shown.status)))

    def _is_addressed(self) -> bool:
        """Say whether the request names this machine: another name is one that a strange site has let point here."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1:
            return False
        host = hosts[0].strip().lower()
        name, _, port = host.rpartition(":")
        # any port: a tunnel from another machine has one of its own
        return host in NAMES or (name in NAMES and port.isdecimal())

    def _answer(self, status: HTTPStatus, kind: str, body: bytes, **further: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **_HEADERS, **further}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer in a line of text what is no request, or one with another method; what it carries is not read."""
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, _TEXT, b"read only: GET and HEAD\n", Allow="GET, HEAD")
            return
        self._answer(HTTPStatus(code), _TEXT, f"{message or HTTPStatus(code).phrase}\n".encode(errors="replace"))

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug(format, *args)
