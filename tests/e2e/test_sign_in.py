"""Signing in with a real browser."""

from __future__ import annotations

import pytest

from tests.running_dashboard import Up

pytestmark = pytest.mark.e2e


def test_the_printed_link_signs_in_by_its_button_and_only_once(dashboard: Up, page, browser):
    link = dashboard.link()
    page.goto(link)
    page.reload()  # opening it twice uses nothing up
    page.get_by_role("button", name="Sign in as admin").click()
    page.wait_for_url(f"http://127.0.0.1:{dashboard.port}/")
    context = browser.new_context()
    late = context.new_page()
    answer = late.goto(link)
    assert answer is not None
    assert answer.status == 410
    assert late.get_by_text("does not sign in any more").is_visible()
    context.close()
