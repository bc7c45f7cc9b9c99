"""What is answered where a request failed: our own database is busy, which passes, or the fault is ours."""

from __future__ import annotations

import sqlite3
import sys

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error

RETRY_AFTER = 5  # seconds


def fault(request: HttpRequest) -> HttpResponse:
    """The 500 page; while another process holds the dashboard's own database, a 503 that says so."""
    if not _is_busy(sys.exc_info()[1]):
        return server_error(request)
    # Without the request: who is signed in stands in the database that does not answer.
    page = render_to_string("503.html")
    return HttpResponse(page, status=503, headers={"Retry-After": str(RETRY_AFTER)})


def _is_busy(error: BaseException | None) -> bool:
    if not isinstance(error, OperationalError):
        return False
    code = getattr(error.__cause__, "sqlite_errorcode", 0)
    # The low byte is the kind; the rest says which of its cases it is.
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
