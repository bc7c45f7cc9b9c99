"""Signals that arrive while the journal is written: they wait until the write is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType


class Interrupts:
    """What arrived in the main thread while it wrote, acted on when the writer says so."""

    def __init__(self) -> None:
        self._arrived: list[tuple[int, FrameType | None]] = []

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Note Ctrl-C and a handled SIGTERM instead of acting on them. No other thread is sent any."""
        previous = {}
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
            previous = {number: handler for number, handler in handlers.items() if callable(handler)}
        # The last one first, and each though another's handler raises in between: Ctrl-C is noted to the end.
        with ExitStack() as given_back:
            for number, handler in previous.items():
                given_back.callback(signal.signal, number, handler)
                signal.signal(number, self._note)
            yield

    def act(self) -> None:
        """Do what the signals' handlers do; most raise."""
        while self._arrived:
            number, frame = self._arrived.pop(0)
            handler = signal.getsignal(number)
            if callable(handler):
                handler(number, frame)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._arrived.append((number, frame))
