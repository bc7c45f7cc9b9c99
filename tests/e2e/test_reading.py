"""Reading the desk with a real browser: narrow, by keyboard, without JavaScript, in a hidden tab, with a slow server."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.desk import ALIVE

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("desk")]

PAGES = ("/", "/pending/", "/tasks/", "/spend/", "/disk/", "/alerts/", "/audit/", "/journals/")


@pytest.fixture
def held_step(desk):
    """The address of a held step's page."""
    desk.hold("to-read")

    def find(page: Page) -> str:
        page.goto("/tasks/?text=to-read")
        expect(page.get_by_role("link", name="to-read")).to_be_visible(timeout=15_000)
        page.get_by_role("link", name="to-read").click()
        page.locator("tr.waits a").click()
        return page.url

    return find


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def polls(page: Page, seconds: float) -> list[str]:
    """The requests htmx makes in this time."""
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url) if request.headers.get("hx-request") else None)
    page.wait_for_timeout(seconds * 1000)
    return seen


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_narrow_window(sign_in, held_step, scheme):
    page = sign_in("ada", viewport={"width": 360, "height": 780}, color_scheme=scheme)
    for path in PAGES:
        page.goto(path)
        assert overflow(page) <= 0, path
    step = held_step(page)
    for path in (step, f"{step}decide/replay/", f"{step}decide/mark_committed/"):
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
    page = sign_in("ada", java_script_enabled=False)
    page.goto("/pending/")
    assert page.locator("details").count() >= 1
    page.goto("/tasks/?text=to-read")
    page.get_by_role("link", name="to-read").click()
    page.locator("tr.waits a").click()
    page.get_by_role("link", name="Abandon…").click()
    page.get_by_role("button", name="Abandon: sends nothing").click()
    expect(page.get_by_label("Reason")).to_be_visible()  # the browser asks for the reason itself
    expect(page.locator(".copy").first).to_be_hidden()


def test_a_hidden_tab_asks_nothing_and_asks_at_once_when_it_is_seen_again(sign_in):
    page = sign_in("ada")
    page.goto("/")
    assert polls(page, 3)
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.wait_for_timeout(300)
    assert polls(page, 3) == []
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    assert polls(page, 0.6)


def test_a_slow_server_gets_one_request_at_a_time(sign_in):
    page = sign_in("ada")
    page.goto("/")
    flying, most = 0, 0

    def slow(route: Route) -> None:
        nonlocal flying, most
        if not route.request.headers.get("hx-request"):
            route.continue_()
            return
        flying += 1
        most = max(most, flying)
        time.sleep(0.9)
        flying -= 1
        route.continue_()

    page.route(re.compile(r"/\?version="), slow)
    page.wait_for_timeout(6000)
    assert most == 1


def test_what_a_reader_opened_and_selected_survives_a_poll(sign_in, held_step):
    page = sign_in("ada")
    page.goto("/pending/")
    page.locator("details").first.evaluate("element => { element.open = false; }")
    page.locator("#pending-queue").evaluate(
        "part => htmx.ajax('GET', '/pending/', {source: part, target: part, swap: 'outerHTML'})"
    )
    page.wait_for_timeout(800)
    assert page.locator("details").first.get_attribute("open") is None


def test_a_part_whose_session_ended_leads_to_the_sign_in_page(sign_in, desk, browser, cookies):
    page = sign_in("eve", role="viewer")
    page.goto("/")
    page.context.clear_cookies()
    page.wait_for_url(re.compile("/sign-in/"), timeout=8000)
    cookies.pop("eve")


def test_a_finished_task_asks_nothing(sign_in, desk):
    desk.submit(ALIVE, "soon-done")
    desk.wait_status("soon-done")
    page = sign_in("ada")
    page.goto("/tasks/?text=soon-done")
    page.get_by_role("link", name="soon-done").click()
    expect(page.locator("#task-timeline")).to_contain_text("Completed")
    assert polls(page, 3) == []
