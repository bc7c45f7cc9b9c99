"""The fleet as tests need it: journal files known to the dashboard, operators, an agent that holds a journal."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

from django.contrib.auth.models import User

from agents.access.roles import Role, give_role, make_groups
from agents.catalog import discovery, liveness
from agents.index.tail import read_slices
from agents.models import JournalFile
from agents.watch import Watch
from journal.models import Step
from journal.reader import Reader
from tests.journal import rows

_HOLD = """
import sys
from pathlib import Path
from sqlite3 import Connection
from journal import writer_lock
lock = writer_lock.Lock(Path(sys.argv[1]), role=sys.argv[2])
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def watched(folder: Path, settings: object, *, pattern: str = "*.db") -> None:
    """Point STEPKEEPER_JOURNALS at a folder."""
    settings.STEPKEEPER_JOURNALS = (str(folder / pattern),)  # type: ignore[attr-defined]


def swept() -> None:
    """One turn of what keeps the index, as watch does it."""
    watch = Watch()
    watch.find()
    watch.tend()
    watch.sweep()


def journal_file(path: Path) -> JournalFile:
    """The row of a journal that was found."""
    return JournalFile.objects.get(path=str(path))


def reread(row: JournalFile) -> JournalFile:
    """Read everything new in one journal, whatever its signature says."""
    row.refresh_from_db()
    discovery.record_state(row, discovery.inspect_path(row.path))
    liveness.record_writer(row)
    for _ in read_slices(row):
        pass
    liveness.derive_states(row)
    row.refresh_from_db()
    return row


def the_step(path: Path, task_id: str, index: int = 0) -> Step:
    """A step that is surely there."""
    step = Reader(path).step(task_id, index)
    assert step is not None
    return step


def a_person(name: str = "ada", role: Role | None = "operator") -> User:
    """Somebody with a role."""
    make_groups()
    user, _ = User.objects.get_or_create(username=name)
    if role is not None:
        give_role(user, role)
    return user


@contextlib.contextmanager
def held(path: Path, *, role: str = "agent") -> Iterator[int]:
    """A real process that is the journal's writer; yields its pid."""
    argv = [sys.executable, "-c", _HOLD, str(path), role]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process.pid
        finally:
            process.kill()


@contextlib.contextmanager
def writing(path: Path, *, agent: str = "triage") -> Iterator[Connection]:
    """A writing connection to a journal that is made when missing."""
    if not path.exists():
        rows.a_journal(path, agent=agent)
    with contextlib.closing(rows.writer(path)) as connection:
        yield connection


def a_model_call(connection: Connection, task_id: str = "t", index: int = 0, **cells: object) -> None:
    """One exact gpt-5 response: 1,000 in (800 cached), 500 out (300 reasoning), which costs $0.00535."""
    row: dict[str, object] = {
        "task_id": task_id,
        "step_index": index,
        "call": 0,
        "boot": 1,
        "started_at": rows.WHEN,
        "ended_at": rows.WHEN,
        "state": "exact",
        "model": "gpt-5",
        "in_uncached": 200,
        "in_cache_read": 800,
        "out_visible": 200,
        "out_reasoning": 300,
        "revision": rows.BOOT + 4,
    }
    rows.insert(connection, "agent_model_call", **{**row, **cells})


def a_run(connection: Connection, task_id: str = "t", run: int = 0, **cells: object) -> None:
    """One opening of a task that was served nothing."""
    row: dict[str, object] = {
        "task_id": task_id,
        "run": run,
        "boot": 1,
        "started_at": rows.WHEN,
        "served_through": -1,
        "revision": rows.BOOT + 5,
    }
    rows.insert(connection, "agent_task_run", **{**row, **cells})


__all__ = [
    "a_model_call",
    "a_person",
    "a_run",
    "held",
    "journal_file",
    "reread",
    "rows",
    "swept",
    "the_step",
    "watched",
    "writing",
]


def many_tasks(path: Path, *, tasks: int, pending: int) -> None:
    """A journal of many tasks of one step each; the steps of the first `pending` of them are held."""
    with writing(path) as connection:
        rows.a_boot(connection)
        rows.a_task(connection, "t0", status="waiting")
        rows.a_step(connection, "t0", 0, status="pending", output_json=None, hold_reason="no_key_no_status")
        connection.execute("BEGIN")
        for table, done in (
            ("agent_task", {"status": "completed"}),
            ("agent_step_journal", {"status": "committed", "output_json": "1", "hold_reason": None}),
        ):
            cursor = connection.execute(f"SELECT * FROM {table}")
            first = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
            others = (
                first | {"task_id": f"t{n}", "revision": rows.BOOT + 10 + 2 * n} | (done if n >= pending else {})
                for n in range(1, tasks)
            )
            places = ", ".join(f":{name}" for name in first)
            connection.executemany(f"INSERT INTO {table} VALUES ({places})", others)
        connection.execute("COMMIT")
