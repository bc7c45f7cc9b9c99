"""Acknowledging a rewound journal: shown, confirmed by a POST with a reason, audited, once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import AuditEvent, IndexedTask, JournalFile
from journal import StepHeld
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.dashboard.ladder import assert_closed, signed_in, text
from tests.journal.agent import World, opened

pytestmark = pytest.mark.django_db


@pytest.fixture
def rewound(tmp_path, settings, still_clock) -> JournalFile:
    """A journal that was read up to boot 3 and now holds boot 1 only."""
    path = tmp_path / "a.db"
    with fleet.writing(path) as connection:
        rows.a_boot(connection, 1)
        rows.a_task(connection, "kept")
    kept = path.read_bytes()
    with fleet.writing(path) as connection:
        rows.a_boot(connection, 3)
        rows.a_task(connection, "lost", boot=3, revision=3 * rows.BOOT + 1)
    fleet.watched(tmp_path, settings)
    fleet.swept()
    path.write_bytes(kept)
    fleet.swept()
    return fleet.journal_file(path)


@pytest.fixture
def copied(tmp_path, settings) -> JournalFile:
    """A copy of a journal; its agent has opened it, and holds the next intent."""
    world, path = World(), tmp_path / "a.db"
    with opened(tmp_path / "original", world) as journal, journal.task("t") as task:
        task.run(world.blind, "0")
    path.write_bytes((tmp_path / "original").read_bytes())
    send(path, world)
    fleet.watched(tmp_path, settings)
    fleet.swept()
    return fleet.journal_file(path)


def send(path: Path, world: World) -> None:
    with opened(path, world) as journal:
        journal.recover()
        with suppress(StepHeld), journal.task("t") as task:
            for name in ("0", "1"):
                task.run(world.blind, name)


def url(file: JournalFile) -> str:
    return reverse("acknowledge", args=[file.pk])


def answer(file: JournalFile, **more: str) -> dict[str, str]:
    return {"fell_from": str(file.highest_revision), "reason": "restored by ops", **more}


def test_a_card_leads_those_who_may_decide_to_the_confirmation(rewound):
    assert url(rewound) in text(signed_in("operator").get("/journals/"))
    assert url(rewound) not in text(signed_in("payload_viewer").get("/journals/"))
    page = text(signed_in("operator").get(url(rewound)))
    assert "2 tasks" in page
    assert "had been opened 3 times" in page
    rewound.refresh_from_db()
    assert rewound.kind == "rewound", "GET acknowledges nothing"


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_a_post_with_a_reason_acknowledges_and_the_file_is_read_anew(rewound, role):
    response = signed_in(role).post(url(rewound), answer(rewound))
    assert (response.status_code, response.headers["Location"]) == (302, "/journals/")
    event = AuditEvent.objects.get(action="acknowledge rewound")
    assert (event.actor_name, event.allowed, event.detail) == (role, True, "restored by ops")
    assert event.journal == rewound
    fleet.swept()
    rewound.refresh_from_db()
    assert rewound.kind == "ok"
    assert list(IndexedTask.objects.values_list("task_id", flat=True)) == ["kept"]


def test_a_second_click_acknowledges_nothing(rewound):
    client = signed_in("operator")
    client.post(url(rewound), answer(rewound))
    assert "Nothing was acknowledged" in text(client.post(url(rewound), answer(rewound), follow=True))
    assert AuditEvent.objects.filter(action="acknowledge rewound").count() == 1


def test_a_fall_that_was_not_shown_is_not_acknowledged(rewound):
    client = signed_in("operator")
    response = client.post(url(rewound), answer(rewound, fell_from=str(rewound.highest_revision - 1)), follow=True)
    assert "Nothing was acknowledged" in text(response)
    rewound.refresh_from_db()
    assert rewound.kind == "rewound"


@pytest.mark.parametrize("bad", [{"reason": " "}, {"fell_from": "x"}, {"fell_from": "-1"}, {"fell_from": str(2**63)}])
def test_a_form_that_lacks_something_is_shown_again(rewound, bad):
    assert signed_in("operator").post(url(rewound), answer(rewound, **bad)).status_code == 422
    rewound.refresh_from_db()
    assert rewound.kind == "rewound"


@pytest.mark.parametrize("role", ["viewer", "payload_viewer"])
def test_who_may_not_decide_is_refused_and_that_is_audited(rewound, role):
    assert signed_in(role).post(url(rewound), answer(rewound)).status_code == 403
    event = AuditEvent.objects.get(action="acknowledge rewound")
    assert (event.actor_name, event.allowed) == (role, False)
    rewound.refresh_from_db()
    assert rewound.kind == "rewound"


def test_the_door_is_closed_to_strangers_and_forged_forms(rewound):
    assert_closed(url(rewound), method="get")
    assert_closed(url(rewound), method="post")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(fleet.a_person("olga", "operator"))
    assert strict.post(url(rewound), answer(rewound)).status_code == 403


def test_a_journal_that_is_not_rewound_has_nothing_to_acknowledge(small_fleet):
    client = signed_in("operator")
    for method in (client.get, client.post):
        assert method(url(small_fleet.triage)).headers["Location"] == "/journals/"
    small_fleet.triage.refresh_from_db()
    assert small_fleet.triage.kind == "ok"
    assert client.get(reverse("acknowledge", args=[10**30])).status_code == 404


def test_what_was_acknowledged_is_being_read_and_asks_for_nothing_any_more(rewound):
    client = signed_in("operator")
    page = text(client.post(url(rewound), answer(rewound), follow=True))
    assert "just found; not read yet" in page
    assert url(rewound) not in page
    assert 'class="note bad"' not in page
    fleet.swept()
    assert "being read" not in text(client.get("/journals/"))


def test_a_copied_journal_is_accepted_once_for_all_its_steps_and_its_agent_goes_on(copied):
    client, path, world = signed_in("operator"), Path(copied.path), World()
    assert (copied.kind, copied.doubt) == ("ok", "copied")
    assert url(copied) in text(client.get("/journals/"))
    assert url(copied) not in text(signed_in("payload_viewer").get("/journals/"))
    page = text(client.get(url(copied)))
    assert "It is a copy of the file that its last writer wrote" in page
    assert "this journal was restored or copied" in text(client.get("/pending/")).lower()
    client.post(url(copied), {"fell_from": "0", "doubt_boot": str(copied.doubt_boot), "reason": "the disk was moved"})
    assert AuditEvent.objects.get(action="acknowledge rewound").detail == "the disk was moved"
    send(path, world)
    assert world.calls == [("blind", "1")]
    fleet.swept()
    copied.refresh_from_db()
    assert copied.doubt == ""
    assert url(copied) not in text(client.get("/journals/"))


def test_a_state_that_was_not_shown_is_not_accepted(copied):
    answered = {"fell_from": "0", "doubt_boot": str(copied.doubt_boot + 1), "reason": "why"}
    assert "Nothing was acknowledged" in text(signed_in("operator").post(url(copied), answered, follow=True))
    world = World()
    send(Path(copied.path), world)
    assert world.calls == []


def test_a_step_whose_key_is_pending_in_another_journal_names_that_journal(tmp_path, settings):
    for name in ("a.db", "b.db"):
        world = World(fail=TimeoutError())
        with opened(tmp_path / name, world) as journal, suppress(StepHeld), journal.task("same") as task:
            task.run(world.blind, "x")
    fleet.watched(tmp_path, settings)
    fleet.swept()
    page = text(signed_in("operator").get("/pending/"))
    assert page.count("The same key is pending in another journal too") == 2
    for name in ("a.db", "b.db"):
        assert f"{tmp_path / name}</code>" in page
