"""A journal set back to what it was before: a card, until a person or its agent says more."""

from __future__ import annotations

import shutil

import pytest

from agents.catalog import discovery
from agents.models import IndexedTask
from tests.agents.journals import a_journal
from tests.builders.fleet import held, journal_file, rows, swept, writing

pytestmark = pytest.mark.django_db


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
    assert discovery.acknowledge_rewind(journal_file(folder / "a-backup.db"))
    swept()
    assert list(IndexedTask.objects.values_list("task_id", flat=True)) == ["t"]


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
    assert discovery.acknowledge_rewind(row)
    assert not discovery.acknowledge_rewind(row), "once"
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
    assert discovery.acknowledge_rewind(row)
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
