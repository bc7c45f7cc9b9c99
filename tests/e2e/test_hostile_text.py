"""What an agent, a tool or a provider wrote is text: on no page is it markup, a request or a script."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
from playwright.sync_api import expect

from tests.crash.looking import until
from tests.journal import rows

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("pages")]

MARKUP = '<img src="/trap/img" onerror="trapped=1"></script><script>trapped=1</script>'
HTMX = (
    '<div hx-get="/trap/hx" hx-trigger="load" data-hx-post="/trap/post">poll me</div><style>@import "/trap/css"</style>'
)
TEMPLATE = "{{ 7|add:7 }}{% now 'Y' %}"
BIDI = "invoice\u202efdp.exe\u2066\u200b"
HOSTILE = f"{BIDI}{MARKUP}{TEMPLATE}{HTMX}"
INVISIBLE = re.compile("[\u202e\u2066\u200b]")
WHY = "javascript:alert(1) "


@pytest.fixture(scope="module")
def hostile(desk):
    """A journal whose every cell that takes text holds hostile text."""
    path = rows.a_journal(desk.journal("hostile"), agent=HOSTILE)
    with closing(rows.writer(path)) as connection:
        rows.a_boot(connection, host=HOSTILE, ended=HOSTILE)
        rows.a_task(connection, HOSTILE, agent=HOSTILE, handler=HOSTILE, status="waiting",
                    wait_kind="unset", wait_detail=HOSTILE)  # fmt: skip
        rows.a_step(
            connection,
            HOSTILE,
            tool_name=HOSTILE,
            arguments={"text": HOSTILE},
            status="pending",
            hold_reason="no_key_no_status",
            hold_detail=HOSTILE,
            output_json=None,
            provider=HOSTILE,
        )
        rows.an_attempt(connection, HOSTILE, verdict="unknown", kind="lost_answer", detail=HOSTILE)
        rows.a_step(connection, HOSTILE, 1, tool_name=HOSTILE, arguments={"text": HOSTILE}, output_json=f'"{WHY}"')
        rows.insert(
            connection,
            "agent_decision",
            message_id="f" * 32,
            kind="replay",
            task_id=HOSTILE,
            step_index=0,
            actor=HOSTILE,
            reason=HOSTILE,
            outcome="refused",
            outcome_detail=HOSTILE,
            reference=HOSTILE,
            created_at=rows.WHEN,
            applied_at=rows.WHEN,
            revision=rows.BOOT + 9,
        )
    return desk


def test_hostile_text_is_shown_as_text_on_every_page_and_asks_for_nothing(hostile, sign_in):
    page = sign_in("ada")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    def is_listed() -> bool:
        page.goto("/tasks/?text=onerror")
        return bool(page.locator("td.lead a").count())

    until(is_listed, "the hostile task")
    page.locator("td.lead a").click()
    expect(page.locator("tr.step")).to_have_count(2)
    task = page.url
    page.locator("tr.step a").first.click()
    step = page.url
    decide = [f"{step}decide/{kind}/" for kind in ("replay", "mark_committed")]
    for address in (task, step, *decide, "/", "/tasks/", "/pending/", "/journals/", "/spend/", "/disk/", "/alerts/"):
        page.goto(address)
        if address in (task, step, *decide):
            text = page.locator("body").inner_text()
            assert '<img src="/trap/img"' in text
            assert "{{ 7|add:7 }}" in text
            assert "U+202E" in text
        assert not INVISIBLE.search(page.locator("body").inner_text())
        assert page.locator("[hx-trigger='load'], [data-hx-post], img, main script, main style").count() == 0
        assert page.locator('a[href^="javascript:"]').count() == 0
        assert page.evaluate("window.trapped") is None
        assert not INVISIBLE.search(page.title())
        polled = page.locator("[data-poll]")
        if polled.count():
            with page.expect_response(lambda response: "version=" in response.url):
                polled.first.evaluate("part => htmx.trigger(part, 'seen')")
    assert [url for url in asked if "/trap/" in url] == []


def test_hostile_text_makes_no_page_wider_than_its_window(hostile, sign_in):
    page = sign_in("ada", viewport={"width": 360, "height": 780})

    def is_listed() -> bool:
        page.goto("/tasks/?text=onerror")
        return bool(page.locator("td.lead a").count())

    until(is_listed, "the hostile task")
    for width in (360, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        for address in ("/", "/tasks/", "/pending/", "/journals/", "/disk/", "/spend/", "/alerts/"):
            page.goto(address)
            assert page.evaluate(WIDER_THAN_THE_WINDOW) == [], (address, width)


# The innermost elements that reach over the right edge without a scroller of their own around them.
WIDER_THAN_THE_WINDOW = """() => {
  if (document.documentElement.scrollWidth <= innerWidth) return [];
  return [...document.querySelectorAll("main *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.children.length)
    .map((one) => one.outerHTML.slice(0, 200));
}"""
