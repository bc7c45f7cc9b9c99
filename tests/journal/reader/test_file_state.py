"""What a path holds, said in one word; a bad file is a card, never an exception."""

from __future__ import annotations

import os
import random
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from journal.errors import JournalUnreadable
from journal.reader import Reader, file_signature, inspect
from tests.journal.rows import a_journal, a_step, a_task, writer


def _filled(path: Path, steps: int = 200) -> Path:
    a_journal(path)
    with closing(writer(path)) as connection:
        a_task(connection)
        connection.execute("BEGIN")
        for index in range(steps):
            a_step(connection, index=index, arguments={"text": "x" * 2000, "n": index})
        connection.execute("COMMIT")
    return path


def _text(path: Path) -> None:
    path.write_text("This is a letter, not a journal.\n" * 40)


def _random(path: Path) -> None:
    path.write_bytes(random.Random(7).randbytes(20_000))


def _truncated(path: Path) -> None:
    os.truncate(_filled(path), 100_001)


def _half(path: Path) -> None:
    size = os.path.getsize(_filled(path))
    os.truncate(path, size // 2 // 8192 * 8192)


def _version(path: Path, number: int) -> None:
    with closing(writer(a_journal(path))) as connection:
        connection.execute(f"PRAGMA user_version = {number}")


def _renamed_column(path: Path) -> None:
    with closing(writer(a_journal(path))) as connection:
        connection.execute("ALTER TABLE agent_step_journal RENAME COLUMN hold_reason TO why")


def _other_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")


def _odd_step_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE agent_step_journal (id INTEGER, words TEXT)")


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 2 << 30)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def _loop(path: Path) -> None:
    path.symlink_to(path)


CASES = {
    "0 bytes": (lambda path: path.touch(), "empty"),
    "50 bytes": (lambda path: path.write_bytes(b"x" * 50), "truncated"),
    "text": (_text, "not_a_database"),
    "random bytes": (_random, "not_a_database"),
    "a folder": (lambda path: path.mkdir(), "folder"),
    "a pipe": (os.mkfifo, "not_a_file"),
    "a socket": (_socket, "not_a_file"),
    "a link to /dev/zero": (lambda path: path.symlink_to("/dev/zero"), "not_a_file"),
    "a link to itself": (_loop, "not_a_file"),
    "a dangling link": (lambda path: path.symlink_to("nowhere.db"), "missing"),
    "nothing": (lambda path: None, "missing"),
    "cut in mid-page": (_truncated, "truncated"),
    "cut at a page's end": (_half, "truncated"),
    "newer than us": (lambda path: _version(path, 99), "newer"),
    "of a version below all": (lambda path: _version(path, -5), "damaged"),
    "our tables at version 0": (lambda path: _version(path, 0), "damaged"),
    "a step table of ours that lacks a column": (_renamed_column, "foreign_tables"),
    "somebody's notes": (_other_tables, "foreign_tables"),
    "a step table of other columns": (_odd_step_table, "foreign_tables"),
    "2 GB of nothing": (_sparse, "not_a_database"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_named_in_one_word_and_refused_by_every_read(tmp_path: Path, case: str):
    make, kind = CASES[case]
    path = tmp_path / "j.db"
    make(path)
    state = inspect(path)
    assert (state.kind, state.readable) == (kind, False)
    assert state.sentence.startswith(f"Journal {path}: ")
    assert state.hint
    with pytest.raises(JournalUnreadable) as caught:
        Reader(path).tasks()
    assert caught.value.kind == kind


def test_a_name_with_a_nul_is_missing():
    assert inspect("a\0b").kind == "missing"
    assert file_signature("a\0b") == (None, None, None)


def test_a_journal_says_whose_it_is_and_how_far_it_got(tmp_path: Path):
    path = _filled(tmp_path / "j.db", 2)
    state = inspect(path)
    assert (state.kind, state.dialect, state.agent, state.user_version) == ("ok", "stepkeeper", "triage", 1)
    assert state.uuid
    assert state.highest_revision == (1 << 32) + 2


def test_a_garbage_page_in_the_middle_spoils_only_what_stands_on_it(tmp_path: Path):
    path = _filled(tmp_path / "j.db")
    with path.open("r+b") as file:
        file.seek(os.path.getsize(path) // 2 // 8192 * 8192)
        file.write(b"\xa5" * 8192)
    assert inspect(path).kind == "ok"
    reader = Reader(path)
    assert reader.steps("t", limit=5)[0].step_index == 0
    kinds: list[str] = []
    for index in range(200):
        try:
            reader.step("t", index)
        except JournalUnreadable as error:
            kinds.append(error.kind)
    assert set(kinds) == {"damaged"}
    assert len(kinds) < 100


NAMES = [
    "a?b.db", "a#b.db", "a%20b.db", "a%b.db", "a b.db", "a\nb.db", "a'b.db", 'a"b.db', "a&mode=rwc.db", "🦊.db",
    os.fsdecode(b"\xff\xfe.db"), "x" * 240, "mode=memory", ":memory:", "file:j.db",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_opened_and_no_other_file_appears(tmp_path: Path, name: str):
    folder = tmp_path / "mode=memory"
    folder.mkdir()
    path = a_journal(folder / name)
    assert inspect(path).kind == "ok"
    assert os.listdir(folder) == [name]
    assert inspect(path).sentence.isprintable()


def test_a_relative_path_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    a_journal(tmp_path / "j.db")
    monkeypatch.chdir(tmp_path)
    assert inspect("j.db").kind == "ok"


def test_a_link_to_a_journal_is_read_with_the_log_beside_its_target(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    with closing(writer(path)) as connection:
        a_task(connection)
        assert [task.task_id for task in Reader(link).tasks().items] == ["t"]
    assert os.listdir(link.parent) == ["link.db"]


def test_a_writer_that_locks_the_whole_file_is_busy(tmp_path: Path):
    path = tmp_path / "j.db"
    a_journal(path)
    with closing(writer(path)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        a_task(connection)
        assert inspect(path).kind == "busy"


def test_a_rollback_journal_of_a_killed_writer_is_a_card(tmp_path: Path):
    path = tmp_path / "j.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 5")
        connection.execute("CREATE TABLE agent_step_journal (task_id TEXT, filler BLOB)")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO agent_step_journal VALUES ('t', zeroblob(?))", [(4000,) for _ in range(50)])
        copy, log = path.read_bytes(), Path(f"{path}-journal").read_bytes()
    dead = tmp_path / "dead.db"
    dead.write_bytes(copy)
    Path(f"{dead}-journal").write_bytes(log)
    state = inspect(dead)
    assert state.kind == "log_unreadable"
    assert "rollback journal" in state.sentence
