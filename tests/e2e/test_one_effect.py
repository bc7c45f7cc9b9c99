"""However often an approval is given, by whom and from where: one effect."""

from __future__ import annotations

import re
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect

from tests.crash.looking import attempts, rows
from tests.e2e.desk import ALIVE, ERRAND, Desk
from tests.e2e.operator import REASON, open_form, open_step, press, say_why

pytestmark = [pytest.mark.e2e, pytest.mark.accept, pytest.mark.xdist_group("desk")]

APPROVE = re.compile("^Approve replay: sends ")


def happened_once(desk: Desk, task_id: str) -> None:
    """One effect, by one dispatch after the lost one, because of one decision."""
    desk.wait_status(task_id)
    assert len(desk.effects(task_id)) == 1
    assert len(attempts(desk.journal(ALIVE), task_id, ERRAND)) == 2
    applied = "SELECT 1 FROM agent_decision WHERE task_id = ? AND outcome = 'applied'"
    assert len(rows(desk.journal(ALIVE), applied, task_id)) == 1


def form_of(page: Page) -> dict[str, str]:
    """What the form on the page would send."""
    fields: dict[str, str] = page.locator("form.stack").evaluate("form => Object.fromEntries(new FormData(form))")
    return fields


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_double_click(desk, sign_in, scripts):
    task_id = f"clicked-twice-{scripts}"
    desk.hold(task_id)
    page = sign_in("ada", java_script_enabled=scripts)
    open_form(page, task_id)
    say_why(page)
    page.get_by_role("button", name=APPROVE).dblclick()
    expect(page.locator("#job-now")).to_contain_text("asked by")
    happened_once(desk, task_id)


def test_two_tabs(desk, sign_in):
    desk.hold("two-tabs")
    first = sign_in("ada", statuses={409})
    second = first.context.new_page()
    for page in (first, second):
        open_form(page, "two-tabs")
        say_why(page)
    first.get_by_role("button", name=APPROVE).click(no_wait_after=True)
    second.get_by_role("button", name=APPROVE).click(no_wait_after=True)
    expect(first.locator("#job-now")).to_contain_text("it sent attempt 2")
    expect(second.locator("main")).to_contain_text(re.compile("it sent attempt 2|Nothing was decided"))
    happened_once(desk, "two-tabs")


def test_two_people(desk, sign_in):
    desk.hold("two-people")
    pages = {person: sign_in(person, statuses={409}) for person in ("ada", "bob")}
    for page in pages.values():
        open_form(page, "two-people")
        say_why(page)
    for page in pages.values():
        page.get_by_role("button", name=APPROVE).click(no_wait_after=True)
    expect(pages["ada"].locator("#job-now")).to_contain_text("it sent attempt 2")
    expect(pages["bob"].locator("main")).to_contain_text(re.compile("it sent attempt 2|Nothing was decided"))
    happened_once(desk, "two-people")
    pages["bob"].goto("/audit/")
    asked = pages["bob"].locator("tr", has_text="request replay").filter(has_text="two-people")
    expect(asked).to_have_count(2)
    expect(asked.filter(has=pages["bob"].get_by_text("bob", exact=True))).to_have_count(1)


def test_the_same_form_posted_five_times_at_once(desk, sign_in):
    desk.hold("posted-often")
    page = sign_in("ada")
    open_form(page, "posted-often")
    say_why(page)
    form = urllib.parse.urlencode(form_of(page)).encode()
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in page.context.cookies())
    headers = {"Cookie": cookies, "Origin": desk.url, "Referer": page.url}

    def post(_: int) -> str:
        with urllib.request.urlopen(urllib.request.Request(page.url, data=form, headers=headers), timeout=20) as answer:
            return str(answer.url)

    with ThreadPoolExecutor(5) as pool:
        jobs = set(pool.map(post, range(5)))
    assert len(jobs) == 1
    page.goto(jobs.pop())
    expect(page.locator("#job-now")).to_contain_text("it sent attempt 2")
    happened_once(desk, "posted-often")


def test_the_back_button_and_the_form_again(desk, sign_in):
    desk.hold("went-back")
    page = sign_in("ada", statuses={409})
    open_form(page, "went-back")
    say_why(page)
    form, address = form_of(page), page.url
    press(page)
    expect(page.locator("#job-now")).to_contain_text("it sent attempt 2")
    job = page.url
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Nothing was decided")
    answer = page.request.post(address, form=form, headers={"Origin": desk.url, "Referer": address})
    assert (answer.status, answer.url) == (200, job)
    happened_once(desk, "went-back")


def test_without_scripts_an_operator_still_approves_by_plain_forms_and_links(desk, sign_in):
    desk.hold("by-plain-forms")
    page = sign_in("ada", java_script_enabled=False)
    open_step(page, "by-plain-forms")
    page.get_by_role("link", name="Approve replay…").click()
    page.get_by_label("Reason").fill(REASON)
    page.get_by_role("button", name=APPROVE).click()
    expect(page.locator("#job-now")).to_contain_text("Without JavaScript: look again")
    desk.wait_status("by-plain-forms")
    page.get_by_role("link", name="look again").click()
    expect(page.locator("#job-now")).to_contain_text("it sent attempt 2")
    page.get_by_role("link", name="Look at the step").click()
    expect(page.locator("#step-now")).to_contain_text("ada: replay approved")
    happened_once(desk, "by-plain-forms")
