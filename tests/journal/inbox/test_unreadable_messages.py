"""What lies in an inbox and is no message, or cannot be opened now, holds up no message beside it."""

from __future__ import annotations

import os

import pytest

from journal import StepkeeperError
from journal.inbox import mailbox
from tests.journal.agent import World, opened, python, rows, task_row
from tests.journal.child import open_folder
from tests.journal.operator import submit, with_handler


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"3",
        b'{"kind": "submit"}',
        b'{"kind": "nonsense", "message_id": "m"}',
        b"[" * 200_000,
        b'{"kind": "submit", "message_id": "m", "handler": "triage", "task_id": "\\ud83d", "input": {}}',
        b'{"kind": "submit", "message_id": "m", "handler": "triage", "task_id": "x", "input": {"n": NaN}}',
        b'{"kind": "submit", "message_id": "m", "handler": "triage", "task_id": ["x"], "input": {}}',
        b'{"kind": "decision", "message_id": "m", "decision": "abandon", "task_id": "t", "step_index": -1}',
        b'{"kind": "decision", "message_id": {}, "decision": "abandon", "task_id": "t", "step_index": 0}',
        b'{"kind": "decision", "message_id": "m", "decision": "abandon", "task_id": "t", "step_index": 0, "key": []}',
        b'{"kind": "evidence", "message_id": "m", "task_id": "t", "step_index": 0, "answer": "maybe"}',
        b'{"kind": "explode", "message_id": "m"}',
    ],
)
def test_a_file_that_is_no_message_is_set_aside_and_the_others_are_applied(path, data):
    folder = mailbox.inbox_path(path)
    submit(path, "before")
    (folder / "2026-11-29T000000.000000Z-bad.json").write_bytes(data)
    submit(path, "after")
    with with_handler(path) as journal:
        report = journal.recover()
    assert [row["task_id"] for row in rows(path, "SELECT task_id FROM agent_task ORDER BY rowid")] == [
        "before",
        "after",
    ]
    assert [file.suffix for file in folder.iterdir()] == [".refused"]
    assert sum("refused" in line for line in report.lines) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"http_status": {"not": "a number"}},
        {"output_json": "not json"},
        {"output_json": "NaN"},
        {"output_json": 5},
        {"output_json": "[" * 100_000},
    ],
)
def test_evidence_with_a_value_of_the_wrong_type_is_set_aside(path, wrong):
    world = World()
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.write, "p")
    body = {
        "kind": "evidence",
        "task_id": "t",
        "step_index": 0,
        "attempt": 1,
        "asked_at": "2026-11-29T00:00:00.000000Z",
        "asked_boottime": 1.0,
        "os_boot_id": "x",
        "answer": "absent",
    }
    mailbox.post_message(path, {**body, **wrong})
    with opened(path, world) as journal:
        journal.recover()
    assert [file.suffix for file in mailbox.inbox_path(path).iterdir()] == [".refused"]


def test_a_huge_file_and_what_is_no_file_are_set_aside_unread(path):
    folder = mailbox.inbox_path(path)
    submit(path, "a")
    with (folder / "0-huge.json").open("wb") as file:
        file.truncate(mailbox.MAX_BYTES + 1)
    os.mkfifo(folder / "1-pipe.json")
    (folder / "2-folder.json").mkdir()
    with with_handler(path) as journal:
        journal.recover()
        assert task_row(path, "a")["status"] == "queued"
    assert sorted(file.name for file in folder.iterdir()) == ["0-huge.refused", "1-pipe.refused", "2-folder.refused"]


READING = """
    import logging, os, resource, sys
    from journal import Journal
    from journal.inbox import mailbox
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.WARNING)
    path = sys.argv[1]
    journal = Journal(path, agent="a", handlers={"triage": print})
    folder = mailbox.inbox_path(path)
    for task in ("a", "b"):
        mailbox.post_message(path, {"kind": "submit", "handler": "triage", "task_id": task, "input": {}})
"""


def test_a_message_that_cannot_be_opened_for_a_moment_stays_and_is_applied_later():
    code = (
        READING
        + """
    first, second = sorted(folder.iterdir())
    first.chmod(0)
    for name in (folder, second):
        name.chmod(0o777)
    os.seteuid(65534 if os.geteuid() == 0 else os.geteuid())  # root may read everything
    print(*[journal.context.apply_inbox().messages for _ in range(2)])
    os.seteuid(os.getuid())
    first.chmod(0o600)
    print(journal.context.apply_inbox().messages, *folder.iterdir())
    """
    )
    with open_folder() as folder:
        done = python(code, folder / "j.db")
    said = done.stdout.splitlines()
    assert (said[1:], done.returncode) == (["1 0", "1"], 0), (said, done.stderr)
    assert said[0].endswith(".json: it cannot be read now: Permission denied; it stays and is looked at again")


def test_an_inbox_that_cannot_be_opened_for_a_moment_ends_nobody(path):
    code = (
        READING
        + """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit[1]))
    print(*[journal.context.apply_inbox().messages for _ in range(2)])
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    print(journal.context.apply_inbox().messages)
    """
    )
    done = python(code, path)
    why = "message j.db.inbox: it cannot be read now: Too many open files; it stays and is looked at again"
    assert done.stdout.splitlines() == [why, "0 0", "2"], done.stderr


def test_a_refused_name_that_is_taken_stops_nobody(path):
    folder = mailbox.inbox_path(path)
    submit(path, "a")
    (folder / "0.json").write_bytes(b"{")
    (folder / "0.refused").mkdir()
    (folder / "0.refused" / "kept").touch()
    with with_handler(path) as journal:
        journal.recover()
    assert mailbox.list_messages(path) == []
    assert [file.suffix for file in folder.iterdir()] == [".refused"] * 2


def test_a_file_in_the_place_of_the_inbox_is_set_aside_by_the_agent(path):
    mailbox.inbox_path(path).write_text("kept")
    with pytest.raises(StepkeeperError, match="the message could not be written: Not a directory"):
        submit(path, "a")
    with with_handler(path) as journal:
        assert "message j.db.inbox: refused: is not a folder" in journal.recover().lines
        submit(path, "a")
        journal.context.apply_inbox()
        assert task_row(path, "a")["status"] == "queued"
    assert path.with_name("j.db.refused").read_text() == "kept"
