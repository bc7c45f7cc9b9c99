"""A provider's table as a Profile: each field read strictly, and dangerous combinations refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

from journal.errors import ProfileError, UsageError
from journal.providers.duration import ACCEPTED, FOREVER, format_duration, parse_duration
from journal.providers.profile import (
    AMBIGUOUS,
    HORIZON,
    LAG,
    MAX_AGE,
    MAX_ATTEMPTS,
    PROBES,
    RATE_LIMIT_CAP,
    TIMEOUT,
    Profile,
    RateLimit,
    Rule,
    StatusHeader,
    StatusQuery,
)
from journal.providers.strict_table import StrictTable
from journal.request import check_header_name, check_header_value, check_url

FIELDS = (
    *("version", "duplicate_cost", "key", "retention", "assume", "replay", "status", "ambiguous", "rate_limit"),
    *("policy", "transport", "adopt"),
)
_COSTS = ("cost_only", "visible", "money")
# The least safety margin of a promise, for differences between clocks. A tenth of the time counts if that is more.
_LEAST_MARGIN = timedelta(seconds=60)
_KEY_LENGTH = 64


def parse_profile(name: str, table: Mapping[str, object]) -> Profile:
    """The profile a table describes. Raises ProfileError naming table, field and the accepted values."""
    fields = StrictTable(name, table, FIELDS)
    try:
        canonical = canonical_json(table)
    except (TypeError, ValueError, RecursionError) as error:
        raise ProfileError(f"Profile {name}: {error}.", hint="Write times as texts.") from error
    found: dict[str, Any] = {
        "canonical": canonical,
        "version": fields.text("version") or version_of(canonical),
        "duplicate_cost": fields.word("duplicate_cost", _COSTS, "money"),
        "ambiguous": fields.statuses("ambiguous", AMBIGUOUS),
        "adopt": fields.text("adopt"),
        "status": _status(fields),
    }
    found |= _key(fields) | _retention(fields) | _replay(fields) | _rate_limit(fields) | _transport(fields)
    found |= _policy(fields, found["window"])
    _lint(fields, found)
    return Profile(name=name, **found)


def read_stored_profile(provider: str | None, text: str | None) -> tuple[Profile, str]:
    """The profile stored with an intent. If it cannot be read: the strictest profile, and why."""
    name = provider or "python"
    try:
        return parse_profile(name, json.loads(text) if text else {}), ""
    except (ProfileError, ValueError, TypeError, AttributeError, RecursionError) as error:
        # A later version may be stricter, and a newer one may know other words. Either stops this step alone.
        return parse_profile(name, {}), error.message if isinstance(error, ProfileError) else f"{name}: {error}"


def canonical_json(table: Mapping[str, object]) -> str:
    """The canonical text of a table: equal tables have equal texts."""
    return json.dumps(table, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def version_of(canonical: str) -> str:
    """The version of a profile that states none: twelve digits of the SHA-256 of its text."""
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


@lru_cache(maxsize=256)
def python_profile(keyed: timedelta | None, asks: bool, horizon: timedelta | None) -> Profile:
    """The profile of a Python tool: its `keyed=` window, its `status=` function, its `horizon=`.

    Its own status function counts as authoritative, and a duplicate as visible, not as money.
    """
    table: dict[str, object] = {
        "duplicate_cost": "visible",
        "transport": {"in_flight_horizon": format_duration(HORIZON if horizon is None else horizon)},
    }
    if keyed is not None:
        table["key"] = {"placement": "argument"}
        table["retention"] = {"for": format_duration(keyed), "kind": "at_least"}
    if asks:
        table["status"] = {"kind": "tool", "absence": "authoritative"}
        table["policy"] = {"on_absent": "redispatch"}
    return parse_profile("python", table)


def _key(fields: StrictTable) -> dict[str, Any]:
    key = fields.sub("key", ("placement", "name", "quote", "max_bytes"))
    placement = key.word("placement", ("header", "none", "argument"), "none")
    name = key.text("name")
    if placement == "header":
        try:
            check_header_name(name)
        except UsageError:
            raise key.wrong("name", "the name of the header that carries the key") from None
    elif name:
        raise key.wrong("name", 'a name only where placement = "header"')
    quote = key.word("quote", ("none", "sf_string"), "none")
    length = _KEY_LENGTH + (2 if quote == "sf_string" else 0)
    if key.count("max_bytes", 255) < length:
        raise key.wrong(
            "max_bytes", f"at least {length}: a key is never cut, and this one is too long for the provider"
        )
    return {"key_placement": placement, "key_name": name, "key_quote": quote}


def _retention(fields: StrictTable) -> dict[str, Any]:
    retention = fields.sub("retention", ("for", "kind", "margin"))
    kind = retention.word("kind", ("at_least", "up_to", "approx"), "approx")
    promised = retention.table.get("for", "unknown")
    if promised == "unknown":
        return {"window": fields.duration("assume", timedelta(0)) if "assume" in fields.table else None}
    if "assume" in fields.table:
        raise fields.wrong("assume", "assume only where retention.for is unknown")
    try:
        kept = parse_duration(promised)
    except ValueError:
        raise retention.wrong("for", f"{ACCEPTED}, forever or unknown") from None
    if kept == FOREVER:
        return {"window": FOREVER}
    margin = max(kept / 10, _LEAST_MARGIN) if kind == "at_least" else kept / 2
    if "margin" in retention.table:
        # The margin may be longer than the rule says. A shorter one would stretch the window past the promise.
        margin = max(margin, retention.duration("margin", margin))
    # The window runs from our own first dispatch. The provider begins to count then or later.
    return {"window": max(kept - margin, timedelta(0))}


def _replay(fields: StrictTable) -> dict[str, Any]:
    replay = fields.sub("replay", ("marker", "promised"))
    found = replay.table.get("marker", {})
    if not isinstance(found, Mapping) or len(found) > 1:
        raise replay.wrong("marker", 'one header and its value, { "Idempotent-Replayed" = "true" }')
    marker = None
    for name, value in found.items():
        try:
            # With an empty value, every answer without the header would count as marked.
            marker = (
                check_header_name(name),
                check_header_value(name, value if value and isinstance(value, str) else "\n"),
            )
        except UsageError:
            raise replay.wrong("marker", "one header and its value as text that is not empty") from None
    promised = replay.flag("promised", False)
    if promised and marker is None:
        raise replay.wrong("promised", "promised only beside a marker")
    return {"marker": marker, "marker_promised": promised}


def _rate_limit(fields: StrictTable) -> dict[str, Any]:
    limit = fields.sub("rate_limit", ("statuses", "pre_execution", "cap"))
    statuses = limit.statuses("statuses", (429,))
    if any(status < 400 for status in statuses):
        raise limit.wrong("statuses", "statuses of 400 and above")
    return {
        "rate_limit": RateLimit(statuses, limit.flag("pre_execution", False), limit.duration("cap", RATE_LIMIT_CAP))
    }


def _transport(fields: StrictTable) -> dict[str, Any]:
    transport = fields.sub("transport", ("timeout", "in_flight_horizon"))
    timeout = transport.duration("timeout", TIMEOUT)
    if not timedelta(0) < timeout <= timedelta(minutes=10):
        raise transport.wrong("timeout", "more than 0s and at most 10m")
    return {"timeout": timeout, "horizon": transport.duration("in_flight_horizon", HORIZON)}


def _policy(fields: StrictTable, window: timedelta | None) -> dict[str, Any]:
    policy = fields.sub("policy", ("on_absent", "max_attempts", "max_age"))
    return {
        "on_absent": policy.word("on_absent", ("hold", "redispatch"), "hold"),
        "max_attempts": policy.count("max_attempts", MAX_ATTEMPTS),
        # In a window of zero nothing is replayed. The status may still be checked for a day.
        "max_age": policy.duration("max_age", window or MAX_AGE),
    }


def _lint(fields: StrictTable, found: Mapping[str, Any]) -> None:
    window, status = found["window"], found["status"]
    by_python = found["key_placement"] == "argument"
    if found["key_placement"] == "none" and window is not None:
        raise ProfileError(f"Profile {fields.where}: retention without a key.", hint="Say where the key goes.")
    # A window of zero means "no automatic replay". Between zero and the timeout, no replay would ever fit.
    if window and window < found["timeout"] and not by_python:
        raise ProfileError(
            f"Profile {fields.where}: the replay window ({format_duration(window)} after the margin) "
            f"is shorter than the timeout ({format_duration(found['timeout'])}).",
            hint="Shorten transport.timeout, or leave retention.for unknown.",
        )
    if found["on_absent"] == "redispatch" and found["duplicate_cost"] == "money":
        raise ProfileError(
            f'Profile {fields.where}: on_absent = "redispatch" where a duplicate costs money.',
            hint='Leave on_absent = "hold", or declare duplicate_cost = "visible" if that is what it is.',
        )
    if found["on_absent"] == "redispatch" and status is None:
        raise ProfileError(
            f"Profile {fields.where}: on_absent without a status query.", hint="Add [status] or drop it."
        )


_STATUS_FIELDS = (*("request", "kind", "absence", "lag", "probes", "interpret", "visible", "headers", "output"),)
_KINDS = ("by_key", "by_client_id", "natural_key", "marker_scan", "tool")
_ANSWERS = ("exists", "absent", "in_progress", "unknown")
_ASKING = ("GET", "HEAD")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _status(profile: StrictTable) -> StatusQuery | None:
    """The status query of a profile, or None. Raises ProfileError, also for a query that could change something."""
    if "status" not in profile.table:
        return None
    fields = profile.sub("status", _STATUS_FIELDS)
    kind = fields.word("kind", _KINDS, "by_key")
    absence = fields.word("absence", ("never", "eventual", "authoritative"), "never")
    if absence == "authoritative" and kind == "marker_scan":
        raise fields.wrong("absence", "never or eventual: a scan for a marker can miss it")
    if kind == "tool":
        return StatusQuery(kind=kind, absence="authoritative")
    method, url = _question(fields, "request")
    if "{key}" not in url:
        raise fields.wrong("request", "a URL with {key}, because an answer about another key proves nothing")
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


def _question(fields: StrictTable, field: str) -> tuple[str, str]:
    text = fields.text(field)
    method, _, url = text.partition(" ")
    url = url.strip()
    if method not in _ASKING:
        raise fields.wrong(field, f"a request that changes nothing, with {' or '.join(_ASKING)}")
    names = set(re.findall(r"\{([^}]*)\}", url)) - {"key"}
    if names:
        raise fields.wrong(field, "no other placeholder than {key}")
    try:
        check_url(url if not url.startswith("/") else f"http://origin{url}")
    except UsageError as error:
        raise fields.wrong(field, f'"GET /path/{{key}}" ({error.message})') from None
    return method, url


def _headers(fields: StrictTable) -> tuple[StatusHeader, ...]:
    found = fields.table.get("headers", {})
    if not isinstance(found, Mapping):
        raise fields.wrong("headers", 'a table such as { Authorization = { env = "TOKEN" } }')
    # Sorted like the stored profile, so that it reads back equal.
    return tuple(_header(fields, name, value) for name, value in sorted(found.items()))


def _header(fields: StrictTable, name: str, value: object) -> StatusHeader:
    try:
        check_header_name(name)
        if isinstance(value, str):
            return StatusHeader(name, text=check_header_value(name, value))
        inner = StrictTable(f"{fields.where}.headers.{name}", value, ("env", "prefix"))
        env, prefix = inner.text("env"), inner.text("prefix")
        if not _ENV.fullmatch(env):
            raise inner.wrong("env", "the name of an environment variable")
        check_header_value(name, prefix.rstrip())
        return StatusHeader(name, text=prefix, env=env)
    except UsageError as error:
        if isinstance(error, ProfileError):
            raise
        raise ProfileError(f"Profile {fields.where}.headers: {error.message}", hint=error.hint) from None


def _rules(fields: StrictTable) -> tuple[Rule, ...]:
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
    fields = StrictTable(where, table, ("status", "path", "equals", "is"))
    answer = fields.word("is", _ANSWERS, "")
    statuses = fields.statuses("status", (200,))
    path = fields.text("path")
    value = fields.table.get("equals", [])
    values = tuple(value) if isinstance(value, list) else (value,)
    if not all(one is None or isinstance(one, str | int | bool) for one in values):
        raise fields.wrong("equals", "a text, number, true, false or a list of them")
    if values and not path:
        raise fields.wrong("equals", "equals only beside path")
    if path and not values:
        raise fields.wrong("path", "path only beside equals")
    return Rule(statuses, answer, path, values)  # type: ignore[arg-type]  # one of the four words above
