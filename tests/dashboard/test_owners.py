"""Whose files the dashboard reads: what another user's journal looks like on its page, and what root says of itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.catalog import discovery
from agents.models import IndexedTask
from journal.reader import JournalState, inspect
from tests.builders import fleet
from tests.dashboard.ladder import signed_in, text
from tests.journal.child import as_nobody, open_folder

pytestmark = pytest.mark.django_db


@pytest.mark.accept
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_what_another_user_may_not_read_is_a_card_and_the_others_are_read(settings, monkeypatch):
    def inspected(path: str) -> JournalState:
        """What a process of uid 65534 sees there."""
        if path.endswith("ours.db"):
            return inspect(path)
        kind, sentence, hint = as_nobody(Path(path))
        return JournalState(kind=kind, sentence=sentence, hint=hint, path=path)

    monkeypatch.setattr(discovery, "inspect_path", inspected)
    with open_folder() as folder:
        for name in ("ours", "roots", "closed"):
            with fleet.writing(folder / f"{name}.db") as connection:
                fleet.rows.a_task(connection, f"task of {name}")
        os.chown(folder / "closed.db", 65534, 65534)
        (folder / "closed.db").chmod(0)
        fleet.watched(folder, settings)
        fleet.swept()
        page = text(signed_in().get("/journals/"))
    assert page.count('class="note bad"') == 2
    assert "belongs to root" in page
    assert "unreadable" in page
    assert [task.task_id for task in IndexedTask.objects.all()] == ["task of ours"]


@pytest.mark.accept
@pytest.mark.parametrize(("user", "says"), [(0, True), (1000, False)])
def test_a_dashboard_run_by_root_says_that_it_treats_every_owner_as_its_own(db, monkeypatch, user, says):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("runs as root and treats every owner's files as its own" in text(signed_in().get("/journals/"))) is says
