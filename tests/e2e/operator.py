"""What an operator does in the browser: finds a held step, reads its bytes, says why, decides."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.crash.looking import until
from tests.e2e.desk import ERRAND, sentence

REASON = "the receiver says it got nothing"


def open_step(page: Page, task_id: str) -> None:
    """From the queue of pending intents to the step."""
    folded = page.locator("details", has_text=re.compile(rf"(?<![\w-]){task_id}, step {ERRAND}"))

    def is_listed() -> bool:
        page.goto("/pending/")
        return folded.count() == 1

    until(is_listed, f"{task_id} in the queue")
    if folded.get_attribute("open") is None:
        folded.locator("summary").click()
    page.get_by_role("link", name=f"{task_id}, step {ERRAND}", exact=True).click()


def open_form(page: Page, task_id: str, verb: str = "Approve replay") -> None:
    """The confirmation page of one decision; it shows the bytes the errand is about."""
    open_step(page, task_id)
    page.get_by_role("link", name=f"{verb}…").click()
    expect(page.get_by_label("request body")).to_have_text(body(task_id))


def say_why(page: Page, *, reason: str = REASON) -> None:
    """Type the reason that every decision needs."""
    page.get_by_label("Reason").fill(reason)


def press(page: Page, verb: str = "Approve replay") -> None:
    """The form's one button, which names its effect."""
    page.get_by_role("button", name=re.compile(f"^{verb}: sends ")).click()


def approve(page: Page, task_id: str) -> None:
    """All of it."""
    open_form(page, task_id)
    say_why(page)
    page.get_by_role("button", name=re.compile(f"^Approve replay: sends {len(body(task_id))} bytes to ")).click()


def body(task_id: str) -> str:
    """The bytes an errand sends."""
    return f'{{"text":"{sentence(task_id)}"}}'
