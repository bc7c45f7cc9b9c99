"""Journal files: found inside the globs only, and told apart."""

from __future__ import annotations

import os

import pytest

from agents.catalog import discovery
from agents.catalog.patterns import is_inside
from agents.models import IndexedTask, JournalFile, PendingIntent
from journal.errors import JournalUnreadable
from tests.agents.journals import a_journal
from tests.builders.fleet import journal_file, reread, rows, swept, watched, writing

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("pattern", "path", "inside"),
    [
        ("/a/*.db", "/a/x.db", True),
        ("/a/*.db", "/a/b/x.db", False),
        ("/a/*.db", "/a/.x.db", False),
        ("/a/**/*.db", "/a/x.db", True),
        ("/a/**/*.db", "/a/b/c/x.db", True),
        ("/a/**/*.db", "/a/.git/x.db", False),
        ("/a/**", "/a/b/x.db", True),
        ("/a/x?y.db", "/a/x/y.db", False),
        ("/a/[xy].db", "/a/x.db", True),
        ("/a/x.db", "/a/x.db", True),
        ("/a/x.db", "/a/y.db", False),
        ("/a/*", "/a/x.db-wal", False),
        ("/a/**", "/a/x.db.inbox/m.json", False),
    ],
)
def test_a_path_is_inside_exactly_where_the_glob_could_give_it(pattern, path, inside):
    assert is_inside(path, (pattern,)) is inside


def test_what_lies_beside_a_journal_is_no_journal(folder, settings):
    watched(folder, settings, pattern="*")
    for name in ("a.db", "a.db-wal", "a.db-shm", "a.db.lock", "a.db.reserve"):
        (folder / name).touch()
    (folder / "a.db.inbox").mkdir()
    assert discovery.find_paths() == [str(folder / "a.db")]


def test_a_new_file_is_found_and_a_vanished_one_is_marked(folder):
    path = a_journal(folder / "a.db")
    swept()
    assert journal_file(path).kind == "ok"
    path.unlink()
    swept()
    assert journal_file(path).kind == "vanished"
    assert not PendingIntent.objects.exists()


def test_a_symlink_out_of_the_globs_is_a_card_and_is_never_opened(folder, tmp_path):
    outside = a_journal(tmp_path / "outside.db")
    (folder / "link.db").symlink_to(outside)
    swept()
    row = JournalFile.objects.get()
    assert (row.path, row.kind) == (str(folder / "link.db"), "outside")
    with pytest.raises(JournalUnreadable, match="not inside STEPKEEPER_JOURNALS"):
        discovery.reader_for(row)


def test_a_file_swapped_for_a_link_out_is_not_opened(folder, tmp_path):
    path = a_journal(folder / "a.db")
    outside = a_journal(tmp_path / "outside.db", task="secret")
    swept()
    path.unlink()
    path.symlink_to(outside)
    with pytest.raises(JournalUnreadable):
        discovery.reader_for(journal_file(path))


def test_a_symlink_inside_the_globs_is_the_file_it_names(folder):
    path = a_journal(folder / "a.db")
    (folder / "b.db").symlink_to(path)
    assert discovery.find_paths() == [str(path)]


def test_every_bad_file_is_a_card_and_the_good_ones_are_read(folder):
    a_journal(folder / "good.db")
    (folder / "empty.db").touch()
    (folder / "text.db").write_text("not a database, but long enough to hold one page of it\n" * 40)
    (folder / "folder.db").mkdir()
    os.mkfifo(folder / "pipe.db")
    (folder / "dangling.db").symlink_to(folder / "nowhere.db")
    with writing(folder / "newer.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    swept()
    kinds = {os.path.basename(row.path): row.kind for row in JournalFile.objects.all()}
    assert kinds.pop("good.db") == "ok"
    assert set(kinds) >= {"empty.db", "text.db", "folder.db", "pipe.db", "newer.db"}
    assert "ok" not in kinds.values()
    assert all(row.sentence for row in JournalFile.objects.exclude(kind="ok"))
    assert IndexedTask.objects.get().task_id == "t"


def test_another_journal_at_the_same_path_starts_anew(folder):
    path = a_journal(folder / "a.db", task="old", revision=rows.BOOT + 50)
    swept()
    path.unlink()
    a_journal(path, task="new")
    swept()
    assert journal_file(path).kind == "ok"
    assert list(IndexedTask.objects.values_list("task_id", flat=True)) == ["new"]


def test_foreign_journals_are_indexed_too(folder):
    with writing_foreign(folder / "minimal.db") as connection:
        rows.minimal_table(connection)
        rows.insert(
            connection,
            "agent_step_journal",
            task_id="a/b?c#d",
            step_index=0,
            tool_name="send",
            idempotency_key="k",
            arguments_json="{}",
            status="pending",
            created_at=rows.WHEN,
            updated_at=rows.WHEN,
        )
    swept()
    row = reread(journal_file(folder / "minimal.db"))
    assert row.kind == "ok"
    assert row.dialect == "minimal"
    assert IndexedTask.objects.get().task_id == "a/b?c#d"


def writing_foreign(path):
    from contextlib import closing

    return closing(rows.writer(path, mode="delete"))
