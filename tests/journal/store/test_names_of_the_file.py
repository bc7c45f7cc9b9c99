"""A journal named by a link, or by a path that a later chdir turns elsewhere, is the one file with its one company."""

from __future__ import annotations

import os

import pytest

from journal import Journal, post_submit, tool, writer_lock
from journal.inbox import mailbox
from journal.reader import Reader
from journal.store import connection
from tests.journal.agent import note, opened, status, steps_of


@pytest.fixture
def link(path, tmp_path):
    """Another name of the journal at `path`, in a folder of its own; the file itself need not exist yet."""
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "other.db"
    link.symlink_to(path)
    return link


def test_what_belongs_to_a_journal_lies_beside_the_file_and_not_beside_a_link_to_it(path, world, link, tmp_path):
    with opened(link, world) as journal, journal.task("t") as task:
        task.run(world.write, "a")
        beside = {one.name for one in tmp_path.iterdir()} - {"links"}
        assert beside == {"j.db", "j.db-wal", "j.db-shm", "j.db.lock", "j.db.mark", "j.db.reserve"}
    post_submit(link, "triage", task_id="u")
    assert (tmp_path / "j.db.inbox").is_dir()
    assert [one.name for one in link.parent.iterdir()] == ["other.db"]


def test_the_log_of_a_journal_opened_by_a_link_is_taken_up(path, world, link):
    with opened(link, world) as journal:
        journal.store.write(note("a"), sync=False)
        log = path.with_name("j.db-wal")
        assert log.stat().st_size > 0
        assert connection.shorten_log(journal.store._connection, journal.store.path, limit=0) == connection.LONGEST_LOG
        assert log.stat().st_size == 0


def test_a_message_by_one_name_reaches_the_agent_that_opened_another(path, world, link):
    def triage(task: object) -> str:
        return "done"

    with opened(link, world, handlers={"triage": triage}) as journal:
        post_submit(path, "triage", task_id="by-the-file")
        post_submit(link, "triage", task_id="by-the-link")
        journal.context.apply_inbox()
        assert writer_lock.find_holder(path) == writer_lock.find_holder(link)
        assert writer_lock.find_holder(path) is not None
    assert status(path, "by-the-file") == status(path, "by-the-link") == "queued"


def test_a_tool_that_changes_the_folder_loses_neither_its_outcome_nor_its_journal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    @tool(effect="mutating")
    def move(number: int) -> int:
        os.chdir(tmp_path / "elsewhere")
        return number

    with Journal("j.db", agent="a", tools=[move]) as journal:
        reader = Reader(os.path.relpath(tmp_path / "j.db"))
        with journal.task("t") as task:
            assert [task.run(move, 1), task.run(move, 2)] == [1, 2]
        mailbox.post_message(journal.path, {"kind": "submit", "handler": "h", "task_id": "late", "input": {}})
        journal.context.apply_inbox()
        assert {one.task_id for one in reader.tasks().items} == {"t", "late"}
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert [step["status"] for step in steps_of(tmp_path / "j.db", "t")] == ["committed"] * 2
