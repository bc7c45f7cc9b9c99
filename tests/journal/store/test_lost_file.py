"""A journal whose file is taken away under its agent: the agent stops, and says which file."""

from __future__ import annotations

import shutil

import pytest

from journal import JournalFailed
from journal.reader import Reader
from tests.journal.agent import opened


@pytest.mark.parametrize("effect", ["read", "write"])
def test_an_agent_whose_journal_was_removed_stops_and_calls_nothing(path, world, effect):
    journal = opened(path, world)
    task = journal.task("t")
    task.run(world.read, 1)
    path.unlink()
    with pytest.raises(JournalFailed, match=r"Journal j\.db: the file was removed"):
        task.run(getattr(world, effect), 2)
    with pytest.raises(JournalFailed, match=r"j\.db"):
        journal.task("u")
    journal.close()
    assert world.names() == ["read"]
    # Nobody made a new, empty one in its place.
    assert not path.exists()


def test_an_agent_whose_journal_was_replaced_stops_and_leaves_the_other_file_alone(path, world, tmp_path):
    with opened(path, world) as journal, journal.task("before") as task:
        task.run(world.read, 1)
    backup = tmp_path / "backup.db"
    shutil.copy(path, backup)
    journal = opened(path, world)
    task = journal.task("t")
    for name in ("j.db", "j.db-wal", "j.db-shm"):
        (tmp_path / name).unlink()
    backup.rename(path)
    with pytest.raises(JournalFailed, match=r"Journal j\.db: the file was replaced by another file"):
        task.run(world.write, "p")
    journal.close()
    assert world.names() == ["read"]
    assert [one.task_id for one in Reader(path).tasks().items] == ["before"]
    # A new process may take the backup up.
    with opened(path, world) as again:
        assert again.store.boot == 2
