"""A person approves a held intent in the browser: one effect, and the task goes on by itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.crash.looking import attempts, rows
from tests.e2e.desk import ALIVE, ERRAND, STOPPED, SUPERVISED, Desk
from tests.e2e.operator import REASON, approve, body

pytestmark = [pytest.mark.e2e, pytest.mark.accept, pytest.mark.xdist_group("desk")]


def sees_it_done(page: Page, task_id: str) -> None:
    """The job's page follows it to its end; the step and the timeline say who approved, when, and which attempt."""
    expect(page.locator("#job-now")).to_contain_text("Applied: it sent attempt 2.")
    page.get_by_role("link", name="Look at the step").click()
    story = re.compile(r"ada: replay approved · \d\d:\d\d:\d\d · attempt 2")
    expect(page.locator("#step-now")).to_contain_text(story)
    expect(page.locator("#step-now")).to_contain_text(REASON)
    page.get_by_role("link", name=task_id, exact=True).click()
    expect(page.locator("tr.step")).to_have_count(3)
    expect(page.locator("tr.step").nth(ERRAND)).to_contain_text(story)
    expect(page.locator("#task-timeline .story-line")).to_contain_text("completed")


def is_approved_once(desk: Desk, task_id: str, *, name: str) -> None:
    """The ledger and the journal tell the same."""
    [effect] = desk.effects(task_id)
    assert effect.body.decode() == body(task_id)
    first, second = attempts(desk.journal(name), task_id, ERRAND)
    [decision] = rows(desk.journal(name), "SELECT * FROM agent_decision WHERE task_id = ?", task_id)
    assert (decision["actor"], decision["kind"], decision["reason"]) == ("ada", "replay", REASON)
    assert (first["decision_id"], second["decision_id"]) == (None, decision["message_id"])
    assert decision["consumed_attempt"] == second["attempt"] == 2


def test_an_approval_is_carried_out_by_a_living_agent(desk, sign_in):
    desk.hold("approved")
    page = sign_in("ada")
    approve(page, "approved")
    desk.wait_status("approved")
    sees_it_done(page, "approved")
    is_approved_once(desk, "approved", name=ALIVE)


def test_an_approval_makes_supervise_start_the_agent_that_waits(desk, sign_in):
    page = sign_in("ada")
    approve(page, SUPERVISED)
    desk.wait_status(SUPERVISED, name=SUPERVISED)
    sees_it_done(page, SUPERVISED)
    is_approved_once(desk, SUPERVISED, name=SUPERVISED)
    boots = rows(desk.journal(SUPERVISED), "SELECT role FROM agent_boot WHERE role = 'agent'")
    assert len(boots) == 2


def test_an_approval_is_carried_out_by_the_worker_where_no_agent_runs(desk, sign_in):
    page = sign_in("ada")
    approve(page, STOPPED)
    expect(page.locator("#job-now")).to_contain_text("it sent attempt 2")
    assert len(desk.effects(STOPPED)) == 1
    agent = desk.agent(STOPPED, "serve")
    desk.wait_status(STOPPED, name=STOPPED)
    sees_it_done(page, STOPPED)
    is_approved_once(desk, STOPPED, name=STOPPED)
    agent.stop()
    [step] = steps_with_boots(desk.journal(STOPPED))
    assert step["role"] == "worker"


def steps_with_boots(path):
    """The errands with the boot that settled them."""
    sql = "SELECT role FROM agent_step_journal AS s JOIN agent_boot AS b ON b.boot = s.committed_boot"
    return rows(path, f"{sql} WHERE step_index = ?", ERRAND)
