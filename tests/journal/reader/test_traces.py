"""A reader leaves no trace: no file, no byte, no lock, no descriptor."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from pathlib import Path

from journal.reader import Reader, file_signature, inspect
from tests.journal.child import killed_writer
from tests.journal.rows import a_journal, a_step, a_task, writer


def _traces(folder: Path) -> dict[str, str]:
    """What a folder holds, byte for byte; the shared memory's content changes with every reader and proves nothing."""
    return {
        path.name: "" if path.name.endswith("-shm") else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def _read_everything(path: Path) -> int:
    reader = Reader(path)
    inspect(path)
    file_signature(path)
    reader.tasks()
    reader.changes(0)
    reader.counts()
    reader.step("t", 0)
    return len(reader.steps("t", limit=1000))


def test_a_killed_writers_log_is_read_whole_and_left_as_it_is(tmp_path: Path):
    path = tmp_path / "j.db"
    killed_writer(path)
    before = _traces(tmp_path)
    assert len(before) == 3
    assert _read_everything(path) == 50
    assert _traces(tmp_path) == before


def test_an_idle_journal_is_read_without_a_file_beside_it(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    with closing(writer(path)) as connection:
        a_task(connection)
        a_step(connection)
    before = _traces(tmp_path)
    assert list(before) == ["j.db"]
    assert _read_everything(path) == 1
    assert _traces(tmp_path) == before


def test_a_live_writers_files_stay_the_same_and_its_log_can_be_emptied_right_after(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    with closing(writer(path)) as connection:
        a_task(connection)
        a_step(connection)
        before = _traces(tmp_path)
        assert _read_everything(path) == 1
        assert _traces(tmp_path) == before
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)


def test_no_descriptor_and_no_lock_outlives_a_read(tmp_path: Path):
    path = tmp_path / "j.db"
    killed_writer(path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        _read_everything(path)
    assert len(os.listdir("/proc/self/fd")) == before
    inode = f":{path.stat().st_ino} "
    assert [line for line in Path("/proc/locks").read_text().splitlines() if inode in line] == []
