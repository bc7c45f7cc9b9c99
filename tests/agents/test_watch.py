"""The watch loop: nothing that goes wrong with one journal, or for a moment with our database, ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from django.db import OperationalError

from agents.index.tail import read_slices
from agents.models import Beat, IndexedModelCall, IndexedTask, Job, JournalFile
from agents.watch import Watch
from tests.builders.fleet import a_run, held, journal_file, many_tasks, rows, writing

MANAGE = [sys.executable, "manage.py"]


def a_journal(path, task="t"):
    with writing(path) as connection:
        rows.a_boot(connection)
        rows.a_task(connection, task)
    return path


@pytest.mark.django_db
def test_one_turn_finds_reads_samples_beats_and_asks_the_worker(folder):
    path = a_journal(folder / "a.db")
    Watch().turn(1000.0)
    assert journal_file(path).read_at is not None
    assert journal_file(path).file_bytes > 0
    assert IndexedTask.objects.count() == 1
    assert Beat.objects.filter(name="watch").exists()
    assert Job.objects.get().kind == "canary"


@pytest.mark.django_db
def test_a_new_journal_is_found_and_sampled_though_the_next_sample_is_not_due(folder):
    watch = Watch()
    watch.turn(1000.0)
    path = a_journal(folder / "late.db")
    watch.turn(1002.0)
    assert not JournalFile.objects.exists()
    watch.turn(1003.0)
    assert (journal_file(path).kind, journal_file(path).file_bytes) == ("ok", path.stat().st_size)


@pytest.mark.django_db
def test_only_changed_journals_are_opened(folder, monkeypatch):
    path = a_journal(folder / "a.db")
    other = a_journal(folder / "b.db")
    for one in (path, other):
        os.utime(one, ns=(0, time.time_ns() - 10**9))
    watch = Watch()
    watch.find()
    watch.sweep()
    opened = []
    read = read_slices

    def noted(row):
        opened.append(row.path)
        return read(row)

    monkeypatch.setattr("agents.watch.read_slices", noted)
    watch.sweep()
    assert opened == []
    with writing(path) as connection:
        rows.a_task(connection, "new", revision=rows.BOOT + 9)
    watch.sweep()
    assert opened == [str(path)]


@pytest.mark.django_db
def test_a_journal_that_breaks_the_reading_is_one_card_and_comes_back(folder, monkeypatch):
    bad, good = a_journal(folder / "a.db", "bad"), a_journal(folder / "b.db", "good")
    read = read_slices

    def broken(row):
        if row.path == str(bad):
            raise RuntimeError("secret text of a traceback")
        return read(row)

    with monkeypatch.context() as patched:
        patched.setattr("agents.watch.read_slices", broken)
        watch = Watch()
        watch.find()
        watch.sweep()
        row = journal_file(bad)
        assert (row.kind, row.sentence) == ("failed", "Reading it failed with RuntimeError.")
        assert journal_file(good).kind == "ok"
        assert list(IndexedTask.objects.values_list("task_id", flat=True)) == ["good"]
    watch.tend()
    watch.sweep()
    assert journal_file(bad).kind == "ok"
    assert IndexedTask.objects.count() == 2


@pytest.mark.django_db
def test_a_journal_whose_sums_overflow_is_one_card_and_the_others_are_read(folder, caplog):
    bad, good = a_journal(folder / "a.db", "bad"), a_journal(folder / "b.db", "good")
    with writing(bad) as connection:
        for index_ in range(2):
            a_run(connection, "bad", index_, served_through=2**62)
    IndexedModelCall.objects.all().delete()
    watch = Watch()
    watch.find()
    for number in range(2):
        IndexedModelCall.objects.create(
            journal=journal_file(bad), task_id="bad", step_index=number, call=0, state="exact", cost_pico=2**62
        )
    with caplog.at_level("ERROR"):
        for _ in range(3):
            watch.sweep()
            watch.tend()
    assert journal_file(bad).sentence == "Reading it failed with OperationalError."
    assert journal_file(good).kind == "ok"
    assert list(IndexedTask.objects.values_list("task_id", flat=True)) == ["good"]
    assert len(caplog.records) == 1, "the log is told once, not at each try"


@pytest.mark.django_db
def test_a_database_that_cannot_work_is_no_fault_of_the_journal(folder, monkeypatch):
    path = a_journal(folder / "a.db")
    watch = Watch()
    watch.find()
    failure = OperationalError("database is locked")
    failure.__cause__ = sqlite3.OperationalError("database is locked")

    def locked(_row):
        raise failure

    monkeypatch.setattr("agents.watch.read_slices", locked)
    with pytest.raises(OperationalError):
        watch.sweep()
    assert journal_file(path).kind == "ok"


@pytest.mark.django_db
def test_a_sweep_that_is_cut_short_goes_on_where_it_ended(folder, monkeypatch):
    for name in ("a.db", "b.db", "c.db"):
        a_journal(folder / name, name)
    watch = Watch()
    watch.find()
    monkeypatch.setattr("agents.watch.SWEEP_AT_MOST", 0.0)
    monkeypatch.setattr("agents.watch.SLICES", 1000)
    for read in (1, 2, 3):
        watch.sweep()
        assert IndexedTask.objects.count() == read


@pytest.mark.django_db
def test_the_pid_of_a_killed_idle_agent_is_gone_at_the_next_sweep(folder):
    path = a_journal(folder / "a.db")
    with writing(path) as connection:
        connection.execute("UPDATE agent_task SET status = 'completed'")
    os.utime(path, ns=(0, time.time_ns() - 10**9))
    watch = Watch()
    with held(path) as pid:
        watch.find()
        watch.sweep()
        assert journal_file(path).writer_pid == pid
    assert journal_file(path).signature, "nothing in the file will have changed"
    watch.sweep()
    assert journal_file(path).writer_pid is None


@pytest.mark.django_db
def test_a_long_sweep_is_no_silence(folder, monkeypatch):
    for name in ("a.db", "b.db", "c.db"):
        a_journal(folder / name)
    monkeypatch.setattr("agents.watch.BEAT", 0.0)
    watch = Watch()
    watch.find()
    beats: list[object] = []
    monkeypatch.setattr("agents.health.record_beat", beats.append)
    watch.sweep()
    assert set(beats) == {"watch"}
    assert len(beats) >= 3 * 2, "one before each slice"


@pytest.mark.django_db
def test_a_killed_agents_task_is_crashed_at_the_next_sweep(folder):
    path = a_journal(folder / "a.db")
    watch = Watch()
    with held(path):
        watch.find()
        watch.sweep()
        assert IndexedTask.objects.get().state == "hung"
    watch.sweep()
    assert IndexedTask.objects.get().state == "crashed"
    assert journal_file(path).writer_pid is None


@pytest.mark.django_db
def test_a_locked_database_is_tried_again_at_the_next_turn(folder):
    watch = Watch()
    tries = []

    def locked():
        tries.append(1)
        if len(tries) == 1:
            raise OperationalError("database is locked")

    watch._duties = (("find", 60.0, locked),)
    for now in (1000.0, 1001.0, 1002.0):
        watch.turn(now)
    assert len(tries) == 2


@pytest.mark.django_db
def test_a_stop_in_the_middle_of_a_turn_ends_the_turn(folder):
    watch = Watch()
    done = []
    watch._duties = (("one", 1.0, watch.stop), ("two", 1.0, lambda: done.append(1)))
    watch.turn(1000.0)
    assert not done


@pytest.fixture
def operated(tmp_path):
    """The environment of watch as a process of its own, on a folder of journals."""
    (tmp_path / "agents").mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith("STEPKEEPER_")} | {
        "STEPKEEPER_DATA": str(tmp_path / "data"),
        "STEPKEEPER_JOURNALS": str(tmp_path / "agents" / "*.db"),
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    subprocess.run([*MANAGE, "migrate", "--verbosity", "0"], env=env, check=True)
    return env


@pytest.mark.slow
def test_the_command_watches_and_ends_at_sigterm(tmp_path, operated):
    path = a_journal(tmp_path / "agents" / "a.db")
    with subprocess.Popen([*MANAGE, "watch"], env=operated) as watch:
        try:
            _soon(lambda: _indexed(tmp_path / "data" / "dashboard.db") == [("t", str(path))])
            second = subprocess.run([*MANAGE, "watch"], env=operated, capture_output=True, text=True, check=False)
            assert second.returncode != 0
            assert f"its watch loop runs as pid {watch.pid}" in second.stderr
            late = a_journal(tmp_path / "agents" / "late.db", "late")
            _soon(lambda: ("late", str(late)) in _indexed(tmp_path / "data" / "dashboard.db"))
            watch.send_signal(signal.SIGTERM)
            assert watch.wait(timeout=10) == 0
        finally:
            watch.kill()


@pytest.mark.slow
def test_a_journal_of_many_tasks_and_pending_intents_is_read_on_where_a_kill_ended_it(tmp_path, operated):
    path, database = tmp_path / "agents" / "many.db", tmp_path / "data" / "dashboard.db"
    many_tasks(path, tasks=4000, pending=1000)
    counted = "SELECT (SELECT COUNT(*) FROM agents_indexedtask), (SELECT COUNT(*) FROM agents_pendingintent)"
    cursor = "SELECT indexed_revision FROM agents_journalfile"
    with subprocess.Popen([*MANAGE, "watch"], env=operated) as first:
        _soon(lambda: _asked(database, counted)[0] > 0)
        first.kill()
    (at_kill, _), (reached,) = _asked(database, counted), _asked(database, cursor)
    assert at_kill < 4000
    assert reached > rows.BOOT, "what was read stays read"
    with subprocess.Popen([*MANAGE, "watch"], env=operated) as second:
        try:
            _soon(lambda: _asked(database, "SELECT COUNT(*) FROM agents_beat")[0] == 1)
            _soon(lambda: _asked(database, "SELECT read_at FROM agents_journalfile")[0] is not None)
            assert _asked(database, counted) == (4000, 1000)
        finally:
            second.kill()


@pytest.mark.slow
def test_a_journal_whose_reading_hangs_is_a_card_and_the_others_are_read(tmp_path, operated):
    """Hung calls are made by a sleep: a kernel that answers no more cannot be made in a test."""
    bad, good = a_journal(tmp_path / "agents" / "a.db", "bad"), a_journal(tmp_path / "agents" / "b.db", "good")
    script = """
import sys, time
import django; django.setup()
from agents import watch
read = watch.read_slices
watch.read_slices = lambda row: time.sleep(60) if row.path == sys.argv[1] else read(row)
watch.HUNG = 0.5
watch.Watch().run()
"""
    database = tmp_path / "data" / "dashboard.db"
    hung = [sys.executable, "-c", script, str(bad)]
    assert subprocess.run(hung, env=operated, timeout=60, check=False).returncode == 1
    kinds = "SELECT kind, sentence FROM agents_journalfile WHERE path LIKE '%a.db'"
    assert _asked(database, kinds) == ("hung", "Reading it took over 0.5 s and was cut off.")
    with subprocess.Popen(hung, env=operated) as watch:
        try:
            _soon(lambda: _indexed(database) == [("good", str(good))])
            assert watch.poll() is None, "the file that hung is left alone"
            assert _asked(database, kinds)[0] == "hung"
        finally:
            watch.kill()


def _asked(database, question):
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as connection:
        return connection.execute(question).fetchone()


def _indexed(database):
    with sqlite3.connect(database) as connection:
        return connection.execute(
            "SELECT t.task_id, j.path FROM agents_indexedtask t JOIN agents_journalfile j ON j.id = t.journal_id"
        ).fetchall()


def _soon(is_so, *, within=40.0):
    deadline = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)
