"""How pages stand in a real browser, on the big fleet: sizes, widths, focus, print, forced colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.big_desk import BigDesk, addresses
from tests.crash.looking import until
from tests.running_dashboard import port_is_free

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("look")]

WIDTHS = (360, 768, 1024, 1440)
PAPER = 680  # CSS pixels between the margins of an A4 page
# Every visible element with text of its own whose type is smaller than the smallest of the scale.
_TOO_SMALL = """() => [...document.querySelectorAll("body *:not(script, style, title, symbol *)")]
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && e.checkVisibility())
    .filter((e) => parseFloat(getComputedStyle(e).fontSize) < 12).map((e) => e.outerHTML.slice(0, 120))"""
# What reaches past the window's edge and lies in no part that scrolls by itself.
_PAST_THE_EDGE = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
    [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
    .map((e) => e.outerHTML.slice(0, 120))"""
_UNNAMED = """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a, [role=img]")]
    .filter((e) => e.checkVisibility() && !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim()))
    .map((e) => e.outerHTML.slice(0, 120))"""
_HEADINGS = "() => [...document.querySelectorAll('h1, h2, h3, h4')].map((e) => Number(e.tagName[1]))"


@pytest.fixture(scope="module")
def big_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BigDesk]:
    """Fewer journals than the whole fleet, with each of its kinds, states and odd names."""
    with BigDesk(tmp_path_factory.mktemp("big"), journals=16, tasks=320, long_steps=400) as desk:
        yield desk


@pytest.fixture(scope="module")
def pages(big_desk: BigDesk, browser: Browser) -> dict[str, str]:
    return addresses(big_desk, browser)


@pytest.fixture
def open_page(big_desk: BigDesk, browser: Browser) -> Iterator[Callable[..., Page]]:
    """`open_page(width, **options)`: a signed-in page of that width."""
    opened: list[Page] = []

    def open_(width: int = 1440, **options: Any) -> Page:
        opened.append(big_desk.signed_in(browser, viewport={"width": width, "height": 800}, **options))
        return opened[-1]

    yield open_
    for page in opened:
        page.context.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_its_window_and_no_type_is_under_12_px(open_page, pages, width):
    page = open_page(width)
    for name, path in pages.items():
        page.goto(path)
        assert page.evaluate(_PAST_THE_EDGE) == [], name
        assert page.evaluate(_TOO_SMALL) == [], name


def test_words_are_set_at_14_px_and_notes_at_12(open_page, pages):
    page = open_page()
    page.goto(pages["step-held"])
    size = "element => getComputedStyle(element).fontSize"
    assert page.locator("body").evaluate(size) == "14px"
    assert page.locator(".small").first.evaluate(size) == "12px"
    assert page.locator("h1").evaluate(size) == "20px"


def test_every_field_has_a_name_and_every_page_one_first_heading_with_none_left_out_below(open_page, pages):
    page = open_page()
    for name, path in pages.items():
        page.goto(path)
        assert page.evaluate(_UNNAMED) == [], name
        levels = page.evaluate(_HEADINGS)
        assert levels.count(1) == 1, name
        assert levels[0] == 1, name
        assert all(below - above <= 1 for above, below in pairwise(levels)), (name, levels)


def test_a_refused_decision_says_everything_that_is_missing_and_stands_in_the_first_field(open_page, pages):
    page = open_page(360)
    page.goto(pages["decide-mark_committed"])
    page.get_by_label("Output (JSON)").fill("{not json")
    page.locator("main form button[type=submit]").click()
    summary = page.get_by_role("alert")
    expect(summary).to_contain_text("Nothing was decided. 3 fields need another look")
    for label in ("Reason", "Output (JSON)", "Reference"):
        expect(summary.get_by_role("link", name=label)).to_be_visible()
    expect(page.get_by_label("Reason")).to_be_focused()
    assert page.evaluate("document.activeElement.getBoundingClientRect().bottom <= innerHeight")
    summary.get_by_role("link", name="Reference").click()
    expect(page.get_by_label("Reference")).to_be_focused()


def test_a_page_whose_dashboard_is_gone_says_since_when_and_goes_on_when_it_is_back(empty_desk, browser):
    empty_desk.open()
    page = browser.new_page(base_url=empty_desk.url)
    page.goto(empty_desk.link("ada", "operator"))
    page.get_by_role("button", name="Sign in as ada").click()
    lost = page.locator("#lost")
    expect(page.locator("#desk-pulse")).to_be_visible()
    expect(lost).to_be_hidden()
    empty_desk.up.stop()
    until(lambda: port_is_free(empty_desk.up.port), "the end of the web")
    poll = "htmx.trigger('#desk-pulse', 'seen')"
    for _ in range(2):
        with page.expect_event("requestfailed"):
            page.evaluate(poll)
    expect(lost).to_have_text(re.compile(r"^No contact since \d\d:\d\d:\d\d\. "))
    expect(lost).to_be_visible()
    empty_desk.open(port=empty_desk.up.port)
    page.evaluate(poll)
    expect(lost).to_be_hidden()
    page.context.close()


def test_in_forced_colours_one_tab_alone_looks_current(open_page, pages):
    page = open_page(forced_colors="active")
    page.goto(pages["spend"])
    colour = "elements => elements.map((e) => getComputedStyle(e).borderBlockEndColor)"
    for tabs in (".desk nav a", ".tabs[aria-label=Cut] a"):
        current = page.locator(f"{tabs}[aria-current]").evaluate_all(colour)
        others = page.locator(f"{tabs}:not([aria-current])").evaluate_all(colour)
        assert len(current) == 1
        assert others
        assert current[0] not in others


def test_on_paper_stands_what_is_read_and_nothing_that_is_pressed(open_page, pages):
    page = open_page(PAPER)
    page.emulate_media(media="print")
    for name, path in pages.items():
        page.goto(path)
        assert page.evaluate(_PAST_THE_EDGE) == [], name
        assert page.locator("main h1").is_visible(), name
        for pressed in (".desk nav", ".button", ".copy", ".filters", "#desk-pulse"):
            assert not any(one.is_visible() for one in page.locator(pressed).all()), (name, pressed)
    page.goto(pages["pending"])
    tales = page.locator(".queue .tale")
    assert tales.count() > 1
    assert all(tale.is_visible() for tale in tales.all()), "what is folded on the screen is open on paper"
