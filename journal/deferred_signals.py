"""Signals that arrive while the journal is written: they wait until the write is done."""

from __future__ import annotations

# signal.getsignal makes an enum of each answer, which at every write would cost 50 µs for all signals instead of 3.
import _signal  # type: ignore[import-not-found]
import signal
import threading
from contextlib import ExitStack
from types import FrameType

_NUMBERS = tuple(int(number) for number in signal.valid_signals())
# A handler that raises each time is given up on: the write is done without being guarded from it.
_TRIES = 3


class DeferredSignals:
    """Signals that arrived in the main thread during a write. Their handlers run when the writer allows it."""

    def __init__(self) -> None:
        self._arrived: list[tuple[int, FrameType | None] | BaseException] = []
        self._handlers: ExitStack | None = None

    def put_off(self) -> None:
        """From now on note each signal that Python code handles instead of acting on it. No other thread is sent any.

        What a handler raises before its signal is noted is kept for later too: the write comes first.
        """
        for _ in range(_TRIES):
            try:
                if self._handlers is None and threading.current_thread() is threading.main_thread():
                    self._handlers = self._noting()
                return
            except BaseException as error:
                self._arrived.append(error)

    def give_back(self) -> None:
        """Let signals arrive again; noted signals stay noted."""
        handlers, self._handlers = self._handlers, None
        if handlers is not None:
            handlers.close()

    def act(self) -> None:
        """Let signals arrive again, and run the handlers of the noted ones; most of them raise."""
        try:
            self.give_back()
        finally:
            self._act_on_noted()

    def _noting(self) -> ExitStack:
        handlers = zip(_NUMBERS, map(_signal.getsignal, _NUMBERS), strict=True)
        previous = [(number, handler) for number, handler in handlers if callable(handler)]
        # The last one first, and each though another's handler raises in between: Ctrl-C is noted to the end.
        with ExitStack() as given_back:
            for number, handler in previous:
                given_back.callback(signal.signal, number, handler)
                signal.signal(number, self._note)
            return given_back.pop_all()

    def _act_on_noted(self) -> None:
        if not self._arrived:
            return
        try:
            _act_on(self._arrived.pop(0))
        finally:
            # Each one, though an earlier one raises.
            self._act_on_noted()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._arrived.append((number, frame))


def _act_on(arrived: tuple[int, FrameType | None] | BaseException) -> None:
    if isinstance(arrived, BaseException):
        raise arrived
    number, frame = arrived
    handler = signal.getsignal(number)
    if callable(handler):
        handler(number, frame)
