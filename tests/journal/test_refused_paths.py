"""A path where no journal can be kept is refused in a sentence and left as it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from journal import mounts
from journal.errors import JournalUnreadable
from tests.journal.agent import World, opened


def test_a_file_of_somebody_else_is_left_as_it_was(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(JournalUnreadable, match="tables that stepkeeper did not make"):
        opened(path, World())
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("data", "kind"), [(b"not a database, but long enough to look like one" * 50, "damaged"), (None, "damaged")]
)
def test_what_is_no_database_is_refused_in_a_sentence(path, data, kind):
    if data is None:
        path.mkdir()
    else:
        path.write_bytes(data)
    with pytest.raises(JournalUnreadable, match=r"Journal j\.db") as caught:
        opened(path, World())
    assert caught.value.kind == kind


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(JournalUnreadable, match="folder must exist"):
        opened(tmp_path / "missing" / "j.db", World())


def test_a_network_disk_is_refused_before_anything_is_written(path, tmp_path, monkeypatch):
    mountinfo = f"36 35 98:0 / {tmp_path} rw - nfs4 server:/x rw\n".encode()
    real = mounts.filesystem
    monkeypatch.setattr(mounts, "filesystem", lambda where: real(where, mountinfo=mountinfo))
    with pytest.raises(JournalUnreadable, match="nfs4") as caught:
        opened(path, World())
    assert (caught.value.kind, list(tmp_path.iterdir())) == ("network_fs", [])
