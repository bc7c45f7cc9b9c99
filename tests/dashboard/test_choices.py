"""What is offered about a pending step is what works; what is not offered says why, and is refused when asked for."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from agents.fleet import queries
from agents.models import AuditEvent, Job, PendingIntent
from journal.providers.parse import canonical_json, python_profile
from tests.builders import fleet
from tests.builders.asked import ask, deliver
from tests.builders.fleet import rows
from tests.dashboard.ladder import signed_in, text

pytestmark = pytest.mark.django_db
BUTTONS = re.compile(r"(Query status now|Approve replay|It happened|It did not happen|Abandon)(?:…|<)")
INTENT = ["It did not happen", "It happened", "Abandon", "Approve replay"]  # safest first
ASKS = canonical_json({"status": {"request": "GET /o/{key}", "interpret": [{"status": 200, "is": "exists"}]}})


@pytest.fixture
def path(tmp_path, settings):
    fleet.watched(tmp_path, settings)
    return tmp_path / "a.db"


@pytest.fixture
def pending(path):
    """Make one pending step of task `t`; returns the addresses of its pages."""

    def make(*, task_status="waiting", attempts=0, **cells):
        with fleet.writing(path) as connection:
            rows.a_boot(connection, ended_at=rows.WHEN, ended="SIGKILL")
            rows.a_task(connection, status=task_status)
            unfinished = {"output_json": None, "output_bytes": None, "committed_boot": None, "duration": None}
            rows.a_step(connection, status="pending", **{**unfinished, **cells})
            for number in range(1, attempts + 1):
                rows.an_attempt(connection, attempt=number, verdict="unknown", kind="lost_answer")
        fleet.swept()
        pk = fleet.journal_file(path).pk
        return lambda name="step", *rest: reverse(name, args=[pk, "t", 0, *rest])

    return make


def test_a_key_that_was_seen_before_is_marked_committed_or_abandoned(pending):
    url = pending(hold_reason="key_seen_before", attempts=1)
    offered, queue = on_both_pages(url)
    assert offered == ["It happened", "Abandon"]
    assert "the provider knew the key before anything was sent" in queue


def buttons(page):
    return BUTTONS.findall(page)


def on_both_pages(url):
    """The step's buttons, which must be the pending list's too; and the pending page's text."""
    client = signed_in("operator")
    step, queue = text(client.get(url())), text(client.get("/pending/"))
    assert buttons(step) == buttons(queue)
    return buttons(step), queue


def decided(url, kind):
    client = signed_in("operator")
    page = text(client.get(url("decide", kind)))
    found = re.search(r'name="binding" value="([^"]+)"', page)
    assert found
    answer = client.post(url("decide", kind), {"binding": found[1], "reason": "The disk was full."})
    assert answer.status_code == 302
    return deliver(Job.objects.get())


@pytest.mark.parametrize("effect", ["read_only", "model"])
def test_a_quarantined_step_without_an_effect_waits_for_a_person_on_every_page(pending, effect):
    url = pending(effect=effect, hold_reason="quarantined", starts=3)
    found, queue = on_both_pages(url)
    assert found == ["Abandon", "Approve replay"]
    assert "One intent needs your decision." in queue
    assert "Nobody to ask: the step changes nothing outside." in queue
    line = queries.list_pending().items[0]
    assert (line.hold_reason, line.dispatches, line.effect) == ("quarantined", 0, effect)
    assert "1 intent needs your decision" in text(signed_in().get("/"))


@pytest.mark.parametrize("effect", ["read_only", "model"])
def test_a_step_without_an_effect_that_is_not_held_is_nobodys_business(pending, effect):
    url = pending(effect=effect)
    assert not PendingIntent.objects.exists()
    assert not buttons(text(signed_in("operator").get(url())))
    assert signed_in("operator").get(url("decide", "replay")).status_code == 409


@pytest.mark.parametrize(("effect", "costs"), [("read_only", False), ("model", True)])
def test_the_confirmation_says_that_it_only_starts_again_and_what_that_costs(pending, effect, costs):
    url = pending(effect=effect, hold_reason="quarantined", starts=3, tool_name="look_up")
    page = text(signed_in("operator").get(url("decide", "replay")))
    assert "hanges nothing outside" in page
    assert ("costs tokens again" in page.replace("\n", " ")) == costs
    assert "Approve replay: starts look_up again" in page
    assert "3 starts without an end" in page
    assert "may have left this machine" not in page
    assert "0 dispatches" in page


def test_a_quarantined_read_that_a_person_replays_starts_afresh(path, pending):
    url = pending(effect="read_only", hold_reason="quarantined", starts=3)
    job = decided(url, "replay")
    assert (job.state, "starts again when its task runs" in job.sentence) == ("done", True)
    step = fleet.the_step(path, "t")
    assert (step.status, step.hold_reason, step.starts) == ("pending", None, 0)
    fleet.swept()
    assert not PendingIntent.objects.exists()
    assert "attempt 0" not in text(signed_in("operator").get(url()))


def test_a_quarantined_model_step_that_a_person_abandons_has_ended(path, pending):
    url = pending(effect="model", hold_reason="quarantined", starts=3)
    assert decided(url, "abandon").state == "done"
    assert fleet.the_step(path, "t").status == "abandoned"


@pytest.mark.parametrize("kind", ["mark_committed", "mark_not_applied"])
def test_what_makes_no_sense_for_a_step_without_an_effect_is_refused(pending, kind):
    url = pending(effect="read_only", hold_reason="quarantined", starts=3)
    answer = signed_in("operator").get(url("decide", kind))
    assert answer.status_code == 409
    assert "changes nothing outside" in text(answer)


@pytest.mark.parametrize("effect", ["read_only", "model"])
def test_a_question_that_no_page_offers_is_refused_by_its_address_too(pending, effect):
    answer = signed_in("operator").get(pending(effect=effect)("query"))
    assert (answer.status_code, "changes nothing outside" in text(answer)) == (409, True)
    assert "Nothing was asked: nobody can be asked about the step" in text(answer)


@pytest.mark.parametrize("status", ["cancelled", "failed", "completed"])
def test_an_intent_of_an_ended_task_is_sent_no_more_and_says_so(pending, status):
    url = pending(task_status=status, attempts=1)
    found, queue = on_both_pages(url)
    assert found == INTENT[:-1]
    assert f"No replay: its task is {status}" in queue
    assert f"Its task is {status}: recovery leaves the step as it is." in queue
    assert "One intent needs your decision." in queue
    answer = signed_in("operator").get(url("decide", "replay"))
    assert (answer.status_code, f"its task is {status}" in text(answer)) == (409, True)


def test_a_form_opened_before_its_task_was_cancelled_decides_nothing(path, pending):
    url = pending(attempts=1)
    client = signed_in("operator")
    found = re.search(r'name="binding" value="([^"]+)"', text(client.get(url("decide", "replay"))))
    assert found
    with fleet.writing(path) as connection:
        connection.execute("UPDATE agent_task SET status = 'cancelled'")
    answer = client.post(url("decide", "replay"), {"binding": found[1], "reason": "It is wanted."})
    assert (answer.status_code, "its task is cancelled" in text(answer)) == (409, True)
    assert not Job.objects.exists()
    assert AuditEvent.objects.get(action="request replay").allowed is False


@pytest.mark.parametrize("status", ["cancelled", "waiting"])
def test_a_question_about_an_ended_task_does_not_promise_that_anything_goes_on(pending, status):
    asked = {"profile_json": ASKS, "transport": "http", "provider": "forge"}
    page = text(signed_in("operator").get(pending(task_status=status, attempts=1, **asked)("query")))
    is_over = "nothing goes on by it and nothing is sent" in page
    assert (is_over, "the stored bytes are sent again" in page) == (status == "cancelled", status == "waiting")


def test_an_intent_of_a_cancelled_task_can_still_be_abandoned(path, pending):
    url = pending(task_status="cancelled", attempts=1)
    assert decided(url, "abandon").state == "done"
    assert fleet.the_step(path, "t").status == "abandoned"


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({}, "the tool has no status= function"),
        ({"transport": "http", "provider": "generic_none"}, "the profile generic_none has no status query"),
        ({"profile_json": "{"}, "the tool has no status= function"),
        ({"profile_json": ASKS, "transport": "http", "provider": "forge"}, ""),
        ({"profile_json": python_profile(None, True, None).canonical}, ""),
    ],
)
def test_a_query_is_offered_where_somebody_can_be_asked_and_only_there(pending, cells, why):
    url = pending(attempts=1, hold_reason="unknown_outcome", **cells)
    found, queue = on_both_pages(url)
    assert found == (INTENT if why else ["Query status now", *INTENT])
    assert (f"Nobody to ask: {why}" in queue) == bool(why)
    answer = signed_in("operator").get(url("query"))
    assert answer.status_code == (409 if why else 200)
    assert why in text(answer)
    assert not Job.objects.exists()


def test_a_question_that_nobody_can_be_asked_any_more_asks_nothing(path, pending):
    url = pending(attempts=1, hold_reason="unknown_outcome", profile_json=ASKS, transport="http", provider="forge")
    client = signed_in("operator")
    found = re.search(r'name="binding" value="([^"]+)"', text(client.get(url("query"))))
    assert found
    with fleet.writing(path) as connection:
        connection.execute("UPDATE agent_step_journal SET profile_json = '{}'")
    answer = client.post(url("query"), {"binding": found[1], "reason": "It is wanted."})
    assert (answer.status_code, "the profile forge has no status query" in text(answer)) == (409, True)
    assert not Job.objects.exists()
    event = AuditEvent.objects.get(action="request query_status")
    assert (event.actor_name, event.allowed, "no status query" in event.detail) == ("operator", False, True)


def test_while_a_status_is_asked_for_only_the_question_is_not_offered_again(pending, path):
    url = pending(attempts=1, hold_reason="unknown_outcome", profile_json=ASKS, transport="http", provider="forge")
    question = ask(path, kind="query_status", decision=None)
    found, queue = on_both_pages(url)
    assert found == INTENT
    assert "Already decided" not in queue
    assert f'Its status is being asked for: <a href="{reverse("job", args=[question.uuid])}">' in queue
    decision = ask(path)
    step, queue = text(signed_in("operator").get(url())), text(signed_in("operator").get("/pending/"))
    assert (buttons(step), buttons(queue)) == ([], [])
    href = reverse("job", args=[decision.uuid])
    assert f'Already decided: <a href="{href}">' in queue
    assert href in step


def test_a_mark_that_a_key_seen_before_forbids_says_that_and_not_that_nothing_changes(pending):
    url = pending(hold_reason="key_seen_before", attempts=1)
    refused = signed_in("operator").get(url("decide", "mark_not_applied"))
    assert refused.status_code == 409
    assert "the provider knew the key before anything was sent" in text(refused)
    assert "changes nothing outside" not in text(refused)


@pytest.mark.parametrize(("role", "sees_less"), [("viewer", True), ("payload_viewer", False)])
def test_who_may_not_decide_is_told_who_may_and_what_is_kept_from_them(pending, role, sees_less):
    page = text(signed_in(role).get(pending(attempts=1, hold_reason="unknown_outcome")()))
    assert "An operator can decide this step." in page
    assert ("You see its state, sizes and hashes." in page) == sees_less


def test_nobody_is_sent_to_an_operator_where_there_is_nothing_to_decide(pending):
    page = text(signed_in("viewer").get(pending(hold_reason="diverged")()))
    assert "An operator can decide" not in page
