"""A door before a provider: open it forwards; otherwise it keeps a request from arriving at one exact point."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from typing import Self

_TICK = 0.02


class Gate:
    """A TCP port on 127.0.0.1 before another one.

    `open` forwards. `stall`: a connection cannot even be made (a full backlog), so no byte leaves its sender.
    `swallow`: a request is taken whole, kept in `swallowed`, and never passed on or answered. `refuse`: the port is
    closed.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self.swallowed: list[bytes] = []
        self._mode = "open"
        self._parked = threading.Event()
        self._fillers: list[socket.socket] = []
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = self._listen(0)
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._mode = "closed"
        self._thread.join()
        self._drop()
        for thread in self._threads:
            thread.join()

    def open(self) -> None:
        """Forward every connection from now on."""
        self._reset("open")

    def swallow(self) -> None:
        """Take requests and do nothing with them."""
        self._reset("swallow")

    def refuse(self) -> None:
        """Close the port."""
        self._park("refuse")
        self._drop()

    def stall(self) -> None:
        """Fill the port's backlog: the kernel answers no further connection, and none is refused."""
        self._reset("stall")
        assert self._parked.wait(5)
        assert self._listener is not None
        self._listener.listen(0)
        while True:
            filler = socket.socket()
            self._fillers.append(filler)
            filler.settimeout(0.2)
            try:
                filler.connect(("127.0.0.1", self.port))
            except TimeoutError:
                return

    def _reset(self, mode: str) -> None:
        if self._mode == "stall" and mode == "open" and self._listener is not None:
            # The same listener: whoever waits for it is let in, not refused.
            self._close(self._fillers)
            self._listener.listen(64)
            self._mode = mode
            return
        self._park("refuse")
        self._drop()
        self._listener = self._listen(self.port)
        self._parked.clear()
        self._mode = mode

    def _park(self, mode: str) -> None:
        self._parked.clear()
        self._mode = mode
        assert self._parked.wait(5)

    def _drop(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._close(self._fillers)
        self._close(self._connections)

    def _close(self, sockets: list[socket.socket]) -> None:
        while sockets:
            one = sockets.pop()
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        listener.settimeout(_TICK)
        return listener

    def _accept(self) -> None:
        while self._mode != "closed":
            if self._mode in ("stall", "refuse") or self._listener is None:
                self._parked.set()
                threading.Event().wait(_TICK)
                continue
            try:
                connection, _ = self._listener.accept()
            except OSError:
                continue
            connection.settimeout(None)
            self._connections.append(connection)
            work = self._keep if self._mode == "swallow" else self._forward
            thread = threading.Thread(target=work, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _keep(self, connection: socket.socket) -> None:
        data = b""
        with contextlib.suppress(OSError):
            while part := connection.recv(65536):
                data += part
                if _is_whole(data):
                    self.swallowed.append(data)
                    data = b""

    def _forward(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as target:
            back = threading.Thread(target=_pump, args=(target, connection), daemon=True)
            back.start()
            _pump(connection, target)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            sink.sendall(part)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _is_whole(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    return bool(end) and len(body) >= (int(length.group(1)) if length else 0)
