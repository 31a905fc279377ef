"""The HTTP transport of the clients that are made here: keeps a paid answer as it arrives, limits it, and hides the key.

An answer is on disk before the provider's client reads it. One that an earlier session kept is given to the client in
the place of a request, so that whatever the client makes of an answer, a resumed search makes the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import httpx

from ridgeline.graph.models.call_in_hand import ATTEMPT, IN_HAND, Attempt, HeldBack
from ridgeline.graph.models.failures import ModelUnavailable, ReplyTooLong
from ridgeline.graph.models.hidden_keys import HIDDEN, long_enough
from ridgeline.graph.models.stated_usage import without_bad_counts
from ridgeline.tools.records.printable import printable

ESCAPED = 6
"""Bytes of JSON that one character may take, as in \\u00e9."""
OVERHEAD_BYTES = 1 << 20
"""Room for what is not the reply's text: usage, safety ratings, summaries and signatures of thought."""
PACKED = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""zlib's `wbits` of the encodings that are unpacked although none is asked for."""


class KeepingTransport(httpx.AsyncBaseTransport, httpx.BaseTransport):
    """Sends a request through a client of its own, which honours proxies and certificates as httpx does.

    It is a BaseTransport only because Google's client makes a synchronous client of the same options, and never uses it.
    """

    def __init__(self, *, secrets: Sequence[str], max_reply_chars: int) -> None:
        """Hide `secrets` in what a server answers; refuse answers that cannot be of `max_reply_chars`."""
        # A client that keeps no connection open belongs to no event loop; a call takes seconds, a new connection nothing.
        self._client = httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0), timeout=None)  # noqa: S113  # each request brings its own
        self._secrets = [secret.encode() for secret in long_enough(secrets)]
        self._max_reply_chars = max_reply_chars

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return a request's answer, whole, or the one that is kept already.

        Raises:
            HeldBack: the request is for a batch.
            ModelUnavailable: the answer is packed in a way that is not unpacked here, or ReplyTooLong.
        """
        call, attempt = IN_HAND.get(), ATTEMPT.get() or Attempt()
        if call is not None and (kept := call.take_kept()) is not None:
            given = without_bad_counts(kept)
            attempt.has_answer = attempt.is_kept = True
            return httpx.Response(200, headers={"content-type": "application/json"}, content=given, request=request)
        if call is not None and call.hold is not None:
            call.hold(request.url.path, await request.aread())
            raise HeldBack
        request.headers["accept-encoding"] = "identity"  # a packed answer could be of any size
        response = await self._client.send(request, stream=True)
        try:
            body = self._hidden(await self._read(response))
        except ModelUnavailable as error:
            error.is_answered = response.is_success
            raise
        finally:
            await response.aclose()
        if call is not None and response.is_success:
            await call.keep(body)
        given = without_bad_counts(body)
        attempt.has_answer = response.is_success  # last: what raises from here on is the client, and nothing of ours
        return httpx.Response(response.status_code, headers=_of_plain_body(response), content=given, request=request)

    async def _read(self, response: httpx.Response) -> bytes:
        most = ESCAPED * self._max_reply_chars + OVERHEAD_BYTES
        unpack = _unpacker(response)
        pieces: list[bytes] = []
        read, arrived = 0, 0
        async for raw in response.aiter_raw():
            piece = _unpacked(unpack, raw, most + 1 - read) if unpack else raw
            read, arrived = read + len(piece), arrived + len(raw)
            if max(read, arrived) > most:
                raise ReplyTooLong(self._max_reply_chars, received_chars=read)
            pieces.append(piece)
        return b"".join(pieces)

    def _hidden(self, body: bytes) -> bytes:
        for secret in self._secrets:
            body = body.replace(secret, HIDDEN.encode())
        return body

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()


def _unpacker(response: httpx.Response) -> zlib._Decompress | None:
    """Return what unpacks an answer's body; None of a body that comes as it is.

    Raises:
        ModelUnavailable: it is packed more than once, or in an unknown way.
    """
    stated = [name.strip().lower() for name in response.headers.get("content-encoding", "").split(",")]
    encodings = [name for name in stated if name not in ("", "identity")]
    if not encodings:
        return None
    if len(encodings) > 1 or encodings[0] not in PACKED:
        shown = printable(", ".join(encodings)[:80])
        raise ModelUnavailable(f"an answer was refused: it is packed as {shown!r}, and none was asked to be packed")
    return zlib.decompressobj(PACKED[encodings[0]])


def _unpacked(unpack: zlib._Decompress, raw: bytes, most: int) -> bytes:
    """Return what a piece of a body holds, `most` bytes at most."""
    try:
        return unpack.decompress(raw, most)
    except zlib.error as error:
        raise ModelUnavailable(f"an answer was refused: its packed body is damaged ({error})") from None


def _of_plain_body(response: httpx.Response) -> list[tuple[str, str]]:
    """Return an answer's headers without those of a body in transfer: this body is decoded and whole."""
    gone = {"content-encoding", "content-length", "transfer-encoding"}
    return [(name, value) for name, value in response.headers.multi_items() if name.lower() not in gone]
