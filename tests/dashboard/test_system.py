"""Our own database, locked by another program: a page waits a little, says so, and has changed nothing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError, connections, transaction
from django.test import Client
from django.urls import reverse

from agents.access import login_link
from agents.models import AuditEvent, JournalFile
from dashboard.environment import CHECKOUT
from journal import clock
from tests.builders.fleet import a_person
from tests.dashboard.conftest import form
from tests.dashboard.ladder import text


@pytest.fixture
def stranger(tmp_path: Path, db: None) -> Iterator[sqlite3.Connection]:
    """Another program's connection to the database, which is a file in this test."""
    memory = connections["default"]
    memory.ensure_connection()
    (tmp_path / "dashboard.db").write_bytes(memory.connection.serialize())
    with closing(sqlite3.connect(tmp_path / "dashboard.db", isolation_level=None)) as other:
        file = memory.copy()
        file.settings_dict["NAME"] = str(tmp_path / "dashboard.db")
        file.settings_dict["OPTIONS"]["timeout"] = 0.05
        connections["default"] = file
        try:
            yield other
        finally:
            file.close()
            connections["default"] = memory


def a_link() -> str:
    token = login_link.make_link(a_person("ada", "operator"), valid_for=timedelta(minutes=15))
    return reverse("sign_in_link", args=[token])


def test_a_click_while_the_database_is_locked_is_a_503_that_changed_nothing(stranger):
    link, client = a_link(), Client(raise_request_exception=False)
    stranger.execute("BEGIN IMMEDIATE")
    answer = client.post(link)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "own database is busy" in text(answer)
    assert "Nothing was changed" in text(answer)
    assert answer.headers["Cache-Control"] == "no-store"
    stranger.execute("ROLLBACK")
    assert not AuditEvent.objects.exists()
    assert client.post(link).status_code == 302, "the link is not used up"


def fill_the_audit(detail: str) -> None:
    for number in range(5000):
        AuditEvent.objects.create(at=clock.wall(), detail=detail, action=f"{number}")


@pytest.mark.parametrize(
    ("pragma", "cause"),
    [("PRAGMA query_only = ON", "its file or its folder is read-only"), ("PRAGMA max_page_count = 1", "disk is full")],
)
def test_a_decision_that_cannot_be_written_says_so_and_why(db, held, stranger, pragma, cause):
    client = Client(raise_request_exception=False)
    client.force_login(a_person("ada", "operator"))
    url = held("decide", "abandon")
    decision = form(text(client.get(url)), reason="r" * 1900)
    connections["default"].cursor().execute(pragma)
    for length in (1500, 10):  # a free page, or a page with room for a small row, would hide a full disk
        with pytest.raises(OperationalError):
            fill_the_audit("x" * length)
    answer = client.post(url, decision)
    assert (answer.status_code, cause in text(answer)) == (503, True)
    assert "No decision was recorded or sent." in text(answer)
    assert client.get("/tasks/").status_code == 200, "pages can still be read"


def test_healthz_fails_while_the_database_can_be_read_and_not_written(stranger):
    with connections["default"].cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
    told = Client().get("/healthz")
    assert told.status_code == 503
    assert "FAILS database: The dashboard's database cannot be read or written" in told.content.decode()


def test_a_lock_that_is_held_makes_healthz_say_so_at_once(stranger):
    stranger.execute("BEGIN IMMEDIATE")
    assert "FAILS database" in Client().get("/healthz").content.decode()
    stranger.execute("ROLLBACK")
    assert "ok database" in Client().get("/healthz").content.decode()


def test_reading_goes_on_while_another_program_writes(stranger):
    client = Client()
    client.force_login(a_person("ada", "operator"))
    stranger.execute("BEGIN IMMEDIATE")
    assert client.get("/tasks/").status_code == 200
    stranger.execute("ROLLBACK")


def test_a_database_that_cannot_even_be_read_is_the_same_503(stranger):
    client = Client(raise_request_exception=False)
    client.force_login(a_person("ada", "operator"))
    connections["default"].close()
    stranger.execute("PRAGMA locking_mode = EXCLUSIVE")
    stranger.execute("BEGIN IMMEDIATE")
    stranger.execute("CREATE TABLE scratch (n)")
    stranger.execute("COMMIT")
    assert client.get("/tasks/").status_code == 503


def test_any_other_fault_is_the_500_page(stranger):
    client = Client(raise_request_exception=False)
    client.force_login(a_person("ada", "operator"))
    stranger.execute("DROP TABLE agents_indexedtask")
    answer = client.get("/tasks/")
    assert answer.status_code == 500
    assert "This page failed" in text(answer)


def test_the_web_process_waits_two_seconds_and_the_others_ten(tmp_path):
    program = (
        "import dashboard.asgi; from django.db import connection as c; "
        "print(c.cursor().execute('PRAGMA busy_timeout').fetchone()[0])"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("STEPKEEPER_", "DJANGO_"))}
    said = subprocess.run(
        [sys.executable, "-c", program],
        env=clean | {"STEPKEEPER_DATA": str(tmp_path)},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert said.stdout.strip() == "2000"
    assert settings.DATABASES["default"]["OPTIONS"]["timeout"] == 10


def test_nobody_is_told_that_nothing_was_changed_after_a_kill(stranger, tmp_path, settings, monkeypatch):
    from agents.demo import story

    settings.STEPKEEPER_DEMO, settings.STEPKEEPER_DEMO_FOLDER = True, tmp_path
    row = JournalFile.objects.create(
        path=story.journal_path("messages"), writer_pid=4242, found_at=clock.wall(), seen_at=clock.wall()
    )

    def kill(agent: str) -> None:  # another program takes the lock as soon as it is free
        transaction.on_commit(lambda: stranger.execute("BEGIN IMMEDIATE"))

    monkeypatch.setattr(story, "kill", kill)
    client = Client(raise_request_exception=False)
    client.force_login(a_person("ada", "operator"))
    assert client.post("/demo/kill/messages/").status_code == 302
    stranger.execute("ROLLBACK")
    row.refresh_from_db()
    assert row.writer_pid is None
