"""Answers about the dashboard itself: its health, the pulse every page asks for, and the page of a failed request."""

from __future__ import annotations

import sqlite3
import sys

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe
from django.views.defaults import server_error

from agents import health
from dashboard.header import build_header
from dashboard.ui.access import require_role
from dashboard.ui.render import page_or_part

RETRY_AFTER = 5  # seconds


# What keeps SQLite from writing: the low byte of its error code is the kind, the rest says which of its cases it is.
_UNWRITABLE = {
    sqlite3.SQLITE_FULL: "its disk is full",
    sqlite3.SQLITE_READONLY: "its file or its folder is read-only",
    sqlite3.SQLITE_IOERR: "its disk answers with an error",
    sqlite3.SQLITE_CANTOPEN: "its file cannot be opened",
}


def show_fault(request: HttpRequest) -> HttpResponse:
    """The 500 page. Where the dashboard's own database is locked or cannot be written, a 503 that says so."""
    code = _find_sqlite_code(sys.exc_info()[1])
    is_busy = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    if not is_busy and code not in _UNWRITABLE:
        return server_error(request)
    # Without the request: who is signed in stands in the database that does not answer.
    page = render_to_string("503.html", {"cause": None if is_busy else _UNWRITABLE[code]})
    return HttpResponse(page, status=503, headers={"Retry-After": str(RETRY_AFTER)})


def _find_sqlite_code(error: BaseException | None) -> int:
    if not isinstance(error, DatabaseError):
        return sqlite3.SQLITE_OK
    code: int = getattr(error.__cause__, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & 0xFF


@login_not_required
@require_safe
def show_health(request: HttpRequest) -> HttpResponse:
    """200 when web, worker and watch really work, else 503; one line a part either way."""
    report = health.report_health()
    lines = "".join(f"{'ok' if part.ok else 'FAILS'} {part.name}: {part.sentence}\n" for part in report.parts)
    return HttpResponse(lines, status=200 if report.ok else 503, content_type="text/plain; charset=utf-8")


@require_safe
@require_role("viewer")
def show_pulse(request: HttpRequest) -> HttpResponse:
    """The part alone: it has no page of its own."""
    desk = build_header(request)
    parts = {"desk-pulse": "_pulse_answer.html"}
    return page_or_part(request, "_pulse_answer.html", desk, parts=parts, version=desk.version)
