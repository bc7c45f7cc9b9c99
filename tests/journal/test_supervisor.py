"""The supervisor with real processes: every child here is a real Python process, every kill a real signal."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from journal import clock, schema
from journal.errors import UsageError
from journal.inbox import mailbox
from journal.supervise.supervisor import Backoff, _due, supervise
from tests.journal.rows import a_journal, a_task, writer

pytestmark = pytest.mark.crash

_SUPERVISE = """
import resource, sys
from journal.supervise.supervisor import Backoff, supervise
backoff = Backoff(quick=0.05, first=float({first!r}), limit=60.0)
if {limit}:
    # To SQLite the volume is full past that size; files are no longer than this for the daemon either, which undoes it.
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
sys.exit(supervise(sys.argv[1], sys.argv[2:], backoff=backoff, grace=0.5))
"""


@contextmanager
def supervised(journal, script, *, first=0.1, program=(sys.executable, "-c"), limit=0):
    """Run `script` under a supervisor process, which says what it does in `<journal>.said`.

    Each start of the script leaves its pid in `<journal>.starts`.
    """
    starts = journal.with_suffix(".starts")
    starts.touch()
    body = f"import os\nwith open({str(starts)!r}, 'a') as file: file.write(f'{{os.getpid()}}\\n')\n"
    command = [*program, body + textwrap.dedent(script)]
    supervisor = [sys.executable, "-c", _SUPERVISE.format(first=first, limit=limit), str(journal), *command]
    with journal.with_suffix(".said").open("w") as said:
        process = subprocess.Popen(supervisor, stderr=said)
    try:
        yield process, starts
    finally:
        process.terminate()
        process.wait(10)


def pids(starts: Path) -> list[int]:
    return [int(line) for line in starts.read_text().split("\n")[:-1]]


def until(condition, *, seconds=15.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return found


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


FOREVER = "import time\nwhile True: time.sleep(0.1)\n"
# An agent's daemon at its smallest: it takes the journal's lock and lives.
DAEMON = """
import sys, time
from pathlib import Path
from journal.store.writer import Store
store = Store(Path({journal!r}), agent="test", role="agent")
Path({ready!r}).touch()
while True: time.sleep(0.1)
"""


def test_a_killed_daemon_is_recorded_and_started_again(tmp_path):
    journal, ready = tmp_path / "a.db", tmp_path / "ready"
    with supervised(journal, DAEMON.format(journal=str(journal), ready=str(ready))) as (_, starts):
        until(ready.exists)
        (first,) = pids(starts)
        ready.unlink()
        os.kill(first, signal.SIGKILL)
        until(ready.exists)
        assert len(pids(starts)) == 2
        with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
            boots = connection.execute("SELECT role, pid, ended FROM agent_boot ORDER BY boot").fetchall()
    assert boots[0] == ("agent", first, "SIGKILL")
    assert [row[0] for row in boots] == ["agent", "supervisor", "agent"]


def test_an_exit_code_of_zero_ends_the_supervisor(tmp_path):
    with supervised(tmp_path / "a.db", "pass") as (supervisor, starts):
        assert supervisor.wait(15) == 0
        assert len(pids(starts)) == 1


def test_exit_75_waits_without_the_lock_for_a_message(tmp_path):
    journal = tmp_path / "a.db"
    with supervised(journal, "import sys; sys.exit(75)") as (supervisor, starts):
        until(lambda: pids(starts) and gone(pids(starts)[0]))
        # Longer than every pause the supervisor makes before it waits.
        time.sleep(0.6)
        assert len(pids(starts)) == 1
        assert supervisor.poll() is None
        mailbox.post_message(journal, {"kind": "cancel", "task_id": "t", "actor": "ada", "reason": "enough"})
        until(lambda: len(pids(starts)) == 2)


def test_exit_75_ends_its_wait_when_something_is_due(tmp_path, monkeypatch):
    journal, moved = tmp_path / "a.db", tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    with closing(writer(a_journal(journal))) as connection:
        a_task(connection, "t", status="waiting", next_attempt_at=clock.text(clock.wall() + timedelta(hours=1)))
    with supervised(journal, "import sys; sys.exit(75)") as (_, starts):
        until(lambda: pids(starts) and gone(pids(starts)[0]))
        time.sleep(0.6)
        assert len(pids(starts)) == 1
        moved.write_text("3601")
        until(lambda: len(pids(starts)) == 2)


def test_exit_75_ends_its_wait_when_another_writer_changed_the_journal(tmp_path):
    journal = tmp_path / "a.db"
    with supervised(journal, "import sys; sys.exit(75)") as (_, starts):
        until(lambda: pids(starts) and gone(pids(starts)[0]))
        time.sleep(0.6)
        assert len(pids(starts)) == 1
        with closing(sqlite3.connect(journal, isolation_level=None)) as connection:
            schema.migrate_schema(connection, agent="test")
        until(lambda: len(pids(starts)) == 2)


def test_what_is_changed_in_the_pause_after_exit_75_is_news(tmp_path):
    journal = tmp_path / "a.db"
    with supervised(journal, "import sys; sys.exit(75)", first=0.5) as (_, starts):
        until(lambda: "waits for a person" in journal.with_suffix(".said").read_text())
        # As a worker does that posts, takes the free lock, applies and unlinks within moments.
        with closing(sqlite3.connect(journal, isolation_level=None)) as connection:
            schema.migrate_schema(connection, agent="test")
        until(lambda: len(pids(starts)) == 2)


def test_a_journal_that_is_busy_when_its_due_time_is_looked_for_is_asked_again(tmp_path):
    journal, due = tmp_path / "a.db", clock.wall() + timedelta(hours=1)
    with closing(writer(a_journal(journal))) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        a_task(other, "t", status="waiting", next_attempt_at=clock.text(due))
        assert _due(journal) == (None, False)
    assert _due(journal) == (due, True)
    assert _due(tmp_path / "missing.db") == (None, True)


def test_a_disk_that_is_full_at_the_record_does_not_end_the_supervisor(tmp_path):
    journal, ready = tmp_path / "a.db", tmp_path / "ready"
    unlimited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
    script = unlimited + DAEMON.format(journal=str(journal), ready=str(ready))
    with supervised(journal, script, limit=8000) as (_, starts):
        until(ready.exists)
        (first,) = pids(starts)
        ready.unlink()
        os.kill(first, signal.SIGKILL)
        until(ready.exists)
        assert f"cannot record how pid {first} ended" in journal.with_suffix(".said").read_text()
        with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
            boots = connection.execute("SELECT role, pid, ended FROM agent_boot ORDER BY boot").fetchall()
    assert boots == [("agent", first, "vanished"), ("agent", pids(starts)[1], None)]


def test_a_program_that_cannot_be_started_again_for_a_moment_is_tried_again(tmp_path):
    journal, program, away = tmp_path / "a.db", tmp_path / "program", tmp_path / "away"
    program.symlink_to("/bin/sh")
    script = f"import os; os.rename({str(program)!r}, {str(away)!r})"
    run = (str(program), "-c", f'exec {sys.executable} -c "$0"')
    with supervised(journal, script + "\nos._exit(1)", program=run) as (supervisor, starts):
        until(lambda: "cannot be started" in journal.with_suffix(".said").read_text())
        assert supervisor.poll() is None
        away.rename(program)
        until(lambda: len(pids(starts)) == 2)


def test_a_message_starts_a_daemon_that_backs_off(tmp_path):
    journal = tmp_path / "a.db"
    with supervised(journal, "import sys; sys.exit(1)", first=60.0) as (_, starts):
        # The first restart is quick, the second would come after a minute.
        until(lambda: len(pids(starts)) == 2 and gone(pids(starts)[1]))
        mailbox.post_message(journal, {"kind": "cancel", "task_id": "t", "actor": "ada", "reason": "enough"})
        until(lambda: len(pids(starts)) == 3)


def test_sigterm_stops_the_daemon_and_then_the_supervisor(tmp_path):
    with supervised(tmp_path / "a.db", FOREVER) as (supervisor, starts):
        until(lambda: pids(starts))
        supervisor.terminate()
        assert supervisor.wait(10) == 0
        assert gone(pids(starts)[0])


def test_a_daemon_deaf_to_sigterm_is_killed_with_what_it_started(tmp_path):
    script = """
    import signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with open({starts!r}, "a") as file: file.write(f"{{helper.pid}}\\n")
    time.sleep(60)
    """
    starts = tmp_path / "a.starts"
    with supervised(tmp_path / "a.db", script.format(starts=str(starts))) as (supervisor, _):
        until(lambda: len(pids(starts)) == 2)
        supervisor.terminate()
        assert supervisor.wait(10) == 0
        daemon, helper = pids(starts)
        assert gone(daemon)
        until(lambda: gone(helper))


def test_killing_the_supervisor_leaves_no_daemon(tmp_path):
    with supervised(tmp_path / "a.db", FOREVER) as (supervisor, starts):
        until(lambda: pids(starts))
        supervisor.kill()
        supervisor.wait(10)
        until(lambda: gone(pids(starts)[0]))


def test_a_stopped_journal_holder_is_back_off_not_a_crash(tmp_path):
    journal, ready = tmp_path / "a.db", tmp_path / "ready"
    script = DAEMON.format(journal=str(journal), ready=str(ready))
    holder = subprocess.Popen([sys.executable, "-c", script])
    try:
        until(ready.exists)
        with supervised(journal, script) as (supervisor, starts):
            until(lambda: len(pids(starts)) >= 2)
            assert supervisor.poll() is None
            with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
                assert connection.execute("SELECT pid FROM agent_boot").fetchall() == [(holder.pid,)]
            holder.kill()
            holder.wait()
            ready.unlink()
            until(ready.exists)
    finally:
        holder.kill()
        holder.wait()


def test_the_pause_doubles_up_to_its_limit_and_the_first_is_quick():
    assert [Backoff().delay(deaths) for deaths in (1, 2, 3, 4, 8, 9, 2000)] == [0.1, 1, 2, 4, 60, 60, 60]


def test_a_command_that_does_not_exist_is_an_error_with_its_name(tmp_path):
    with pytest.raises(UsageError, match="/no/such/program: cannot be started"):
        supervise(tmp_path / "a.db", ["/no/such/program"])
