"""What a status query's answer means, and what it never means."""

from __future__ import annotations

import pytest

from journal.providers.load import load_profiles
from journal.providers.status_answer import fill_url, interpret_answer

KEY = "ab" * 32


def a_profile(rules: list[dict[str, object]], **more: object):
    status = {"request": "GET /o/{key}", "interpret": rules, **more}
    return load_profiles({"forge": {"status": status, "adopt": "from_adopt"}})["forge"]


SIMPLE = a_profile([{"status": 200, "is": "exists"}, {"status": 404, "is": "absent"}], output="result.items.0")
BY_STATE = a_profile(
    [
        {"path": "state", "equals": ["queued", "running"], "is": "in_progress"},
        {"path": "state", "equals": "failed", "is": "absent"},
        {"path": "request.key", "equals": "{key}", "is": "exists"},
        {"path": "done", "equals": 1, "is": "exists"},
    ]
)


@pytest.mark.parametrize(
    ("profile", "status", "body", "answer"),
    [
        (SIMPLE, 200, b'{"result": {"items": [7]}}', "exists"),
        (SIMPLE, 200, b"<html>sign in</html>", "unknown"),
        (SIMPLE, 404, b"", "absent"),
        (SIMPLE, 404, b"not here", "absent"),
        (SIMPLE, 401, b"{}", "unknown"),
        (SIMPLE, 403, b"{}", "unknown"),
        (SIMPLE, 301, b"", "unknown"),
        (SIMPLE, 500, b"{}", "unknown"),
        (BY_STATE, 200, b'{"state": "running"}', "in_progress"),
        (BY_STATE, 200, b'{"state": "failed"}', "absent"),
        (BY_STATE, 200, b'{"request": {"key": "%s"}}' % KEY.encode(), "exists"),
        (BY_STATE, 200, b'{"request": {"key": "other"}}', "unknown"),
        (BY_STATE, 200, b'{"done": true}', "unknown"),
        (BY_STATE, 200, b'{"state": ', "unknown"),
        (BY_STATE, 404, b'{"state": "failed"}', "unknown"),
    ],
)
def test_the_first_matching_rule_answers_and_no_rule_is_unknown(profile, status, body, answer):
    assert interpret_answer(profile, status=status, headers={}, body=body, key=KEY).answer == answer


@pytest.mark.parametrize("status", [200, 404])
def test_a_web_page_proves_nothing_whatever_its_status(status):
    headers = {"content-type": "text/html; charset=utf-8"}
    answered = interpret_answer(SIMPLE, status=status, headers=headers, body=b"<html>404 Not Found</html>", key=KEY)
    assert answered.answer == "unknown"
    assert "web page" in answered.detail


def test_the_output_stands_at_the_status_path_else_at_the_adopted_one():
    found = interpret_answer(SIMPLE, status=200, headers={}, body=b'{"result": {"items": [7]}}', key=KEY)
    assert (found.output, found.has_output) == (7, True)
    found = interpret_answer(BY_STATE, status=200, headers={}, body=b'{"done": 1, "from_adopt": 8}', key=KEY)
    assert (found.answer, found.output) == ("exists", 8)
    found = interpret_answer(SIMPLE, status=200, headers={}, body=b"{}", key=KEY)
    assert (found.answer, found.has_output) == ("exists", False)


def test_a_cut_answer_proves_nothing_that_stands_in_its_body():
    found = interpret_answer(SIMPLE, status=200, headers={}, body=b'{"result"', key=KEY, truncated=True)
    assert found.answer == "unknown"


def test_the_address_is_a_path_at_the_origin_or_a_url_of_its_own():
    assert fill_url("/o/{key}?a=1", origin="https://forge.example:8", key="k") == "https://forge.example:8/o/k?a=1"
    assert (
        fill_url("https://status.example/{key}", origin="https://forge.example", key="k") == "https://status.example/k"
    )
