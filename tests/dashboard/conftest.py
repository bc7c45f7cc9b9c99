"""What pages are looked at with: one small fleet for every page, a held step, and the form that decides about it."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.urls import reverse

from agents.models import JournalFile
from journal import clock
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.builders.held import TASK, a_held_step, hook

NOW = datetime(2026, 11, 1, 10, 20, tzinfo=UTC)
HOSTILE = '<div hx-post="/approve/1" hx-trigger="load">\u202e{{ 7*7 }}</div>'
KINDS = ("replay", "mark_committed", "mark_not_applied", "abandon")


@dataclass(frozen=True, slots=True)
class Fleet:
    """Where the fleet lies and what the dashboard calls it."""

    folder: Path
    triage: JournalFile

    def task(self, task_id: str = "report/42?") -> str:
        return reverse("task", args=[self.triage.pk, task_id])

    def step(self, index: int, task_id: str = "report/42?", name: str = "step") -> str:
        return reverse(name, args=[self.triage.pk, task_id, index])


@pytest.fixture
def still_clock(monkeypatch) -> datetime:
    """Ages on a page do not move between two requests of one test."""
    monkeypatch.setattr(clock, "wall", lambda: NOW)
    return NOW


@pytest.fixture
def small_fleet(tmp_path, settings, still_clock, db) -> Fleet:
    """`report/42?`: killed in step 2, resumed by boot 2; `hostile`: a held intent with hostile names."""
    settings.STEPKEEPER_JOURNALS = ()
    path = tmp_path / "triage.db"
    with fleet.writing(path) as connection:
        rows.a_boot(connection, 1, ended_at=_at(6), ended="SIGKILL")
        rows.a_boot(connection, 2, started_at=_at(8), pid=4243)
        rows.a_task(connection, "report/42?", status="completed", ended_at=_at(12), updated_at=_at(12))
        rows.a_step(connection, "report/42?", 0, tool_name="read_report", effect="read_only", updated_at=_at(1))
        rows.a_step(connection, "report/42?", 1, tool_name="call_model", effect="model", updated_at=_at(3))
        fleet.a_model_call(connection, "report/42?", 1)
        rows.a_step(connection, "report/42?", 2, updated_at=_at(9), created_at=_at(5), committed_boot=2, duration=None)
        rows.an_attempt(connection, "report/42?", 2, 1, started_at=_at(5), ended_at=None, verdict=None, kind=None)
        rows.an_attempt(connection, "report/42?", 2, 2, boot=2, started_at=_at(8), ended_at=_at(9))
        fleet.a_run(connection, "report/42?", 0, ended_at=_at(6))
        fleet.a_run(connection, "report/42?", 1, boot=2, started_at=_at(8), served_through=1)
        rows.a_task(
            connection,
            HOSTILE,
            status="waiting",
            wait_kind="held",
            wait_step_task=HOSTILE,
            wait_step_index=0,
            wait_hold="no_key_no_status",
        )
        rows.a_step(
            connection,
            HOSTILE,
            0,
            tool_name=HOSTILE,
            status="pending",
            output_json=None,
            output_bytes=None,
            hold_reason="no_key_no_status",
            arguments={"text": HOSTILE},
            committed_boot=None,
            duration=None,
        )
        rows.an_attempt(connection, HOSTILE, 0, 1, ended_at=None, verdict=None, kind=None)
    fleet.watched(tmp_path, settings)
    fleet.swept()
    return Fleet(tmp_path, fleet.journal_file(path))


@pytest.fixture
def held(tmp_path, settings):
    """A held step of a webhook that knows neither keys nor status, and its page."""
    path = tmp_path / "hook.db"
    with contextlib.closing(hook()) as server:
        a_held_step(path, server.url)
        fleet.watched(tmp_path, settings)
        fleet.swept()
        pk = fleet.journal_file(path).pk
        yield lambda name="step", *rest: reverse(name, args=[pk, TASK, 0, *rest])


def sealed(page: str) -> str:
    found = re.search(r'name="binding" value="([^"]+)"', page)
    assert found
    return found[1]


def form(page: str, **more: str) -> dict[str, str]:
    return {"binding": sealed(page), "reason": "The channel shows no such message.", **more}


def _at(seconds: int) -> str:
    return f"2026-11-01T10:00:{seconds:02d}.000000Z"
