"""A total deadline for one exchange: the library's timeouts are per read, and a drip never ends one."""

from __future__ import annotations

import socket
import threading
import time
from datetime import timedelta


class Deadline:
    """Ends an exchange when its time is up, however slowly the other side drips.

    It holds a duplicate of the socket, so that no reused descriptor is hit.
    """

    def __init__(self, timeout: timedelta) -> None:
        self._until = time.monotonic() + timeout.total_seconds()
        self._mutex = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(timeout.total_seconds(), self._expire)
        self._timer.daemon = True
        self._timer.start()

    @property
    def expired(self) -> bool:
        # By the clock: on a busy machine the timer's thread may come to it later than whoever asks.
        return time.monotonic() >= self._until

    def watch(self, connection: socket.socket) -> None:
        with self._mutex:
            self._socket = connection.dup()
            if self.expired:
                self._shut(self._socket)

    def stop(self) -> None:
        self._timer.cancel()
        with self._mutex:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    def _expire(self) -> None:
        with self._mutex:
            if self._socket is not None:
                self._shut(self._socket)

    @staticmethod
    def _shut(connection: socket.socket) -> None:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other side was faster
