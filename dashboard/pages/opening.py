"""Opening one journal for a page: the reader, who writes it now, and which boot is live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agents.catalog import discovery
from agents.models import JournalFile
from journal import clock, writer_lock
from journal.models import Boot, Writer
from journal.reader import Reader, signature


@dataclass(frozen=True, slots=True)
class Opened:
    """A journal under a reader. `live` is the boot of the agent that holds the lock now, if one does.

    `signature` is the file's from before anything of it was read: what is written later is another one's.
    """

    file: JournalFile
    reader: Reader
    boots: tuple[Boot, ...]
    writer: Writer | None
    live: int | None
    now: datetime
    signature: tuple[object, ...] = ()

    @property
    def name(self) -> str:
        return self.file.agent or self.file.path.rsplit("/", 1)[-1]


def open_journal(file: JournalFile) -> Opened:
    """Read who writes the journal. Raises JournalUnreadable for a file that is no readable journal."""
    before = signature(file.path)
    reader = discovery.reader_for(file)
    boots = tuple(reader.boots())
    writer = writer_lock.find_holder(Path(file.path))
    return Opened(file, reader, boots, writer, live_boot(boots, writer), clock.wall(), before)


def live_boot(boots: Sequence[Boot], writer: Writer | None) -> int | None:
    """The boot that runs now: the newest one, while its own process holds the lock and its row is open."""
    if writer is None or not boots:
        return None
    newest = max(boots, key=lambda boot: boot.boot)
    return newest.boot if newest.ended is None and newest.pid == writer.pid else None
