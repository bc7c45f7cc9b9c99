"""One URL with two answers: the whole page, or the part that htmx asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
import zlib
from urllib.parse import urlencode


def page_or_part(
    request: HttpRequest,
    template: str,
    page: DataclassInstance | Callable[[], DataclassInstance],
    *,
    parts: Mapping[str, str],
    version: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render `template`, or for htmx the part whose root element's id is the request's target.

    `parts` maps that id to the part's template; the first is the answer where htmx names none. A part that already
    shows `version` gets 204 and stays as it is; a page given as a function is then not even built. A boosted request
    and a history restore get the whole page.
    """
    if _wants_part(request):
        template = parts.get(request.headers.get("HX-Target", "")) or next(iter(parts.values()))
    if version and find_shown_version(request) == version:
        response = HttpResponse(status=204)
    else:
        response = render(request, template, {"page": page() if callable(page) else page}, status=status)
    patch_vary_headers(response, ("HX-Request", "HX-Target"))
    return response


def find_shown_version(request: HttpRequest) -> str | None:
    """The version of the part that htmx polls for; None where a whole page or another part is asked for."""
    return request.GET.get("version") if _wants_part(request) else None


def _wants_part(request: HttpRequest) -> bool:
    headers = request.headers
    return (
        headers.get("HX-Request") == "true"
        and headers.get("HX-Boosted") != "true"
        and headers.get("HX-History-Restore-Request") != "true"
    )


def make_page_href(url: str, after: str, **kept: str) -> str:
    """The address of the page of a list that begins after a cursor; without one, of its first page.

    `kept` are the list's filters; empty ones are left out.
    """
    asked = {name: value for name, value in (*kept.items(), ("after", after)) if value}
    return f"{url}?{urlencode(asked)}" if asked else url


def digest_shown(*told: object) -> str:
    """The digest of everything that the part shows; two polls compare it."""
    return f"{zlib.crc32(repr(told).encode('utf-8', 'backslashreplace')):x}"
