"""The application that granian serves: Django's handler behind a reader of requests that waits for no client.

The event loop waits for clients, and threads run Django. A client that sends or takes its bytes slowly, or never,
holds no thread: it cannot keep other people's pages, or /healthz, from being answered.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from journal.reader import process

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

THREADS = 16
READ_SECONDS = 10.0  # for a whole request body: forms are small, and a person's browser sends them at once
_IN_MEMORY = 2**20  # bytes of a body that are kept in memory; what is longer lies in a temporary file
_TOO_SLOW = "The request's body did not arrive within 10 seconds. Nothing was changed.\n"
_TOO_LONG = "The request's body is too long. Nothing was changed.\n"


class BodyTooLong(Exception):
    """The request's body is longer than any form of ours."""


class ClientLeft(Exception):
    """The client went away before its request was complete."""


@dataclass(slots=True)
class WholeResponse:
    """A response as a thread made it, complete."""

    status: int
    headers: list[tuple[str, str]]
    content: bytes


class Application:
    """ASGI around a WSGI application. A request is read whole before a thread sees it, and answered whole after."""

    def __init__(self, wsgi: Callable[..., Iterable[bytes]], *, read_seconds: float = READ_SECONDS) -> None:
        self._wsgi = wsgi
        self._read_seconds = read_seconds
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="web")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        with SpooledTemporaryFile(max_size=_IN_MEMORY) as body:
            try:
                async with asyncio.timeout(self._read_seconds):
                    await _read(receive, body, limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
            except TimeoutError:
                answer = _refusal(408, _TOO_SLOW)
            except BodyTooLong:
                answer = _refusal(413, _TOO_LONG)
            except ClientLeft:
                return
            else:
                loop = asyncio.get_running_loop()
                answer = await loop.run_in_executor(self._threads, self._answer, environ(scope, body))
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.content})

    def _answer(self, environ: dict[str, Any]) -> WholeResponse:
        """Run Django from the first middleware to the last closed connection in one thread."""
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
            begun.append((status, headers))

        response = self._wsgi(environ, start_response)
        try:
            content = b"".join(response)
        finally:
            if close := getattr(response, "close", None):
                close()
        status, headers = begun[-1]
        return WholeResponse(int(status.split()[0]), headers, content)


async def _read(receive: Receive, body: IO[bytes], *, limit: int) -> None:
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        size += len(message.get("body", b""))
        if size > limit:
            raise BodyTooLong
        body.write(message.get("body", b""))
        more = message.get("more_body", False)
    body.seek(0)


def _refusal(status: int, sentence: str) -> WholeResponse:
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")]
    return WholeResponse(status, headers, sentence.encode())


def environ(scope: Scope, body: IO[bytes]) -> dict[str, Any]:
    """The WSGI environment of a request that was read whole."""
    host, port = scope.get("server") or ("127.0.0.1", settings.STEPKEEPER_PORT)
    found = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"].partition(b"?")[0]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": str(host),
        "SERVER_PORT": str(port or settings.STEPKEEPER_PORT),
        "REMOTE_ADDR": (scope.get("client") or ("",))[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": body,
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        # A name with an underscore would look like the same name with a dash, which a proxy may have set.
        if b"_" not in name:
            headers.setdefault(name.decode("latin-1").upper().replace("-", "_"), []).append(value.decode("latin-1"))
    for name, values in headers.items():
        key = name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
        found[key] = ("; " if name == "COOKIE" else ",").join(values)
    body.seek(0, io.SEEK_END)
    found["CONTENT_LENGTH"] = str(body.tell())  # also of a body that came in chunks
    body.seek(0)
    return found


application = Application(get_wsgi_application())
# A journal that hangs costs a reader process, never a thread of this one.
process.read_apart()
# A person waits for this process; worker and watch have the longer patience of the settings.
settings.DATABASES["default"]["OPTIONS"]["timeout"] = settings.STEPKEEPER_WEB_PATIENCE
