"""The server over streamable HTTP: on loopback, or with a token on an address that others reach."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from ridgeline.graph.mcp.config import ServerConfig
from ridgeline.graph.mcp.messages import MOST_BYTES, refusal_line
from ridgeline.graph.mcp.server import RidgelineServer
from ridgeline.tools.errors import InputError

PATH = "/mcp"
LEAST_TOKEN = 16
"""Characters of a token: one that can be guessed is none."""
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_LONGEST_END_S = 3
"""For streams that clients keep open when the server ends; work of theirs is given up after it."""
_LONGEST_BODY_S = 60
"""For a message to come whole."""

_Scope = dict[str, Any]
_Receive = Callable[[], Awaitable[dict[str, Any]]]
_Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[_Scope, _Receive, _Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address to serve at, and for whom."""

    host: str = "127.0.0.1"
    port: int = 8377  # 0: a free one
    token: str = ""
    names: Sequence[str] = ()  # further names by which clients reach the host

    def __post_init__(self) -> None:
        """Check that nobody else could reach the server without a token.

        Raises:
            InputError: one line that says what is missing.
        """
        if self.token and (len(self.token) < LEAST_TOKEN or not self.token.isascii() or not self.token.isprintable()):
            raise InputError(f"mcp: the token needs {LEAST_TOKEN} printable ASCII characters or more")
        if not self.is_loopback and not self.token:
            raise InputError(
                f"mcp: --host {self.host} is reached by others, who could run code as you; put a token into "
                "RIDGELINE_MCP_TOKEN or --token-file, or leave --host out"
            )
        for name in self.names:
            if not _NAME.fullmatch(name) and not _is_ip(name):
                raise InputError(
                    f"mcp: --allow-host {name}: give a name or an address alone, without a scheme or a port"
                )
        if self.is_wildcard and not self.names:
            raise InputError(
                f"mcp: --host {self.host} has no name of its own; say by which one clients reach it: --allow-host NAME"
            )

    @property
    def is_loopback(self) -> bool:
        """Say whether this machine alone reaches the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:  # a name, which may mean any address
            return False

    @property
    def is_wildcard(self) -> bool:
        """Say whether it means every address of the machine."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def security(self) -> TransportSecuritySettings:
        """Return which hosts and origins a request may name: a page in a browser reaches the server under no other."""
        own = [] if self.is_wildcard else [self.host]
        names = [_in_url(name) for name in dict.fromkeys(["127.0.0.1", "localhost", "::1", *own, *self.names])]
        return TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=[each for name in names for each in (name, f"{name}:*")],
            allowed_origins=[
                origin
                for name in names
                for scheme in ("http", "https")  # a proxy before the server may speak TLS
                for origin in (f"{scheme}://{name}", f"{scheme}://{name}:*")
            ],
        )

    def url(self, port: int) -> str:
        """Return the URL for a client."""
        return f"http://{_in_url(self.names[0] if self.is_wildcard else self.host)}:{port}{PATH}"


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return False
    return True


def _in_url(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name


def serve_http(config: ServerConfig, address: Address, *, tell: Callable[[str], None]) -> int:
    """Serve until SIGINT, SIGTERM or SIGHUP comes; `tell` gets the URL once the port is bound. Searches go on afterwards.

    Raises:
        InputError: the address cannot be bound.
    """
    with _bound(address) as listening:
        tell(address.url(listening.getsockname()[1]))
        app = app_of(config, address)
        settings = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=_LONGEST_END_S
        )
        server = uvicorn.Server(settings)
        hung_up: list[int] = []

        def end(number: int, _frame: object) -> None:
            hung_up.append(number)
            server.should_exit = True

        signal.signal(signal.SIGHUP, end)  # uvicorn looks after the two others
        asyncio.run(server.serve(sockets=[listening]))
    return 128 + hung_up[0] if hung_up else 0


def app_of(config: ServerConfig, address: Address) -> App:
    """Return the ASGI application: the server behind its token, and behind the gate for messages."""
    served: Any = RidgelineServer(config, address.security()).streamable_http_app()
    app = BodyGate(served)
    return TokenGate(app, address.token) if address.token else app


class TokenGate:
    """Lets through requests with the header `Authorization: Bearer TOKEN`; compared in constant time."""

    def __init__(self, app: App, token: str) -> None:
        """Take the application behind the gate, and its token."""
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answer 401 to a request without the token."""
        if scope["type"] == "lifespan" or self._is_allowed(scope):
            await self._app(scope, receive, send)
            return
        words = "this server needs its token: Authorization: Bearer TOKEN"
        await _answer(send, 401, words, (b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain"))

    def _is_allowed(self, scope: _Scope) -> bool:
        stated = [value for name, value in scope.get("headers", ()) if name.lower() == b"authorization"]
        scheme, _, token = (stated[0] if len(stated) == 1 else b"").partition(b" ")
        is_same = hmac.compare_digest(token.strip(), self._token)
        return is_same and scheme.lower() == b"bearer" and scope["type"] == "http"


class BodyGate:
    """Lets through messages of JSON-RPC; anything else that is posted gets one line and never reaches the SDK."""

    def __init__(self, app: App) -> None:
        """Take the application behind the gate."""
        self._app = app

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answer 400 to what is no message, 413 to one that is too large, 408 to one that does not come."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(_LONGEST_BODY_S):
                body = await _body(receive)
        except TimeoutError:
            await _answer(send, 408, f"the message did not come whole within {_LONGEST_BODY_S} s", _TEXT, _CLOSE)
            return
        if body is None:
            await _answer(send, 413, f"a message has {MOST_BYTES >> 20} MiB at most", _TEXT)
            return
        refusal = refusal_line(body)
        if refusal is not None:
            await _answer(send, 400, refusal, (b"content-type", b"application/json"))
            return
        await self._app(scope, _again(body, receive), send)


_TEXT, _CLOSE = (b"content-type", b"text/plain"), (b"connection", b"close")


async def _body(receive: _Receive) -> bytes | None:
    """Return what a request carries, as far as its client sent it; None if that is too much.

    Too much is read to its end all the same and kept nowhere: a client that is still sending would not see the answer.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        part = event.get("body", b"")
        size += len(part)
        if size <= MOST_BYTES:
            parts.append(part)
        else:
            parts.clear()
        if not event.get("more_body"):  # also of a client that went away
            return b"".join(parts) if size <= MOST_BYTES else None


def _again(body: bytes, receive: _Receive) -> _Receive:
    """Return a `receive` that gives the body that was read, then what comes after it."""
    unread = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> dict[str, Any]:
        return unread.pop() if unread else await receive()

    return received


async def _answer(send: _Send, status: int, line: str, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{line}\n".encode()})


def _bound(address: Address) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that no host can have, as a..b
        words = error.strerror if isinstance(error, OSError) else "is no name of a host"
        raise InputError(f"mcp: --host {address.host}: {words}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise InputError(f"mcp: {address.host} port {address.port}: {error.strerror}; name another --port") from None
    return listening
