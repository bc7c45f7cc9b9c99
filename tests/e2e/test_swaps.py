"""A page that follows by itself: it takes nothing from who reads it, and what it says stays true."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.desk import ALIVE
from tests.e2e.operator import open_step

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("pages")]


@pytest.fixture
def reader(sign_in, desk) -> Page:
    """Somebody with the page of a held step open."""
    desk.hold("to-hold-on-to")
    page: Page = sign_in("ada")
    open_step(page, "to-hold-on-to")
    return page


def polled(page: Page, status: int):
    """Waits for the step's next poll that is answered so."""
    return page.expect_response(lambda answer: "/steps/" in answer.url and answer.status == status, timeout=20_000)


def test_a_held_step_is_not_swapped_while_nothing_changes(reader):
    with polled(reader, 204):
        pass


def test_the_keyboard_stays_where_it_is_when_a_part_is_swapped(reader, desk):
    for held in (reader.get_by_role("link", name="Abandon…"), reader.locator("#step-now .copy").nth(1)):
        held.focus()
        with polled(reader, 200):
            desk.submit(ALIVE, f"beside-{reader.evaluate('document.activeElement.tagName').lower()}")
        expect(held).to_be_focused()


def test_a_copy_button_pressed_twice_gets_its_word_back(reader):
    reader.clock.install()
    reader.reload()
    button = reader.locator("#step-now .copy").first
    for _ in range(2):
        button.click()
        expect(button).to_have_text(re.compile("copied"))
    reader.clock.fast_forward(1_500)
    expect(button).to_have_text("copy")


def test_ages_and_counts_move_without_a_new_page(reader, desk):
    reader.clock.install()
    reader.goto("/tasks/")
    age = reader.locator("#tasks-table .age time")
    expect(age).to_have_text("just now")
    reader.clock.fast_forward(90_000)
    expect(age).to_have_text("1 min ago")
    count = reader.locator("#count-pending")
    before = int(count.get_attribute("data-count") or 0)
    nodes = reader.locator("main").evaluate("(main) => main.childNodes.length")
    desk.hold("one-more")
    while int(count.get_attribute("data-count") or 0) == before:
        with reader.expect_response(re.compile("/pulse/"), timeout=20_000):
            reader.clock.fast_forward(5_000)
    expect(reader).to_have_title(re.compile(rf"^\({before + 1}\) Tasks"))
    assert reader.locator("main").evaluate("(main) => main.childNodes.length") == nodes


def test_where_the_held_thing_is_gone_the_keyboard_goes_on_from_its_part(reader):
    reader.evaluate(
        "() => { const part = document.querySelector('#step-now'), gone = document.createElement('a');"
        " gone.href = '/gone/'; part.append(gone); gone.focus();"
        " part.setAttribute('hx-get', location.pathname + '?version=old'); htmx.process(part);"
        " htmx.trigger(part, 'seen'); }"
    )
    expect(reader.locator("#step-now")).to_be_focused()
