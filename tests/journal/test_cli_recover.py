"""`recover` settles what can be settled, and its exit code says what is left."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from journal import schema
from journal.cli import main
from journal.inbox import mailbox
from journal.writer_lock import Lock
from tests.journal.agent import python
from tests.journal.rows import a_held_journal, a_journal


@pytest.fixture
def path(path: Path) -> Path:
    return a_held_journal(path)


def test_recover_leaves_what_needs_a_person_and_ends_with_75(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["recover", str(path), "--json"]) == 75
    report = json.loads(capsys.readouterr().out)
    assert report["settled"] == 0
    assert report["held"] + report["waiting"] + report["left_to_agent"] == 1
    assert main(["recover", str(path)]) == 75
    assert "0 settled" in capsys.readouterr().out


def test_recover_of_a_journal_with_nothing_pending_ends_with_0(tmp_path: Path):
    assert main(["recover", str(a_journal(tmp_path / "j.db"))]) == 0


def test_recover_beside_a_live_agent_is_busy_and_names_its_pid(path: Path, capsys: pytest.CaptureFixture[str]):
    lock = Lock(path, role="agent")
    lock.acquire()
    try:
        assert main(["recover", str(path), "--wait", "0"]) == 4
        assert str(os.getpid()) in capsys.readouterr().err
        assert main(["recover", str(path), "--wait", "0", "--json"]) == 4
        assert json.loads(capsys.readouterr().out)["error"]["kind"] == "busy"
    finally:
        lock.release()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_damaged_page_is_one_error_and_no_traceback(path: Path, capsys: pytest.CaptureFixture[str], as_json: bool):
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'agent_step_journal'").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[(found[0] - 1) * schema.PAGE_SIZE : found[0] * schema.PAGE_SIZE] = b"\xff" * schema.PAGE_SIZE
    path.write_bytes(data)
    assert main(["recover", str(path), *(["--json"] if as_json else [])]) == 3
    printed = capsys.readouterr()
    if as_json:
        assert json.loads(printed.out)["error"]["kind"] == "damaged"
    else:
        assert "malformed" in printed.err


def test_a_disk_that_is_full_in_the_middle_is_one_error_and_keeps_the_message(path: Path):
    message = {"kind": "submit", "handler": "h", "task_id": "new", "input": {"text": "x" * 200_000}}
    mailbox.post_message(path, message)
    code = """
        import resource, sys
        from journal.cli import main
        # Room for the log's first pages, not for the message.
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        sys.exit(main(["recover", sys.argv[1], "--json"]))
    """
    done = python(code, path)
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (3, "unwritable"), done.stderr
    assert len(mailbox.list_messages(path)) == 1
    assert main(["recover", str(path)]) == 75
    assert mailbox.list_messages(path) == []
