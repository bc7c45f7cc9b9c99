"""Reading the desk with a real browser: narrow, by keyboard, without JavaScript, hidden, with a slow server."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.crash.looking import until
from tests.e2e.desk import ALIVE

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("pages")]

PAGES = ("/", "/pending/", "/tasks/", "/spend/", "/disk/", "/alerts/", "/audit/", "/journals/")


@pytest.fixture
def held_step(desk):
    """The address of a held step's page."""
    desk.hold("to-read")

    def find(page: Page) -> str:
        open_task(page, "to-read")
        page.locator("tr.waits a").click()
        return page.url

    return find


def open_task(page: Page, task_id: str) -> None:
    """From the list of tasks, once the index has it, to the timeline."""

    def is_listed() -> bool:
        page.goto(f"/tasks/?text={task_id}")
        return page.get_by_role("link", name=task_id).count() == 1

    until(is_listed, f"{task_id} in the list")
    page.get_by_role("link", name=task_id).click()


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def polled(page: Page) -> list[str]:
    """The requests htmx makes from now on."""
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url) if "hx-request" in request.headers else None)
    return seen


def poll_now(page: Page, times: int = 1) -> None:
    """What the poll's timer does, at once."""
    page.evaluate("times => { for (; times; times--) htmx.trigger('[data-poll]:not(#desk-pulse)', 'seen'); }", times)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_narrow_window(sign_in, held_step, scheme):
    page = sign_in("ada", viewport={"width": 360, "height": 780}, color_scheme=scheme)
    for path in PAGES:
        page.goto(path)
        assert overflow(page) <= 0, path
    step = held_step(page)
    open_task(page, "to-read")
    for path in (page.url, step, f"{step}decide/replay/", f"{step}decide/mark_committed/"):
        page.goto(path)
        assert overflow(page) <= 0, path


def test_every_page_can_be_walked_with_the_keyboard_and_shows_where_one_is(sign_in):
    page = sign_in("ada")
    for path in PAGES:
        page.goto(path)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
        for _ in range(4):
            page.keyboard.press("Tab")
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_without_javascript_a_decision_can_be_made_ready_to_send(sign_in, held_step):
    page = sign_in("ada", java_script_enabled=False, statuses={422})
    page.goto("/pending/")
    assert page.locator("details").count() >= 1
    held_step(page)
    page.get_by_role("link", name="Abandon…").click()
    page.get_by_role("button", name="Abandon: sends nothing").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was decided. 1 field needs another look")
    expect(page.get_by_label("Reason")).to_be_visible()
    expect(page.locator(".copy").first).to_be_hidden()


def test_a_hidden_tab_asks_nothing_and_asks_at_once_when_it_is_seen_again(sign_in):
    page = sign_in("ada")
    page.goto("/audit/")  # this page does not poll by itself: what asks is what the test makes ask
    page.evaluate("document.querySelector('#audit-table').setAttribute('data-poll', '')")
    page.evaluate(
        "part => { part = document.querySelector('#audit-table'); part.setAttribute('hx-get', '/audit/');"
        " part.setAttribute('hx-trigger', 'seen'); part.setAttribute('hx-swap', 'none'); htmx.process(part); }"
    )
    seen = polled(page)
    with page.expect_response(re.compile("/audit/")):
        poll_now(page)
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    before = len(seen)
    poll_now(page, times=3)
    page.wait_for_timeout(200)
    assert len(seen) == before
    with page.expect_response(re.compile("/audit/")):
        page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")


def test_a_slow_server_gets_one_request_at_a_time(sign_in):
    page = sign_in("ada")
    page.goto("/")
    waiting: list[Route] = []
    page.route(re.compile(r":\d+/\?version="), lambda route: waiting.append(route))
    poll_now(page)
    until(lambda: page.evaluate("1") and waiting, "the first poll")
    poll_now(page, times=5)
    page.wait_for_timeout(200)
    assert len(waiting) == 1
    waiting[0].continue_()


def test_what_a_reader_folded_stays_folded_when_the_page_changes(sign_in, held_step):
    page = sign_in("ada")
    held_step(page)
    page.goto("/pending/")
    first = page.locator("details").first
    first.locator("summary").click()
    with page.expect_response(re.compile("/pending/")):
        page.evaluate(
            "() => { const part = document.querySelector('#pending-queue');"
            " part.setAttribute('hx-get', '/pending/?version=old'); htmx.process(part); htmx.trigger(part, 'seen'); }"
        )
    expect(first).not_to_have_attribute("open", "")


def test_a_part_whose_session_ended_leads_to_the_sign_in_page(sign_in, desk, browser, cookies):
    page = sign_in("eve", role="viewer")
    page.goto("/")
    page.context.clear_cookies()
    page.wait_for_url(re.compile("/sign-in/"), timeout=30_000)
    cookies.pop("eve")


def test_a_finished_task_asks_nothing(sign_in, desk):
    desk.submit(ALIVE, "soon-done")
    desk.wait_status("soon-done")
    page = sign_in("ada")
    open_task(page, "soon-done")
    expect(page.locator("#task-timeline")).to_contain_text("Completed")
    expect(page.locator("#task-timeline")).not_to_have_attribute("hx-trigger", re.compile(""))
