"""A profile's `status` table: a question that cannot change anything, and what its answers mean."""

from __future__ import annotations

import re
from collections.abc import Mapping

from journal.errors import ProfileError, UsageError
from journal.providers.fields import Fields
from journal.providers.profile import LAG, PROBES, Rule, StatusHeader, StatusQuery
from journal.request import check_header_name, check_header_value, check_url

_FIELDS = (*("request", "kind", "absence", "lag", "probes", "interpret", "visible", "headers", "output"),)
_KINDS = ("by_key", "by_client_id", "natural_key", "marker_scan", "tool")
_ANSWERS = ("exists", "absent", "in_progress", "unknown")
_ASKING = ("GET", "HEAD")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_status(profile: Fields) -> StatusQuery | None:
    """The status query of a profile, or None. Raises ProfileError, also for a query that could change something."""
    if "status" not in profile.table:
        return None
    fields = profile.sub("status", _FIELDS)
    kind = fields.word("kind", _KINDS, "by_key")
    absence = fields.word("absence", ("never", "eventual", "authoritative"), "never")
    if absence == "authoritative" and kind == "marker_scan":
        raise fields.wrong("absence", "never or eventual: a scan for a marker can miss it")
    if kind == "tool":
        return StatusQuery(kind=kind, absence="authoritative")
    method, url = _question(fields, "request")
    if "{key}" not in url:
        raise fields.wrong("request", "it with {key}: without the key an answer would prove nothing about this intent")
    if "visible" in fields.table:
        _question(fields, "visible")
    return StatusQuery(
        method=method,
        url=url,
        headers=_headers(fields),
        rules=_rules(fields),
        kind=kind,
        absence=absence,  # type: ignore[arg-type]  # one of the three words above
        lag=fields.duration("lag", LAG),
        probes=fields.count("probes", PROBES),
        output=fields.text("output"),
        visible=fields.text("visible"),
    )


def _question(fields: Fields, field: str) -> tuple[str, str]:
    text = fields.text(field)
    method, _, url = text.partition(" ")
    url = url.strip()
    if method not in _ASKING:
        raise fields.wrong(field, f"it with {' or '.join(_ASKING)}: a question must not change anything")
    names = set(re.findall(r"\{([^}]*)\}", url)) - {"key"}
    if names:
        raise fields.wrong(field, "no other placeholder than {key}")
    try:
        check_url(url if not url.startswith("/") else f"http://origin{url}")
    except UsageError as error:
        raise fields.wrong(field, f'"GET /path/{{key}}" ({error.message})') from None
    return method, url


def _headers(fields: Fields) -> tuple[StatusHeader, ...]:
    found = fields.table.get("headers", {})
    if not isinstance(found, Mapping):
        raise fields.wrong("headers", 'a table such as { Authorization = { env = "TOKEN" } }')
    # Sorted, as the stored profile is: what is read back must be equal.
    return tuple(_header(fields, name, value) for name, value in sorted(found.items()))


def _header(fields: Fields, name: str, value: object) -> StatusHeader:
    try:
        check_header_name(name)
        if isinstance(value, str):
            return StatusHeader(name, text=check_header_value(name, value))
        inner = Fields(f"{fields.where}.headers.{name}", value, ("env", "prefix"))
        env, prefix = inner.text("env"), inner.text("prefix")
        if not _ENV.fullmatch(env):
            raise inner.wrong("env", "the name of an environment variable")
        check_header_value(name, prefix.rstrip())
        return StatusHeader(name, text=prefix, env=env)
    except UsageError as error:
        if isinstance(error, ProfileError):
            raise
        raise ProfileError(f"Profile {fields.where}.headers: {error.message}", hint=error.hint) from None


def _rules(fields: Fields) -> tuple[Rule, ...]:
    found = fields.table.get("interpret")
    if not isinstance(found, list) or not found:
        raise fields.wrong(
            "interpret", 'rules, such as [{ status = 200, is = "exists" }, { status = 404, is = "absent" }]'
        )
    rules = tuple(_rule(f"{fields.where}.interpret[{number}]", rule) for number, rule in enumerate(found))
    if not any(rule.answer == "exists" for rule in rules):
        raise fields.wrong("interpret", 'at least one rule with is = "exists"')
    return rules


def _rule(where: str, table: object) -> Rule:
    fields = Fields(where, table, ("status", "path", "equals", "is"))
    answer = fields.word("is", _ANSWERS, "")
    statuses = fields.statuses("status", (200,))
    path = fields.text("path")
    value = fields.table.get("equals", [])
    values = tuple(value) if isinstance(value, list) else (value,)
    if not all(one is None or isinstance(one, str | int | bool) for one in values):
        raise fields.wrong("equals", "a text, number, true, false or a list of them")
    if values and not path:
        raise fields.wrong("equals", "it beside path")
    if path and not values:
        raise fields.wrong("path", "it beside equals")
    return Rule(statuses, answer, path, values)  # type: ignore[arg-type]  # one of the four words above
