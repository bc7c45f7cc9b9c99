"""The record of how an agent's process ended, written by the process that saw it."""

from __future__ import annotations

from pathlib import Path

from journal.store.sql import boots
from journal.store.writer import Store
from journal.writer_lock import WAIT_SECONDS


def close_ended_boot(path: Path, *, pid: int, ended: str, wait: float = WAIT_SECONDS) -> bool:
    """Record how the agent process `pid` ended, as role `supervisor`; False where no open boot row names it.

    Raises JournalBusy when another writer holds the journal: whoever that is closes the row.
    """
    if not path.exists():
        return False
    store = Store(path, agent="", role="supervisor", wait=wait, deaths={pid: ended})
    try:
        if store.read(lambda tx: boots.find_open_agent_boot(tx, pid)) is None:
            return False
        store.write(lambda tx: None, sync=False)
        return True
    finally:
        store.close()
