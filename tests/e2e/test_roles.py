"""What a viewer and a payload viewer see of a held step, and what they may not do."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.crash.looking import rows
from tests.e2e.desk import ALIVE, Desk
from tests.e2e.operator import body, open_step

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("desk")]

DECIDES = re.compile("Approve|Mark |Abandon|Query status")


def is_refused_everything(desk: Desk, page: Page, task_id: str) -> None:
    """No button anywhere; 403 on the form's address, by GET and by POST with a good token."""
    expect(page.get_by_role("link", name=DECIDES)).to_have_count(0)
    expect(page.get_by_role("button", name=DECIDES)).to_have_count(0)
    expect(page.locator("#step-now")).to_contain_text("An operator can decide this step")
    step = page.url
    token = page.locator('input[name="csrfmiddlewaretoken"]').first.input_value()
    for action in ("decide/replay/", "decide/abandon/", "query/"):
        form: dict[str, str | float | bool] = {"csrfmiddlewaretoken": token, "reason": "let me", "binding": "x"}
        answer = page.request.post(step + action, form=form, headers={"Origin": desk.url, "Referer": step})
        assert (action, answer.status) == (action, 403)
    page.goto(f"{step}decide/replay/")
    expect(page.get_by_role("heading", level=1)).to_have_text("This needs the role operator")
    assert rows(desk.journal(ALIVE), "SELECT 1 FROM agent_decision WHERE task_id = ?", task_id) == []
    assert desk.effects(task_id) == []
    page.goto("/audit/?refused=1")
    expect(page.locator("tr", has_text=task_id).first).to_contain_text("Only operators may do this.")


def test_a_viewer_sees_neither_bytes_nor_buttons_and_is_refused(desk, sign_in):
    desk.hold("seen-by-viewer")
    page = sign_in("vera", role="viewer", statuses={403})
    open_step(page, "seen-by-viewer")
    expect(page.locator("#step-now")).to_contain_text("Your role sees sizes, hashes and equality, not the content.")
    assert body("seen-by-viewer") not in page.locator("body").inner_text()
    download = page.request.get(f"{page.url}bytes/body/")
    assert download.status == 403
    is_refused_everything(desk, page, "seen-by-viewer")


def test_a_payload_viewer_sees_the_bytes_and_no_buttons_and_is_refused(desk, sign_in):
    desk.hold("seen-by-payload-viewer")
    page = sign_in("paula", role="payload_viewer", statuses={403})
    open_step(page, "seen-by-payload-viewer")
    expect(page.locator("#step-now")).to_contain_text(body("seen-by-payload-viewer"))
    download = page.request.get(f"{page.url}bytes/body/")
    assert download.body() == body("seen-by-payload-viewer").encode()
    is_refused_everything(desk, page, "seen-by-payload-viewer")
