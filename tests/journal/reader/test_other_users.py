"""A journal of another user is read where it may be, and its card says whom to run as where it may not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from journal.reader import inspect
from tests.journal.child import as_nobody, open_folder
from tests.journal.rows import a_journal, a_task, writer

pytestmark = pytest.mark.accept


@pytest.fixture
def shared() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_journal_of_another_user_names_the_user_to_run_as(shared: Path):
    path = a_journal(shared / "j.db")
    before = sorted(os.listdir(shared))
    kind, sentence, hint = as_nobody(path)
    assert kind == "other_owner"
    assert "belongs to root" in sentence
    assert "Run this as root" in hint
    assert sorted(os.listdir(shared)) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_file_without_read_permission_is_unreadable(shared: Path):
    path = a_journal(shared / "j.db")
    os.chown(path, 65534, 65534)
    path.chmod(0)
    assert as_nobody(path)[0] == "unreadable"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_file_in_a_closed_folder_is_unreadable(shared: Path):
    folder = shared / "closed"
    folder.mkdir(mode=0o700)
    assert as_nobody(a_journal(folder / "j.db"))[0] == "unreadable"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns every file")
def test_root_reads_another_users_journal_and_says_so(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    os.chown(path, 65534, 65534)
    state = inspect(path)
    assert state.kind == "ok"
    assert state.warnings[0].startswith("Read as root; the file belongs to ")
    assert inspect(path, root_is_owner=False).kind == "other_owner"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_log_that_cannot_be_opened_is_a_card_and_not_half_a_truth(shared: Path):
    folder = shared / "closed"
    folder.mkdir()
    path = a_journal(folder / "j.db")
    with closing(writer(path)) as connection:
        a_task(connection)
        log = Path(f"{path}-wal").read_bytes()
    Path(f"{path}-wal").write_bytes(log)
    for name in (path, Path(f"{path}-wal")):
        os.chown(name, 65534, 65534)
    folder.chmod(0o555)
    assert as_nobody(path)[0] == "log_unreadable"
    assert sorted(os.listdir(folder)) == ["j.db", "j.db-wal"]
