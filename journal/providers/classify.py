"""The verdict of one exchange: an answer or a failure in, a verdict out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from journal.clock import Moment
from journal.models import Kind, Verdict
from journal.providers.profile import Profile
from journal.providers.response_body import (
    NotJSON,
    cut_excerpt,
    declares_json,
    find_header,
    is_web_page,
    parse_json,
    value_at,
)

# Row 22: the provider refused the request before it carried it out.
REJECTED: Final = frozenset({400, 402, 405, 406, 411, 413, 414, 415, 416, 417, 422, 431})
_MOVED: Final = range(300, 400)
_LONGEST_WAIT: Final = 10 * 365 * 86400

# Failures in which surely no byte of the request was written (rows 3 to 6 and law 6).
_UNSENT: Final[dict[str, tuple[Kind, str]]] = {
    "dns": ("dns", "The provider's name does not resolve"),
    "not_connected": ("not_connected", "No connection could be made"),
    "tls": ("tls", "The TLS handshake failed"),
    "stale": ("stale", "Not sent"),
    "local": ("other", "The request could not be written"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The proof of one attempt. `applied` without `has_output`: the effect is certain, its result lost."""

    verdict: Verdict
    kind: Kind
    http_status: int | None = None
    detail: str = ""
    retry_after_at: datetime | None = None
    output: object = None
    has_output: bool = False


def classify(
    *,
    profile: Profile,
    status: int | None,
    headers: Mapping[str, str],
    body: bytes,
    failure: str | None,
    redispatch: bool,
    now: Moment,
    detail: str = "",
    truncated: bool = False,
    reads: bool = False,
    hide: Callable[[str], str] = str,
) -> Outcome:
    """The verdict of one dispatch, by the rows of docs/reference/recovery.md; what no row names is `unknown`, `other`.

    `failure`: dns, not_connected, tls, stale, local (nothing was written) or lost_answer. `redispatch`: a dispatch of
    this intent may have arrived before. `truncated`: the body was longer than is read. `reads`: nothing is changed,
    so that a web page may be the very answer. `hide` takes out of the body's text what must not be shown.
    """
    if failure in _UNSENT:
        kind, words = _UNSENT[failure]
        return Outcome("not_sent", kind, None, f"{words}: {detail}." if detail else f"{words}.")
    if failure is not None or status is None:
        cause = f" ({detail})" if detail else ""
        return Outcome("unknown", "lost_answer", status, f"The answer was lost{cause}.")
    marked = _marked(profile, headers)
    if 200 <= status < 300:
        if is_web_page(headers, body) and not (marked or reads):
            # Row 12: a portal or proxy may have answered, and the provider may never have seen the request.
            return Outcome("unknown", "other", status, f"a web page: {cut_excerpt(body, hide)}")
        return _success(
            profile, status, headers, body, marked=marked, redispatch=redispatch, truncated=truncated, hide=hide
        )
    text = cut_excerpt(body, hide) if body else ""
    if status < 200:
        return Outcome("in_progress", "other", status, text)
    if status in REJECTED:
        # A replayed refusal is the verdict of the first request, not only of this attempt.
        return Outcome("no_effect", "replayed" if marked else "rejected", status, text)
    if status in _MOVED or marked:
        return Outcome("unknown", "other", status, text)
    again = retry_after(headers, now)
    if status in profile.rate_limit.statuses:
        return _limited(profile, status, text, again, now)
    if status in profile.ambiguous:
        return Outcome("unknown", "gateway", status, text, again)
    return Outcome("unknown", "other", status, text)


def _limited(profile: Profile, status: int, text: str, again: datetime | None, now: Moment) -> Outcome:
    verdict: Verdict = "no_effect" if profile.rate_limit.pre_execution else "unknown"
    if again is None:
        return Outcome(verdict, "other", status, f"{text} (no Retry-After)".strip())
    if again - now.wall > profile.rate_limit.cap:
        return Outcome(verdict, "other", status, f"{text} (asks to wait longer than {profile.rate_limit.cap})".strip())
    return Outcome(verdict, "rate_limited", status, text, again)


def _success(
    profile: Profile,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    marked: bool,
    redispatch: bool,
    truncated: bool,
    hide: Callable[[str], str],
) -> Outcome:
    if status == 202:
        return Outcome("in_progress", "other", status, "accepted, not yet done")
    if status == 207:
        return Outcome("unknown", "other", status, f"done in part: {cut_excerpt(body, hide)}")
    kind: Kind = "replayed" if marked else "unmarked" if redispatch and profile.marker_promised else "accepted"
    if truncated:
        return Outcome("applied", kind, status, "the answer is longer than is read")
    if status in (204, 205):
        return Outcome("applied", kind, status, has_output=not profile.adopt)
    try:
        output, found = _output(profile, headers, body)
    except ValueError as error:
        # Row 12 too: the answer is of another kind than the tool declared.
        return Outcome("unknown", "other", status, f"{error}: {cut_excerpt(body, hide)}")
    text = "" if found else f"the answer has no {profile.adopt!r}"
    return Outcome("applied", kind, status, text, output=output, has_output=found)


def _output(profile: Profile, headers: Mapping[str, str], body: bytes) -> tuple[object, bool]:
    """The tool's result in an accepted answer. Raises ValueError if the answer is of another kind than declared."""
    if declares_json(headers):
        try:
            return value_at(parse_json(body), profile.adopt)
        except NotJSON as error:
            raise ValueError("its JSON does not parse") from error
    if profile.adopt:
        raise ValueError("it is not JSON")
    if not body:
        return None, True
    try:
        return body.decode("utf-8"), True
    except UnicodeDecodeError:
        return None, False


def _marked(profile: Profile, headers: Mapping[str, str]) -> bool:
    if profile.marker is None:
        return False
    name, value = profile.marker
    return find_header(headers, name).strip().lower() == value.strip().lower()


def retry_after(headers: Mapping[str, str], now: Moment) -> datetime | None:
    """When the provider wants to be asked again: Retry-After in seconds or as an HTTP date; None for any other."""
    value = find_header(headers, "retry-after").strip()
    if value.isascii() and value.isdigit():
        # A longer number than that of ten years would overflow.
        seconds = _LONGEST_WAIT if len(value) > 9 else min(int(value), _LONGEST_WAIT)
        return now.wall + timedelta(seconds=seconds)
    from email.utils import parsedate_to_datetime

    try:
        found = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return min(max(found, now.wall), now.wall + timedelta(seconds=_LONGEST_WAIT))
