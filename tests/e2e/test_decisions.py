"""The other decisions, each with a real browser: what the handler gets, and what is never sent."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from tests.crash.looking import rows, step
from tests.e2e.desk import ALIVE, ERRAND, KILLED
from tests.e2e.operator import REASON, approve, open_form, open_step, press, say_why

pytestmark = [pytest.mark.e2e, pytest.mark.accept, pytest.mark.xdist_group("desk")]


def what_the_handler_returned(desk, task_id):
    [task] = rows(desk.journal(ALIVE), "SELECT output_json FROM agent_task WHERE task_id = ?", task_id)
    return json.loads(task["output_json"])["done"]


def test_marked_committed_gives_the_handler_the_output_a_person_typed(desk, sign_in):
    desk.hold("marked-committed")
    page = sign_in("ada", statuses={422})
    open_form(page, "marked-committed", "It happened")
    say_why(page)
    page.get_by_label("Output (JSON)").fill("{'id': 7}")
    page.get_by_label("Reference").fill("order 7")
    press(page, "It happened")
    expect(page.get_by_role("alert")).to_contain_text("This is not JSON")
    expect(page.get_by_label("Reason")).to_have_value(REASON)
    page.get_by_label("Output (JSON)").fill('{"id": 7}')
    press(page, "It happened")
    expect(page.locator("#job-now")).to_contain_text("Applied.")
    desk.wait_status("marked-committed")
    assert what_the_handler_returned(desk, "marked-committed") == {"id": 7}
    page.get_by_role("link", name="Look at the step").click()
    expect(page.locator("#step-now")).to_contain_text(re.compile(r"ada: it happened · \d\d:\d\d:\d\d"))
    expect(page.locator("#step-now")).to_contain_text("Reference: order 7")
    assert desk.effects("marked-committed") == []


def test_marked_not_applied_is_sent_only_by_a_separate_approval_under_the_same_key(desk, sign_in):
    desk.hold("not-applied")
    before = step(desk.journal(ALIVE), "not-applied", ERRAND)
    page = sign_in("ada")
    open_form(page, "not-applied", "It did not happen")
    say_why(page)
    press(page, "It did not happen")
    expect(page.locator("#job-now")).to_contain_text("Applied.")
    page.get_by_role("link", name="Look at the step").click()
    expect(page.locator("#step-now")).to_contain_text("ada: it did not happen")
    desk.wait_held("not-applied")
    assert step(desk.journal(ALIVE), "not-applied", ERRAND)["status"] == "pending"
    assert desk.effects("not-applied") == []
    approve(page, "not-applied")
    desk.wait_status("not-applied")
    after = step(desk.journal(ALIVE), "not-applied", ERRAND)
    assert len(desk.effects("not-applied")) == 1
    for column in ("idempotency_key", "payload_sha256", "arguments_json"):
        assert before[column] == after[column]


def test_the_handler_of_an_abandoned_step_sees_why(desk, sign_in):
    desk.hold("abandoned")
    page = sign_in("ada")
    open_form(page, "abandoned", "Abandon")
    say_why(page, reason="nobody waits for it any more")
    press(page, "Abandon")
    expect(page.locator("#job-now")).to_contain_text("Applied.")
    desk.wait_status("abandoned")
    assert "nobody waits for it any more" in what_the_handler_returned(desk, "abandoned")["abandoned"]
    page.get_by_role("link", name="Look at the step").click()
    expect(page.locator(".trial")).to_contain_text("abandoned")
    assert desk.effects("abandoned") == []


def test_a_status_query_finds_the_effect_of_a_killed_agent_and_nothing_is_sent_again(desk, sign_in):
    came = len(desk.scene.forge.requests())
    page = sign_in("ada")
    key = step(desk.journal(KILLED), KILLED, ERRAND)["idempotency_key"]
    open_step(page, KILLED)
    page.get_by_role("link", name="Query status now…").click()
    expect(page.locator(".request-line").first).to_contain_text(re.compile(f"GET http://.*{key}"))
    page.set_viewport_size({"width": 360, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    say_why(page)
    page.get_by_label("Reason").press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#job-now")).to_contain_text("The provider says the effect exists. (HTTP 200)")
    expect(page.locator("#job-now")).to_contain_text(REASON)
    page.get_by_role("link", name="Look at the step").click()
    expect(page.locator(".trial")).to_contain_text("committed")
    expect(page.locator(".trial")).to_contain_text("exists")
    assert step(desk.journal(KILLED), KILLED, ERRAND)["status"] == "committed"
    assert len(desk.scene.forge.requests()) == came
    assert len(desk.effects(KILLED)) == 1


def test_a_provider_that_cannot_be_asked_is_said_to_be_one(desk, sign_in):
    desk.hold("not-asked")
    page = sign_in("ada")
    open_step(page, "not-asked")
    expect(page.locator("#step-now")).to_contain_text("Nobody to ask: the profile generic_none has no status query.")
    expect(page.get_by_role("link", name="Query status now")).to_have_count(0)


def test_a_decision_without_a_reason_is_none(desk, sign_in):
    desk.hold("unreasoned")
    page = sign_in("ada", statuses={422})
    open_form(page, "unreasoned")
    say_why(page, reason="   ")
    press(page)
    expect(page.get_by_role("alert")).to_contain_text("Say why")
    assert rows(desk.journal(ALIVE), "SELECT 1 FROM agent_decision WHERE task_id = 'unreasoned'") == []


def test_an_expired_form_is_refused_with_a_page_that_says_so(desk, sign_in):
    desk.hold("expired")
    page = sign_in("ada", statuses={409})
    open_form(page, "expired")
    say_why(page)
    desk.pass_time(minutes=16)
    press(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing was decided: the page has expired")
    expect(page.locator("main")).to_contain_text("The page is older than a decision may be.")
    page.get_by_role("link", name="Look at the step as it is now").click()
    expect(page.locator(".trial")).to_contain_text("held")
    assert rows(desk.journal(ALIVE), "SELECT 1 FROM agent_decision WHERE task_id = 'expired'") == []
    assert desk.effects("expired") == []
