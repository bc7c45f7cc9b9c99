"""A read that kills its process is put aside, and a person starts it again from the pending page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from journal import post_submit
from tests.crash.looking import hold_reason, step, until
from tests.e2e.operator import say_why

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("desk")]

TASK = "poisoned"


def test_a_quarantined_read_is_started_again_by_a_person(desk, sign_in):
    path = desk.journal("poison")
    post_submit(path, "deadly", task_id=TASK, step="read")
    for _ in range(3):
        assert desk.scene.start("poison", JOURNAL=str(path)).wait() == -9
    agent = desk.scene.start("poison", JOURNAL=str(path))
    until(lambda: hold_reason(path, TASK, 1) == "quarantined", "the quarantine")
    page = sign_in("ada")
    folded = page.locator("details", has_text=f"{TASK}, step 1")

    def is_listed() -> bool:
        page.goto("/pending/")
        return bool(folded.count() == 1)

    until(is_listed, f"{TASK} in the queue")
    if folded.get_attribute("open") is None:
        folded.locator("summary").click()
    expect(folded.get_by_role("link", name="Query status now")).to_have_count(0)
    expect(folded.get_by_role("link", name="It happened")).to_have_count(0)
    folded.get_by_role("link", name="Approve replay…").click()
    expect(page.locator("main")).to_contain_text("It only reads: it changes nothing outside.")
    say_why(page)
    page.get_by_role("button", name="Approve replay: starts deadly_read again").click()
    expect(page.locator("#job-now")).to_contain_text("the step starts again when its task runs")
    assert agent.wait() == -9
    assert len((desk.scene.folder / "deaths").read_text().splitlines()) == 4
    assert step(path, TASK, 1)["starts"] == 1
