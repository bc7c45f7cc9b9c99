"""Child processes that read a journal as somebody else, or write one until they are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]

# Modules are imported while root still may read them.
_READ_AS_NOBODY = """
import json, os, sqlite3, sys
from journal.reader import inspect
path = os.fsencode(sys.argv[1])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
state = inspect(os.fsdecode(path))
print(json.dumps([state.kind, state.sentence, state.hint]))
"""

_WRITE_AND_WAIT = """
import sys, time
from pathlib import Path
from tests.journal.rows import a_journal, a_step, a_task, writer
path = Path(sys.argv[1])
a_journal(path)
connection = writer(path)
connection.execute("PRAGMA wal_autocheckpoint = 0")
a_task(connection)
for index in range(50):
    a_step(connection, index=index)
print("ready", flush=True)
time.sleep(600)
"""


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, as pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="stepkeeper-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def as_nobody(path: Path) -> tuple[str, str, str]:
    """Kind, sentence and hint of `inspect` in a process of uid 65534."""
    done = subprocess.run(
        [sys.executable, "-c", _READ_AS_NOBODY, path], cwd=_ROOT, capture_output=True, text=True, check=True
    )
    kind, sentence, hint = json.loads(done.stdout)
    return kind, sentence, hint


def killed_writer(path: Path) -> None:
    """A journal of 50 steps whose writer died by SIGKILL with all of them in its log."""
    with subprocess.Popen([sys.executable, "-c", _WRITE_AND_WAIT, path], cwd=_ROOT, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
