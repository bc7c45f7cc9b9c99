"""Each row of the table, from what was observed to the verdict."""

# ruff: noqa: E501  # a row of the table is a line
from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from journal.clock import Moment
from journal.providers.classify import Outcome, classify
from journal.providers.load import load_profiles

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
JSON = {"content-type": "application/json; charset=utf-8"}
HTML = {"content-type": "text/html"}
PROFILES = load_profiles(
    {
        "plain": {},
        "marked": {"replay": {"marker": {"Idempotent-Replayed": "true"}, "promised": True}, "adopt": "data.id"},
        "limits": {"rate_limit": {"statuses": [429, 503], "pre_execution": True}},
        "few": {"ambiguous": [504]},
    }
)
MARK = {"Idempotent-Replayed": "True"}


def outcome(
    status: int | None, headers=None, body=b"", *, profile="plain", failure=None, redispatch=False, **more
) -> Outcome:
    return classify(
        profile=PROFILES[profile],
        status=status,
        headers=headers or {},
        body=body,
        failure=failure,
        redispatch=redispatch,
        now=Moment(NOW, 0.0, "os"),
        **more,
    )


@pytest.mark.parametrize(
    ("failure", "verdict", "kind"),
    [
        ("dns", "not_sent", "dns"),
        ("not_connected", "not_sent", "not_connected"),
        ("tls", "not_sent", "tls"),
        ("stale", "not_sent", "stale"),
        ("local", "not_sent", "other"),
        ("lost_answer", "unknown", "lost_answer"),
        ("anything else", "unknown", "lost_answer"),
    ],
)
def test_rows_3_to_8_failures(failure, verdict, kind):
    found = outcome(None, failure=failure, detail="why")
    assert (found.verdict, found.kind) == (verdict, kind)
    assert "why" in found.detail


@pytest.mark.parametrize(
    ("row", "status", "headers", "body", "options", "verdict", "kind"),
    [
        (12, 200, JSON, b"{", {}, "unknown", "other"),
        (12, 200, JSON, b"", {}, "unknown", "other"),
        (12, 200, JSON, b"[NaN]", {}, "unknown", "other"),
        (12, 200, JSON, b"\xff", {}, "unknown", "other"),
        (12, 200, HTML, b"<p>", {"profile": "marked"}, "unknown", "other"),
        (13, 200, JSON, b"{}", {}, "applied", "accepted"),
        (12, 200, HTML, b"<p>", {}, "unknown", "other"),
        (12, 201, {"Content-Type": "Application/XHTML+XML; charset=utf-8"}, b"<p/>", {}, "unknown", "other"),
        (13, 200, HTML, b"<p>", {"reads": True}, "applied", "accepted"),
        (13, 200, HTML, b"", {}, "applied", "accepted"),
        (13, 200, {"content-type": "text/plain"}, b"ok", {}, "applied", "accepted"),
        (13, 204, {}, b"", {}, "applied", "accepted"),
        (13, 201, JSON, b'{"data": {"id": 7}}', {"profile": "marked"}, "applied", "accepted"),
        (14, 200, {**JSON, **MARK}, b'{"data": {"id": 7}}', {"profile": "marked", "redispatch": True}, "applied", "replayed"),
        (14, 200, {**JSON, **MARK}, b'{"data": {"id": 7}}', {"profile": "marked"}, "applied", "replayed"),
        (15, 200, JSON, b'{"data": {"id": 7}}', {"profile": "marked", "redispatch": True}, "applied", "unmarked"),
        (16, 202, JSON, b"{}", {}, "in_progress", "other"),
        (16, 102, {}, b"", {}, "in_progress", "other"),
        (17, 207, JSON, b"[]", {}, "unknown", "other"),
        (20, 303, {"location": "/x"}, b"", {}, "unknown", "other"),
        *((22, status, JSON, b"{}", {}, "no_effect", "rejected") for status in (400, 402, 405, 406, 411, 413, 414, 415, 416, 417, 422, 431)),
        ("part 0, rule 1", 422, MARK, b"", {"profile": "marked", "redispatch": True}, "no_effect", "replayed"),
        (23, 401, {}, b"", {}, "unknown", "other"),
        (24, 404, {}, b"", {}, "unknown", "other"),
        (26, 408, {}, b"", {}, "unknown", "other"),
        (27, 409, {}, b"", {}, "unknown", "other"),
        (36, 429, {"Retry-After": "5"}, b"", {}, "unknown", "rate_limited"),
        (36, 429, {"Retry-After": "5"}, b"", {"profile": "limits"}, "no_effect", "rate_limited"),
        (36, 503, {"Retry-After": "5"}, b"", {"profile": "limits"}, "no_effect", "rate_limited"),
        (36, 429, {"Retry-After": "86400"}, b"", {}, "unknown", "other"),
        (37, 429, {}, b"", {}, "unknown", "other"),
        (37, 429, {"Retry-After": "soon"}, b"", {}, "unknown", "other"),
        (38, 500, {}, b"", {}, "unknown", "other"),
        (38, 504, MARK, b"", {"profile": "marked", "redispatch": True}, "unknown", "other"),
        *((40, status, {}, b"", {}, "unknown", "gateway") for status in (502, 503, 504, 520, 529)),
        (40, 502, {}, b"", {"profile": "few"}, "unknown", "other"),
    ],
)  # fmt: skip
def test_answers_by_row(row, status, headers, body, options, verdict, kind):
    found = outcome(status, headers, body, **options)
    assert (found.verdict, found.kind, found.http_status) == (verdict, kind, status), row


def test_the_output_is_what_the_profile_adopts():
    found = outcome(200, JSON, b'{"data": {"id": 7}}', profile="marked")
    assert (found.output, found.has_output) == (7, True)
    lacking = outcome(200, JSON, b'{"data": {}}', profile="marked")
    assert (lacking.verdict, lacking.has_output) == ("applied", False)
    assert outcome(200, {}, b"ok").output == "ok"
    assert outcome(204).has_output
    assert not outcome(200, {}, b"\xff").has_output
    assert not outcome(200, JSON, b'{"cut', truncated=True).has_output


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", NOW + timedelta(seconds=120)),
        ("0", NOW),
        ("Sun, 29 Nov 2026 12:05:00 GMT", NOW + timedelta(minutes=5)),
        ("Sun, 29 Nov 2026 11:00:00 GMT", NOW),
        ("-5", None),
        ("1.5", None),
        ("", None),
    ],
)
def test_row_40_retry_after_in_both_forms(value, expected):
    assert outcome(503, {"retry-after": value}).retry_after_at == expected


def test_an_absurd_retry_after_overflows_nothing():
    for value in ("9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"):
        found = outcome(503, {"retry-after": value})
        assert found.retry_after_at is not None
        assert found.retry_after_at <= NOW + timedelta(days=3650)


def test_a_detail_is_one_short_printable_line():
    found = outcome(500, {}, b"a\r\n\x1b[31mb" + b"x" * 5000)
    assert len(found.detail) < 350
    assert found.detail.isprintable()
