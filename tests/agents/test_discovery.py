"""Journal files: found inside the globs only, and told apart."""

from __future__ import annotations

import os
import shutil

import pytest

from agents import alerts, discovery, globs
from agents.models import Alert, IndexedTask, JournalFile, PendingIntent, SpendHour
from journal import clock
from journal.errors import JournalUnreadable
from tests.builders.fleet import a_model_call, held, journal_file, reread, rows, swept, watched, writing

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path, settings):
    folder = tmp_path / "agents"
    folder.mkdir()
    watched(folder, settings)
    return folder


def a_journal(path, *, task="t", revision=rows.BOOT + 1, **cells):
    with writing(path) as connection:
        rows.a_boot(connection)
        rows.a_task(connection, task, revision=revision, **cells)
    return path


def spent_in_all():
    return sum(cost for cost in SpendHour.objects.values_list("cost_pico", flat=True) if cost is not None)


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
    assert globs.is_inside(path, (pattern,)) is inside


def test_what_lies_beside_a_journal_is_no_journal(folder, settings):
    watched(folder, settings, pattern="*")
    for name in ("a.db", "a.db-wal", "a.db-shm", "a.db.lock", "a.db.reserve"):
        (folder / name).touch()
    (folder / "a.db.inbox").mkdir()
    assert discovery.paths() == [str(folder / "a.db")]


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
    assert discovery.paths() == [str(path)]


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


def test_a_copy_is_a_card_and_is_not_merged(folder):
    path = a_journal(folder / "a.db")
    swept()
    shutil.copy(path, folder / "b.db")
    swept()
    copy = journal_file(folder / "b.db")
    assert copy.kind == "copy"
    assert copy.copy_of == journal_file(path)
    assert IndexedTask.objects.count() == 1


def test_an_alert_outlives_the_copy_it_was_about(folder):
    path = a_journal(folder / "a.db")
    shutil.copy(path, folder / "b.db")
    swept()
    alerts.evaluate(watching_since=clock.wall())
    (folder / "b.db").unlink()
    swept()
    alerts.evaluate(watching_since=clock.wall())
    alert = Alert.objects.get(subject=str(folder / "b.db"))
    assert (alert.journal, alert.closed_at is not None) == (None, True)
    assert not JournalFile.objects.filter(path=str(folder / "b.db")).exists()


def test_a_moved_journal_keeps_its_row(folder):
    path = a_journal(folder / "a.db")
    swept()
    before = journal_file(path)
    path.rename(folder / "b.db")
    swept()
    assert JournalFile.objects.get().pk == before.pk
    assert journal_file(folder / "b.db").kind == "ok"


def test_two_files_found_together_are_one_journal_and_the_one_changed_first_is_it(folder):
    path = a_journal(folder / "own.db")
    shutil.copy(path, folder / "copy-own.db")
    swept()
    assert (journal_file(path).kind, journal_file(folder / "copy-own.db").kind) == ("ok", "copy")
    assert IndexedTask.objects.count() == 1


def test_the_file_an_agent_writes_is_the_journal_although_its_copy_was_found_first(folder):
    path = a_journal(folder / "b.db")
    shutil.copy(path, folder / "a.db")
    with held(folder / "a.db"):
        swept()
    assert journal_file(folder / "a.db").kind == "ok"
    pk = journal_file(folder / "a.db").pk
    with held(path):
        swept()
    assert (journal_file(path).pk, journal_file(path).kind) == (pk, "ok"), "what was read stays with the journal"
    assert journal_file(folder / "a.db").kind == "copy"
    assert IndexedTask.objects.count() == 1


@pytest.mark.parametrize("turns", [1, 2])
def test_a_copy_takes_the_place_of_its_original_and_nothing_is_counted_twice(folder, turns):
    path = a_journal(folder / "own.db")
    with writing(path) as connection:
        a_model_call(connection)
    swept()
    pk, spent = journal_file(path).pk, spent_in_all()
    assert spent > 0
    path.with_name("copy-own.db").write_bytes(path.read_bytes())
    swept()
    path.unlink()
    for _ in range(turns):
        swept()
    assert JournalFile.objects.get().pk == pk
    assert journal_file(folder / "copy-own.db").kind == "ok"
    assert (IndexedTask.objects.count(), spent_in_all()) == (1, spent)


def test_a_journal_renamed_while_its_copy_is_deleted_keeps_its_row(folder):
    path = a_journal(folder / "zz.db")
    with writing(path) as connection:
        a_model_call(connection)
    swept()
    pk, spent = journal_file(path).pk, spent_in_all()
    shutil.copy(path, folder / "aa.db")
    swept()
    (folder / "aa.db").unlink()
    path.rename(folder / "yy.db")
    swept()
    row = JournalFile.objects.get()
    assert (row.path, row.pk, row.kind) == (str(folder / "yy.db"), pk, "ok")
    assert (IndexedTask.objects.count(), spent_in_all()) == (1, spent)


@pytest.mark.parametrize(("ours", "theirs"), [("z", "a"), ("a", "z")])
def test_of_files_found_together_the_newer_one_stays_the_journal_whatever_its_path(tmp_path, settings, ours, theirs):
    for name in (ours, theirs):
        (tmp_path / name).mkdir()
    # Found in the order of the patterns, looked at in the order of the paths.
    settings.STEPKEEPER_JOURNALS = (str(tmp_path / ours / "*.db"), str(tmp_path / theirs / "*.db"))
    backup = a_journal(tmp_path / theirs / "x-backup.db")
    path = tmp_path / ours / "x.db"
    shutil.copy(backup, path)
    with writing(path) as connection:
        rows.a_boot(connection, 2)
        rows.a_task(connection, "later", boot=2, revision=2 * rows.BOOT + 1)
    for _ in range(3):
        swept()
        assert (journal_file(path).kind, journal_file(backup).kind) == ("ok", "copy")
    assert set(IndexedTask.objects.values_list("task_id", flat=True)) == {"t", "later"}


@pytest.fixture
def older(folder):
    """A journal that was read, and beside it a backup that holds less."""
    path = a_journal(folder / "x.db")
    shutil.copy(path, folder / "a-backup.db")
    with writing(path) as connection:
        rows.a_task(connection, "later", revision=rows.BOOT + 20)
    swept()
    return path


def test_an_older_backup_does_not_take_the_place_of_a_journal_that_is_gone_for_a_moment(folder, older):
    pk = journal_file(older).pk
    older.rename(folder / "x.tmp")
    swept()
    backup = journal_file(folder / "a-backup.db")
    assert (journal_file(older).kind, backup.kind) == ("vanished", "copy")
    assert "which is gone" in backup.sentence
    (folder / "x.tmp").rename(older)
    swept()
    assert (journal_file(older).pk, journal_file(older).kind) == (pk, "ok")
    assert journal_file(folder / "a-backup.db").kind == "copy"
    assert IndexedTask.objects.count() == 2


def test_an_older_backup_that_an_agent_writes_takes_over_as_rewound_and_gives_the_place_back(folder, older):
    pk = journal_file(older).pk
    older.rename(folder / "x.tmp")
    with held(folder / "a-backup.db"):
        swept()
    assert (journal_file(folder / "a-backup.db").pk, journal_file(folder / "a-backup.db").kind) == (pk, "rewound")
    assert set(IndexedTask.objects.values_list("task_id", flat=True)) == {"t", "later"}
    (folder / "x.tmp").rename(older)
    with held(older):
        swept()
    assert (journal_file(older).pk, journal_file(older).kind) == (pk, "ok")


def test_an_older_copy_that_was_acknowledged_is_read_anew(folder, older):
    older.unlink()
    with held(folder / "a-backup.db"):
        swept()
    assert discovery.acknowledge(journal_file(folder / "a-backup.db"))
    swept()
    assert list(IndexedTask.objects.values_list("task_id", flat=True)) == ["t"]


def test_a_journal_whose_path_another_one_took_keeps_its_row(folder):
    path = a_journal(folder / "own.db")
    swept()
    pk = journal_file(path).pk
    path.rename(folder / "own-2026.db")
    a_journal(path, task="new")
    swept()
    assert (journal_file(folder / "own-2026.db").pk, journal_file(path).kind) == (pk, "ok")
    assert sorted(IndexedTask.objects.values_list("task_id", flat=True)) == ["new", "t"]


def test_what_an_index_of_before_counted_twice_is_counted_once_again(folder):
    path = a_journal(folder / "a.db")
    swept()
    shutil.copy(path, folder / "b.db")
    swept()
    twice = journal_file(folder / "b.db")
    JournalFile.objects.filter(pk=twice.pk).update(kind="ok", copy_of=None)
    reread(twice)
    assert IndexedTask.objects.count() == 2
    swept()
    assert IndexedTask.objects.get().journal == journal_file(path)
    assert journal_file(folder / "b.db").kind == "copy"


def test_an_unreadable_journal_is_not_replaced_by_its_copy_until_it_is_moved_out(folder):
    path = a_journal(folder / "a.db")
    swept()
    shutil.copy(path, folder / "b.db")
    path.write_bytes(b"no database any more, but long enough to hold one page of it" * 100)
    swept()
    assert journal_file(folder / "b.db").kind == "copy"
    path.unlink()
    swept()
    assert journal_file(folder / "b.db").kind == "ok"
    assert IndexedTask.objects.count() == 1


def test_a_rewound_file_is_a_card_until_somebody_acknowledges_it(folder):
    path = a_journal(folder / "a.db", revision=rows.BOOT + 9)
    kept = path.read_bytes()
    with writing(path) as connection:
        rows.a_task(connection, "later", revision=rows.BOOT + 20)
    swept()
    path.write_bytes(kept)
    swept()
    row = journal_file(path)
    assert row.kind == "rewound"
    swept()
    row.refresh_from_db()
    assert row.kind == "rewound", "a second look is no acknowledgement"
    assert discovery.acknowledge(row)
    assert not discovery.acknowledge(row), "once"
    swept()
    row.refresh_from_db()
    assert row.kind == "ok"
    assert list(IndexedTask.objects.values_list("task_id", flat=True)) == ["t"]


def test_a_restored_backup_stays_a_card_although_its_agent_writes_on(folder):
    path = a_journal(folder / "a.db", revision=rows.BOOT + 9)
    kept = path.read_bytes()
    with writing(path) as connection:
        rows.a_boot(connection, 3)
        rows.a_task(connection, "later", boot=3, revision=3 * rows.BOOT + 1)
    swept()
    path.write_bytes(kept)
    swept()
    with writing(path) as connection:
        rows.a_boot(connection, 4)
        rows.a_task(connection, "after", boot=4, revision=4 * rows.BOOT + 1)
    swept()
    row = journal_file(path)
    assert (row.kind, row.rewound_from) == ("rewound", 3 * rows.BOOT + 1)
    assert discovery.acknowledge(row)
    swept()
    assert journal_file(path).kind == "ok"
    assert set(IndexedTask.objects.values_list("task_id", flat=True)) == {"t", "after"}


def test_what_a_power_cut_took_needs_no_acknowledgement_once_the_next_boot_is_there(folder):
    path = a_journal(folder / "a.db", revision=rows.BOOT + 9)
    kept = path.read_bytes()
    with writing(path) as connection:
        rows.a_task(connection, "unsynced", revision=rows.BOOT + 20)
    swept()
    path.write_bytes(kept)
    swept()
    assert journal_file(path).kind == "rewound"
    with writing(path) as connection:
        rows.a_boot(connection, 2)
        rows.a_task(connection, "after", boot=2, revision=2 * rows.BOOT + 1)
    swept()
    assert journal_file(path).kind == "ok"
    assert set(IndexedTask.objects.values_list("task_id", flat=True)) == {"t", "after"}


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
