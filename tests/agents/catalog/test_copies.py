"""Files of one journal: copied, moved, renamed, and counted once."""

from __future__ import annotations

import shutil

import pytest

from agents import alerts
from agents.models import Alert, IndexedTask, JournalFile
from journal import clock
from tests.agents.journals import a_journal, spent_in_all
from tests.builders.fleet import a_model_call, held, journal_file, reread, rows, swept, writing

pytestmark = pytest.mark.django_db


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
    alerts.evaluate_alerts(watching_since=clock.wall())
    (folder / "b.db").unlink()
    swept()
    alerts.evaluate_alerts(watching_since=clock.wall())
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
