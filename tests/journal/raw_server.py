"""A TCP server on 127.0.0.1 that does to each connection what a test says, and keeps what it received."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

Script = Callable[[socket.socket, bytes], None]


class RawServer:
    def __init__(self, script: Script, *, read: bool = True, port: int = 0) -> None:
        self.received: list[bytes] = []
        self._script = script
        self._read = read
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._run, daemon=True)]
        self._threads[0].start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            request = whole_request(connection) if self._read else b""
            self.received.append(request)
            self._script(connection, request)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join(5)


@contextlib.contextmanager
def serving(script: Script, *, read: bool = True, port: int = 0) -> Iterator[RawServer]:
    server = RawServer(script, read=read, port=port)
    try:
        yield server
    finally:
        server.close()


def whole_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        part = connection.recv(65536)
        if not part:
            break
        body += part
    return head + b"\r\n\r\n" + body


def answer(status: int, body: bytes = b"", **headers: str) -> Script:
    """A script that answers once, with the names' `_` as `-`."""

    def script(connection: socket.socket, request: bytes) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + (b"" if request.startswith(b"HEAD") else body))

    return script


def json_answer(status: int, body: bytes, **headers: str) -> Script:
    return answer(status, body, Content_Type="application/json", **headers)


def reset(connection: socket.socket) -> None:
    """Close with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
