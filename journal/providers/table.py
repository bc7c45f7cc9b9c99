"""One provider's table, read into the fields of a Profile, with the lints that refuse a dangerous one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from journal.errors import ProfileError, UsageError
from journal.providers import duration
from journal.providers.fields import Fields
from journal.providers.profile import (
    AMBIGUOUS,
    FOREVER,
    HORIZON,
    MAX_AGE,
    MAX_ATTEMPTS,
    RATE_LIMIT_CAP,
    TIMEOUT,
    RateLimit,
    canonical_json,
    version_of,
)
from journal.providers.query import read_status
from journal.request import check_header_name, check_header_value

FIELDS = (
    *("version", "effect", "duplicate_cost", "key", "retention", "assume", "replay", "status", "ambiguous"),
    *("rate_limit", "policy", "transport", "remake_headers", "adopt"),
)
_EFFECTS = ("create", "update", "delete", "send", "charge")
_COSTS = ("cost_only", "visible", "money")
# Seconds and a tenth: what the promise may be off by, our clock and theirs.
_LEAST_MARGIN = timedelta(seconds=60)
_KEY_LENGTH = 64
_STATUSES = re.compile(r"[1-5](xx|[0-9]{2})")


def read(name: str, table: Mapping[str, object]) -> dict[str, Any]:
    """The keyword arguments of a Profile. Raises ProfileError; `name` is the table's name in the messages."""
    fields = Fields(name, table, FIELDS)
    try:
        canonical = canonical_json(table)
    except (TypeError, ValueError, RecursionError) as error:
        raise ProfileError(f"Profile {name}: {error}.", hint="Write times as texts.") from error
    found: dict[str, Any] = {
        "canonical": canonical,
        "version": fields.text("version") or version_of(canonical),
        "effect": fields.word("effect", _EFFECTS, "create"),
        "duplicate_cost": fields.word("duplicate_cost", _COSTS, "money"),
        "ambiguous": fields.statuses("ambiguous", AMBIGUOUS),
        "adopt": fields.text("adopt"),
        "remake_headers": _remade(fields),
        "status": read_status(fields),
    }
    found |= _key(fields) | _retention(fields) | _replay(fields) | _rate_limit(fields) | _transport(fields)
    found |= _policy(fields, found["window"])
    _lint(fields, found)
    return found


def _key(fields: Fields) -> dict[str, Any]:
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


def _remade(fields: Fields) -> tuple[str, ...]:
    names = fields.texts("remake_headers", ("Authorization", "Date"))
    try:
        return tuple(check_header_name(name) for name in names)
    except UsageError:
        raise fields.wrong("remake_headers", "a list of header names") from None


def _retention(fields: Fields) -> dict[str, Any]:
    retention = fields.sub("retention", ("for", "kind", "from", "margin"))
    kind = retention.word("kind", ("at_least", "up_to", "approx"), "approx")
    # Both are measured from our own first dispatch, which is never later than either.
    retention.word("from", ("first_received", "completed"), "first_received")
    promised = retention.table.get("for", "unknown")
    if promised == "unknown":
        assumed = fields.duration("assume", timedelta(0)) if "assume" in fields.table else None
        text = "unknown" if assumed is None else f"unknown, assumed {duration.text(assumed)}"
        return {"window": assumed, "retention": text}
    if "assume" in fields.table:
        raise fields.wrong("assume", "it only where retention.for is unknown")
    try:
        kept = duration.parse(promised)
    except ValueError:
        raise retention.wrong("for", f"{duration.ACCEPTED}, forever or unknown") from None
    if kept == FOREVER:
        return {"window": FOREVER, "retention": "forever"}
    margin = max(kept / 10, _LEAST_MARGIN) if kind == "at_least" else kept / 2
    if "margin" in retention.table:
        # Longer than the rule is welcome; shorter would be a longer window than the promise bears.
        margin = max(margin, retention.duration("margin", margin))
    return {"window": max(kept - margin, timedelta(0)), "retention": f"{kind} {duration.text(kept)}"}


def _replay(fields: Fields) -> dict[str, Any]:
    replay = fields.sub("replay", ("marker", "promised", "stored"))
    stored = replay.table.get("stored", ["2xx"])
    if not isinstance(stored, list) or not all(_STATUSES.fullmatch(str(one)) for one in stored):
        raise replay.wrong("stored", 'a list of statuses and their classes, such as ["2xx", "4xx", 500]')
    found = replay.table.get("marker", {})
    if not isinstance(found, Mapping) or len(found) > 1:
        raise replay.wrong("marker", 'one header and its value, { "Idempotent-Replayed" = "true" }')
    marker = None
    for name, value in found.items():
        try:
            # An empty value would make a marker of every answer that lacks the header.
            marker = (
                check_header_name(name),
                check_header_value(name, value if value and isinstance(value, str) else "\n"),
            )
        except UsageError:
            raise replay.wrong("marker", "one header and its value as text that is not empty") from None
    promised = replay.flag("promised", False)
    if promised and marker is None:
        raise replay.wrong("promised", "it only beside a marker")
    return {"marker": marker, "marker_promised": promised}


def _rate_limit(fields: Fields) -> dict[str, Any]:
    limit = fields.sub("rate_limit", ("statuses", "pre_execution", "cap"))
    statuses = limit.statuses("statuses", (429,))
    if any(status < 400 for status in statuses):
        raise limit.wrong("statuses", "statuses of 400 and above")
    return {
        "rate_limit": RateLimit(statuses, limit.flag("pre_execution", False), limit.duration("cap", RATE_LIMIT_CAP))
    }


def _transport(fields: Fields) -> dict[str, Any]:
    transport = fields.sub("transport", ("timeout", "in_flight_horizon"))
    timeout = transport.duration("timeout", TIMEOUT)
    if not timedelta(0) < timeout <= timedelta(minutes=10):
        raise transport.wrong("timeout", "more than 0s and at most 10m")
    return {"timeout": timeout, "horizon": transport.duration("in_flight_horizon", HORIZON)}


def _policy(fields: Fields, window: timedelta | None) -> dict[str, Any]:
    policy = fields.sub("policy", ("on_absent", "max_attempts", "max_age"))
    return {
        "on_absent": policy.word("on_absent", ("hold", "redispatch"), "hold"),
        "max_attempts": policy.count("max_attempts", MAX_ATTEMPTS),
        # A window of zero is no window: nothing is replayed in it, but the world may still be asked for a day.
        "max_age": policy.duration("max_age", window or MAX_AGE),
    }


def _lint(fields: Fields, found: Mapping[str, Any]) -> None:
    window, status = found["window"], found["status"]
    by_python = found["key_placement"] == "argument"
    if found["key_placement"] == "none" and window is not None:
        raise ProfileError(f"Profile {fields.where}: retention without a key.", hint="Say where the key goes.")
    # Equal to zero is the honest form of "no automatic replay"; in between a replay would never fit.
    if window and window < found["timeout"] and not by_python:
        raise ProfileError(
            f"Profile {fields.where}: the replay window ({duration.text(window)} after the margin) is shorter than the "
            f"timeout ({duration.text(found['timeout'])}).",
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
