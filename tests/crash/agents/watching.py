"""A reader that polls a journal as a page and the watch loop do, until SIGTERM. It says what it saw."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from journal.errors import JournalUnreadable
from journal.reader import Reader

if __name__ == "__main__":
    # No lock is taken in the handler: it runs in this thread, in the middle of whatever it does.
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    path = Path(os.environ["JOURNAL"])
    polls = busy = seen = 0
    while not stopped:
        time.sleep(0.1)
        reader = Reader(path)
        try:
            changes = reader.changes(seen)
            seen = max(seen, changes.highest_revision)
            for task in reader.tasks().items:
                reader.steps(task.task_id)
            reader.pending()
            reader.counts()
            polls += 1
        except JournalUnreadable:
            busy += 1
        told = Path(os.environ["FOLDER"], f"watching-{sys.argv[1]}")
        told.with_suffix(".new").write_text(f"{polls} {busy} {seen}")
        told.with_suffix(".new").replace(told)
