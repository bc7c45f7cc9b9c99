"""The bytes of a demo server: one request per connection, and every byte is logged before it is read."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.demo.server import DemoServer


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON answer."""

    status: int
    body: Mapping[str, object]
    headers: Mapping[str, str] = field(default_factory=dict)


class Listener(ThreadingHTTPServer):
    """Accepts connections, one thread each; knows which are still being answered."""

    daemon_threads = True
    # Requests are joined by `finish_requests`, once none of them is held any more.
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], demo: DemoServer) -> None:
        self.demo = demo
        self._requests: list[threading.Thread] = []
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # Without HTTPServer's look-up of the host's name, which may ask a name server.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def process_request(self, request: object, client_address: object) -> None:
        self._requests = [thread for thread in self._requests if thread.is_alive()]
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._requests.append(thread)
        thread.start()

    def finish_requests(self) -> None:
        for thread in self._requests:
            thread.join(2.0)

    def handle_error(self, request: object, client_address: object) -> None:
        # The demo kills callers during a request, so a lost connection is no fault of the server.
        pass


class _Handler(BaseHTTPRequestHandler):
    server: Listener
    protocol_version = "HTTP/1.1"
    timeout = 10
    wbufsize = -1  # head and body leave in one segment

    def setup(self) -> None:
        super().setup()
        self.tap = _Tap(self.rfile)
        self.rfile = self.tap  # type: ignore[assignment]

    def do_GET(self) -> None:
        demo = self.server.demo
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        secret = demo.secret.encode()
        received = demo.ledger.receive(
            self.command,
            self.path.replace(demo.secret, "<secret>"),
            key=self.headers.get("Idempotency-Key"),
            raw=bytes(self.tap.seen).replace(secret, b"<secret>"),
            body=body,
        )
        known = demo.secret in self.path or self.headers.get("Authorization") == f"Bearer {demo.secret}"
        if known or not demo.guarded:
            answer = demo.answer(received)
        else:
            answer = Answer(401, {"error": "the secret is missing or wrong"})
        self.close_connection = True
        if answer is not None:
            self._write(answer)

    do_POST = do_GET

    def _write(self, answer: Answer) -> None:
        content = json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Tap:
    """Reads from a socket's file and keeps a copy of every byte."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self.seen = bytearray()

    def readline(self, limit: int = -1) -> bytes:
        data = self._file.readline(limit)
        self.seen += data
        return data

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.seen += data
        return data

    def close(self) -> None:
        self._file.close()
