"""Playwright's event loop, kept out of the tests that drive no browser.

Its sync interface leaves a loop marked as running in the thread; Django then takes other connections, and
`asyncio.run` refuses to start. So the mark is put back for browser tests only.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

_kept: list[asyncio.AbstractEventLoop | None] = [None]


@contextlib.contextmanager
def browsers_loop() -> Iterator[None]:
    """Within, the browser's loop is the running one; around it, there is none."""
    asyncio._set_running_loop(_kept[0])
    try:
        yield
    finally:
        _kept[0] = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
