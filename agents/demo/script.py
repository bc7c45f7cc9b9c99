"""The faults of a demo server: a queue of them, and requests that are held until they are released."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Fault:
    """One deviation from the normal answer; used up by the first request it fits.

    `on` names the route ("effect" or "status"), `match` a text the raw request must contain.
    Holds end by `Script.release()`; `delay` is in seconds and comes after applying.
    """

    on: str = "effect"
    match: str = ""
    delay: float = 0.0
    drop_before_apply: bool = False
    drop_after_apply: bool = False
    status_without_apply: int | None = None
    status_after_apply: int | None = None
    hold_before_apply: bool = False
    hold_after_apply: bool = False
    retry_after: str | None = None

    @classmethod
    def from_dict(cls, table: dict[str, object]) -> Fault:
        """The fault a control message describes. Raises ValueError naming an unknown field."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(table) - known)
        if unknown:
            raise ValueError(f"Fault {', '.join(unknown)}: unknown. Known are {', '.join(sorted(known))}.")
        return cls(**table)  # type: ignore[arg-type]


NO_FAULT = Fault()


class Script:
    """Faults in the order they are used up; safe from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._faults: deque[Fault] = deque()
        self._held = 0
        self._releases = 0
        self._closed = False

    def next(self, *faults: Fault) -> None:
        """Queue faults behind those already waiting."""
        with self._changed:
            self._faults.extend(faults)

    def take(self, on: str, raw: bytes) -> Fault:
        """The first queued fault that fits this request, or none."""
        with self._changed:
            for fault in self._faults:
                if fault.on == on and fault.match.encode() in raw:
                    self._faults.remove(fault)
                    return fault
        return NO_FAULT

    def hold(self) -> None:
        """Keep the calling request until `release` or `close`."""
        with self._changed:
            before = self._releases
            self._held += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._releases != before)

    def release(self) -> None:
        """Let every held request go on."""
        with self._changed:
            self._releases += 1
            # Counted out here, not when they wake: the next `wait_held` must not see those let go.
            self._held = 0
            self._changed.notify_all()

    def close(self) -> None:
        """Let every held request go on, and hold none any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait_held(self, timeout: float = 20.0) -> bool:
        """Wait until a request is held; False when none was within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._held > 0, timeout)

    @property
    def held(self) -> int:
        """The number of requests that are held now."""
        with self._changed:
            return self._held
