"""A path where no journal can be kept is refused in a sentence and left as it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from journal import writer_lock
from journal.errors import JournalUnreadable
from journal.store import connection
from journal.supervise.boot_record import close_ended_boot
from tests.journal.agent import World, note, opened, python, rows


def test_a_file_of_somebody_else_is_left_as_it_was(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(JournalUnreadable, match="tables that stepkeeper did not make"):
        opened(path, World())
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("data", "kind"), [(b"not a database, but long enough to look like one" * 50, "damaged"), (None, "folder")]
)
def test_what_is_no_database_is_refused_in_a_sentence(path, data, kind):
    if data is None:
        path.mkdir()
    else:
        path.write_bytes(data)
    with pytest.raises(JournalUnreadable, match=r"Journal j\.db") as caught:
        opened(path, World())
    assert caught.value.kind == kind
    if data is None:
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_an_agent_that_starts_on_a_full_disk_is_told_so_and_starts_later(path):
    with opened(path, World()) as journal:
        journal.store.write(note("a"), sync=True)
    code = """
        import resource, sys
        from journal import Journal
        from journal.errors import JournalUnreadable
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        for full in (1, limit[0]):
            resource.setrlimit(resource.RLIMIT_FSIZE, (full, limit[1]))
            try:
                Journal(sys.argv[1], agent="a").close()
                print("opened")
            except JournalUnreadable as error:
                print(error.kind, "nothing was lost" in error.hint)
    """
    done = python(code, path)
    assert done.stdout.splitlines() == ["unwritable True", "opened"], done.stderr


@pytest.mark.parametrize("made", ["created", "opened"])
def test_only_the_agent_makes_the_first_version_of_a_journal(path, made):
    """Its agent was killed after the file was there and before it held a table."""
    path.touch()
    if made == "opened":
        connection.connect_writer(path, may_create=True).close()
    before = path.read_bytes()
    with pytest.raises(JournalUnreadable, match=r"Journal") as caught:
        close_ended_boot(path, pid=1, ended="SIGKILL")
    assert (caught.value.kind, path.read_bytes()) == ("empty", before)
    opened(path, World()).close()
    assert rows(path, "SELECT value FROM journal_meta WHERE key = 'agent'") == [{"value": "triage"}]
    assert rows(path, "PRAGMA page_size") == [{"page_size": 8192}]


def test_a_journal_that_cannot_be_opened_to_the_end_is_let_go_of(path):
    opened(path, World()).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("INSERT INTO journal_meta (key, value) VALUES (CAST(x'656e763aff' AS TEXT), '')")
        other.commit()
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError, match="Could not decode"):
            opened(path, World())
    assert [row["ended"] for row in rows(path, "SELECT ended FROM agent_boot ORDER BY boot")] == [
        "clean",
        *["exception: OperationalError"] * 2,
    ]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(JournalUnreadable, match="folder must exist"):
        opened(tmp_path / "missing" / "j.db", World())


def test_a_network_disk_is_refused_before_anything_is_written(path, tmp_path, monkeypatch):
    mountinfo = f"36 35 98:0 / {tmp_path} rw - nfs4 server:/x rw\n".encode()
    real = writer_lock.find_filesystem
    monkeypatch.setattr(writer_lock, "find_filesystem", lambda where: real(where, mountinfo=mountinfo))
    with pytest.raises(JournalUnreadable, match="nfs4") as caught:
        opened(path, World())
    assert (caught.value.kind, list(tmp_path.iterdir())) == ("network_fs", [])
