"""A status check: its request, and the meaning of its answer. Pure; `journal.http` sends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from journal.models import Answer
from journal.providers.profile import Profile, Rule, StatusQuery
from journal.providers.response_body import NotJSON, cut_excerpt, is_web_page, parse_json, value_at


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """The answer of a status check; `output` is the tool's result if `exists` brought one."""

    answer: Answer
    http_status: int | None = None
    detail: str = ""
    output: object = None
    has_output: bool = False


def fill_url(template: str, *, origin: str, key: str) -> str:
    """The URL of the status check: the template with the key. A path is taken at the intent's own origin."""
    filled = template.replace("{key}", key)
    return f"{origin}{filled}" if filled.startswith("/") else filled


def interpret_answer(
    profile: Profile,
    *,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    key: str,
    truncated: bool = False,
    hide: Callable[[str], str] = str,
) -> StatusAnswer:
    """The answer by the first rule that matches; no rule, no JSON where JSON is needed, or a cut body is `unknown`.

    A web page is `unknown` under any status: a proxy or a portal sends those too, and knows nothing of the key.

    `hide` takes out of the body's text what must not be shown.
    """
    query = profile.status or StatusQuery()
    text = cut_excerpt(body, hide) if body else ""
    try:
        value: object = parse_json(body) if body and not truncated else None
        readable = bool(body) and not truncated
    except NotJSON:
        value, readable = None, False
    rule = next((rule for rule in query.rules if _matches(rule, status, value, readable, key)), None)
    if rule is None:
        return StatusAnswer("unknown", status, text)
    if is_web_page(headers, body):
        return StatusAnswer("unknown", status, f"{text} (a web page)")
    if rule.answer != "exists":
        return StatusAnswer(rule.answer, status, text)
    if 200 <= status < 300 and body and not readable:
        # A portal answers with 200 as well.
        return StatusAnswer("unknown", status, f"{text} (not JSON)")
    output, found = value_at(value, query.output or profile.adopt) if readable else (None, False)
    return StatusAnswer("exists", status, text, output, found)


def _matches(rule: Rule, status: int, value: object, readable: bool, key: str) -> bool:
    if status not in rule.statuses:
        return False
    if not rule.path:
        return True
    found, there = value_at(value, rule.path) if readable else (None, False)
    return there and any(_same(found, key if wanted == "{key}" else wanted) for wanted in rule.values)


def _same(found: object, wanted: object) -> bool:
    # 1 == True in Python, not in JSON.
    return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)
