"""Messages reach a journal's writer once, whole and in order."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from journal import UsageError
from journal.errors import StepkeeperError
from journal.inbox import mailbox
from tests.journal.agent import World, opened, python, rows, task_row
from tests.journal.operator import decide, outcome, submit, with_handler


def test_a_message_is_a_private_file_in_a_private_folder(path):
    submit(path, "a")
    folder = mailbox.inbox_path(path)
    (file,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    assert json.loads(file.read_bytes())["task_id"] == "a"


def test_a_message_and_its_folder_are_synced_before_the_sender_goes_on(path, tmp_path):
    code = """
        import os, sys
        from pathlib import Path
        from journal.inbox import mailbox
        synced = []
        real = os.fsync
        def fsync(descriptor):
            synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
            real(descriptor)
        os.fsync = fsync
        mailbox.post_message(sys.argv[1], {"kind": "cancel", "task_id": "t"})
        print(*synced, sep="\\n")
    """
    done = python(code, path)
    assert done.returncode == 0, done.stderr
    folder, message, again = done.stdout.split()
    assert (folder, again) == (tmp_path.name, "j.db.inbox")
    assert message.startswith(".")


def test_messages_are_read_in_the_order_they_were_posted(path):
    ids = [submit(path, f"t{number}") for number in range(20)]
    assert [message.message_id for message in mailbox.list_messages(path)] == ids


def test_an_applied_message_is_gone_and_was_applied_once(path):
    submit(path, "a")
    with with_handler(path) as journal:
        journal.recover()
        journal.context.apply_inbox()
    assert mailbox.list_messages(path) == []
    assert [row["task_id"] for row in rows(path, "SELECT task_id FROM agent_task")] == ["a"]


def test_a_message_posted_twice_under_one_id_is_applied_once(path):
    for _ in range(2):
        submit(path, "a", message_id="m-1")
    with with_handler(path) as journal:
        report = journal.recover()
        assert (report.messages, task_row(path, "a")["conflict"]) == (2, None)
    with with_handler(path) as journal:
        revision = task_row(path, "a")["revision"]
        submit(path, "a", message_id="m-1")
        journal.context.apply_inbox()
        assert task_row(path, "a")["revision"] == revision


def test_what_was_applied_before_the_disk_was_full_is_followed(held):
    code = """
        import resource, sys
        from pathlib import Path
        from journal import Journal
        from journal.inbox import mailbox
        from tests.journal.operator import decide
        path = Path(sys.argv[1])
        with Journal(path, agent="a") as journal:
            decide(path, "abandon")
            body = {"kind": "submit", "handler": "h", "task_id": "b", "input": {"text": "x" * 1_000_000}}
            mailbox.post_message(path, body)
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limit[1]))
            print([applied.step_index for applied in journal.context.take_messages()], journal.context.epoch)
            try:
                journal.context.take_messages()
            except Exception as error:
                print(type(error).__name__)
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            print(journal.recover().messages)
    """
    done = python(code, held)
    assert done.stdout.splitlines() == ["[0] 1", "OperationalError", "1"], done.stderr


def test_a_message_that_its_reader_would_refuse_is_not_posted(path, monkeypatch):
    monkeypatch.setattr(mailbox, "MAX_BYTES", 200)
    with pytest.raises(UsageError, match="more than the 200"):
        submit(path, "a", input={"text": "x" * 200})
    assert not mailbox.inbox_path(path).exists()


def test_a_decisions_expiry_is_kept_in_utc_whatever_its_offset(held):
    message = decide(held, "abandon", expires_at="2099-01-01T09:00:00+09:00")
    with opened(held, World()) as journal:
        journal.recover()
    assert outcome(held, message) == "applied"
    assert rows(held, "SELECT expires_at FROM agent_decision") == [{"expires_at": "2099-01-01T00:00:00.000000Z"}]


def test_a_half_written_message_of_a_killed_sender_is_not_read(path):
    submit(path, "a")
    (mailbox.inbox_path(path) / ".2026-x.json.abc").write_bytes(b'{"kind"')
    assert len(mailbox.list_messages(path)) == 1


def test_another_name_of_the_journal_has_the_same_inbox(path, tmp_path):
    opened(path, World()).close()
    alias = tmp_path / "alias.db"
    alias.symlink_to(path)
    submit(alias, "a")
    assert len(mailbox.list_messages(path)) == 1


@pytest.mark.parametrize("bad", [{"kind": "nonsense"}, {"kind": "cancel", "message_id": "../x"}, {"kind": None}])
def test_what_is_no_message_is_not_posted(path, bad):
    with pytest.raises(UsageError):
        mailbox.post_message(path, bad)
    assert not mailbox.inbox_path(path).exists()


def test_a_link_in_the_place_of_the_inbox_leads_nowhere(path, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "2026-secret.json").write_text('{"message_id": "m", "kind": "cancel"}')
    mailbox.inbox_path(path).symlink_to(elsewhere)
    assert [message.problem for message in mailbox.list_messages(path)] == ["is not a folder"]
    with pytest.raises(StepkeeperError, match="could not be written"):
        submit(path, "a")
    assert [file.name for file in elsewhere.iterdir()] == ["2026-secret.json"]


@pytest.mark.parametrize("place", [os.mkfifo, lambda path: Path(path).write_text("")])
def test_something_else_in_the_place_of_the_inbox_stops_nobody_and_makes_room(path, place):
    place(mailbox.inbox_path(path))
    (message,) = mailbox.list_messages(path)
    mailbox.set_message_aside(message)
    submit(path, "a")
    assert len(mailbox.list_messages(path)) == 1


def test_a_pipe_among_the_messages_is_no_message_and_is_not_waited_for(path):
    submit(path, "a")
    os.mkfifo(mailbox.inbox_path(path) / "0-pipe.json")
    assert [message.problem for message in mailbox.list_messages(path)] == ["is not a file", ""]
