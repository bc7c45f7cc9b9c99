"""Checks before every answer: the exact host, and the headers that confine a page."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

GetResponse = Callable[[HttpRequest], HttpResponseBase]

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)


class ExactHost:
    """Answers 400 unless the request names one of the configured hosts, exactly.

    Loopback is no wall: a foreign page can point its own name at 127.0.0.1 and read what answers (DNS rebinding).
    It stands before WhiteNoise, which looks at no Host at all.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if parse_host(request.META.get("HTTP_HOST", "")) not in settings.ALLOWED_HOSTS:
            return HttpResponse(
                "This dashboard does not answer to that host. STEPKEEPER_HOSTS names those it answers to.\n",
                status=400,
                content_type="text/plain; charset=utf-8",
            )
        return self.get_response(request)


class PageHeaders:
    """Confines every answer with a strict Content-Security-Policy; pages are never stored by a cache.

    What came through an HTTPS proxy gets Secure cookies: a browser never sends them back in the clear.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        response.headers.setdefault("Cache-Control", "no-store")
        if request.is_secure():
            for cookie in response.cookies.values():
                cookie["secure"] = True
        return response


def parse_host(header: str) -> str:
    """The host of a Host header without its port, lower case; empty when it is not one host and a port."""
    try:
        parts = urlsplit(f"//{header}")
        port_is_sound = parts.port is None or parts.port > 0
    except ValueError:
        return ""
    if not port_is_sound or parts.netloc != header or "@" in header or parts.hostname is None:
        return ""
    return f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
