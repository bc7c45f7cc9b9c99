"""Cancelling a task from its page: shown first, confirmed by a POST with a reason, audited, done once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from agents.models import AuditEvent, Job
from dashboard.decisions.binding import make_binding, seal_binding
from journal import Journal, NoEffect, StepFailed, clock, tool
from journal.reader import Reader
from tests.builders import fleet
from tests.builders.asked import deliver
from tests.builders.held import TASK
from tests.dashboard.conftest import form
from tests.dashboard.ladder import assert_closed, signed_in, text
from tests.journal.agent import status

pytestmark = pytest.mark.django_db


@pytest.fixture
def cancel(held, tmp_path):
    """The address that cancels the held step's task."""
    return reverse("cancel_task", args=[fleet.journal_file(tmp_path / "hook.db").pk, TASK])


def test_the_page_names_the_task_its_agent_and_what_cancelling_ends(cancel):
    page = text(signed_in("operator").get(cancel))
    assert f"<bdi>{TASK}</bdi>" in page
    assert "<bdi>hook</bdi>, which is not running: the worker cancels the task" in page
    assert "A cancelled task never runs again" in page
    assert not Job.objects.exists()


def test_the_tasks_own_page_leads_there_for_operators_alone(cancel, held):
    task = cancel.removesuffix("cancel/")
    assert cancel in text(signed_in("operator").get(task))
    assert cancel not in text(signed_in("payload_viewer").get(task))


def test_a_confirmed_cancel_ends_the_task_in_its_journal_and_stands_in_the_audit(cancel, held, tmp_path):
    client = signed_in("operator")
    page = text(client.get(cancel))
    answer = client.post(cancel, form(page))
    job = Job.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, reverse("job", args=[job.uuid]))
    assert (job.decision, job.step_index) == ("cancel_task", None)
    assert deliver(job).state == "done"
    task = Reader(tmp_path / "hook.db").task(TASK)
    assert task is not None
    assert task.status == "cancelled"
    left = fleet.the_step(tmp_path / "hook.db", TASK)
    assert left.status == "pending", "what became of the step is for a person to say"
    said = AuditEvent.objects.filter(task_id=TASK).order_by("pk").values_list("action", "allowed")
    assert list(said) == [("request cancel_task", True), ("outcome cancel_task", True)]
    assert "Look at the task" in text(client.get(reverse("job", args=[job.uuid])))
    fleet.swept()
    gone = client.get(cancel)
    assert (gone.status_code, "The task has ended: it is cancelled." in text(gone)) == (409, True)
    assert cancel not in text(client.get(cancel.removesuffix("cancel/")))


def test_the_same_form_twice_and_two_forms_at_once_are_one_job(cancel):
    client = signed_in("operator")
    first, second = text(client.get(cancel)), text(client.get(cancel))
    places = {client.post(cancel, form(page)).headers["Location"] for page in (first, first, second)}
    assert len(places) == Job.objects.count() == 1


def test_without_a_reason_nothing_is_asked_for(cancel):
    client = signed_in("operator")
    answer = client.post(cancel, form(text(client.get(cancel))) | {"reason": " "})
    assert (answer.status_code, Job.objects.exists()) == (422, False)
    assert "Nothing was cancelled." in text(answer)


@pytest.mark.parametrize("role", ["viewer", "payload_viewer"])
def test_who_may_not_decide_is_refused_and_audited(cancel, role):
    client = signed_in(role)
    assert (client.get(cancel).status_code, client.post(cancel, {}).status_code) == (403, 403)
    refused = AuditEvent.objects.filter(action="request cancel_task", allowed=False)
    assert refused.count() == 2
    assert not Job.objects.exists()


def test_nobody_gets_in_without_signing_in(cancel):
    assert_closed(cancel, method="get")


@pytest.mark.parametrize("change", ["user", "task", "kind", "age", "seal"])
def test_a_form_made_for_something_else_or_too_long_ago_cancels_nothing(cancel, tmp_path, change, monkeypatch):
    client = signed_in("operator")
    user = fleet.a_person("operator", "operator")
    made = {
        "journal_id": fleet.journal_file(tmp_path / "hook.db").pk,
        "task_id": TASK if change != "task" else "another",
        "step_index": -1,
        "kind": "cancel_task" if change != "kind" else "abandon",
        "key": "",
        "payload_sha256": "",
        "dispatches": 0,
        "user_id": user.pk + (change == "user"),
    }
    seal = seal_binding(make_binding(**made))
    if change == "age":
        now = clock.wall()
        monkeypatch.setattr(clock, "wall", lambda: now + timedelta(hours=1))
    answer = client.post(cancel, {"binding": "x" if change == "seal" else seal, "reason": "It is not wanted."})
    assert (answer.status_code, Job.objects.exists()) == (409, False)
    assert AuditEvent.objects.filter(action="request cancel_task", allowed=False).count() == 1


def test_an_unknown_task_is_a_404(cancel):
    other = cancel.replace(cancel.split("/")[-3], "bm9uZQ")
    assert signed_in("operator").get(other).status_code == 404


@pytest.fixture
def failed(tmp_path, settings):
    """The journal of a task whose last step failed, and the address that retries the task."""
    fleet.watched(tmp_path, settings)
    path = tmp_path / "mail.db"
    sent: list[str] = []

    @tool(effect="mutating")
    def send(call, text: str) -> str:
        sent.append(call.key)
        if len(sent) == 1:
            raise NoEffect("the address is unknown")
        return text

    def run() -> None:
        with Journal(path, agent="mail", tools=[send]) as opened, opened.task("t") as task:
            task.run(send, text="hello")

    with pytest.raises(StepFailed):
        run()
    fleet.swept()
    return reverse("retry_task", args=[fleet.journal_file(path).pk, "t"]), path, run, sent


def test_a_failed_task_is_retried_from_its_page_under_the_same_key(failed):
    retry, path, run, sent = failed
    client = signed_in("operator")
    assert retry in text(client.get(retry.removesuffix("retry/")))
    page = text(client.get(retry))
    assert "The task runs again with the same steps and keys." in page
    client.post(retry, form(page))
    assert deliver(Job.objects.get()).state == "done"
    assert status(path, "t") == "queued"
    run()
    assert (status(path, "t"), len(sent), len(set(sent))) == ("completed", 2, 1)
    said = AuditEvent.objects.order_by("pk").values_list("action", "allowed")
    assert list(said) == [("request retry_task", True), ("outcome retry_task", True)]


def test_only_a_failed_task_offers_a_retry(cancel, held, failed):
    retry = cancel.replace("/cancel/", "/retry/")
    client = signed_in("operator")
    assert retry not in text(client.get(cancel.removesuffix("cancel/")))
    answer = client.get(retry)
    assert answer.status_code == 409
    assert "Only a failed task is retried" in text(answer)
    assert failed[0] not in text(signed_in("payload_viewer").get(failed[0].removesuffix("retry/")))
