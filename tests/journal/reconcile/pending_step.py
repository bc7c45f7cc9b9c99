"""Builders for pending steps: attempts, evidence, profiles, and the action they lead to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from journal.clock import Moment
from journal.models import Attempt, Decision, Evidence, Step
from journal.providers.load import load_profiles
from journal.providers.parse import python_profile
from journal.providers.profile import Profile
from journal.reconcile import decide
from journal.reconcile.decide import Now

T0 = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
BOOT0 = 1000.0
OS = "os-boot-1"
KEY = "ab" * 32
HOUR, DAY = 3600.0, 86400.0

_KEY = {"key": {"placement": "header", "name": "K"}, "retention": {"for": "24h", "kind": "at_least"}}
_RULES = [{"status": 200, "is": "exists"}, {"status": 404, "is": "absent"}]


def _status(absence: str, **more: object) -> dict[str, object]:
    return {"status": {"request": "GET /o/{key}", "absence": absence, "interpret": _RULES, **more}}


_AGAIN = {"duplicate_cost": "visible", "policy": {"on_absent": "redispatch"}}
PROFILES: dict[str, Profile] = {
    **load_profiles(
        {
            "K": _KEY,
            "KS": {**_KEY, **_status("authoritative")},
            "K_unknown": {"key": {"placement": "header", "name": "K"}},
            "KS_unknown": {"key": {"placement": "header", "name": "K"}, **_status("authoritative"), **_AGAIN},
            "U": {**_status("authoritative"), **_AGAIN},
            "U_hold": _status("authoritative"),
            "U_eventual": {**_status("eventual", lag="10s", probes=2), **_AGAIN},
            "U_never": {**_status("never"), **_AGAIN},
            "Z": {},
        }
    ),
    "P": python_profile(None, False, None),
    "PS": python_profile(None, True, None),
    "PK": python_profile(timedelta(hours=24), False, None),
    "PKS": python_profile(timedelta(hours=24), True, None),
}


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def attempt(number: int, start: float, verdict: Any = None, kind: Any = None, *, boot: int = 1, **more: Any) -> Attempt:
    ended = None if verdict is None else at(start + 1)
    values: dict[str, Any] = {"ended_at": ended, "verdict": verdict, "kind": kind, **more}
    return Attempt("t", 0, number, boot, at(start), BOOT0 + start, OS, **values)


def lost(number: int = 1, start: float = 0, **more: Any) -> Attempt:
    return attempt(number, start, "unknown", "lost_answer", **more)


def killed(number: int = 1, start: float = 0) -> Attempt:
    return attempt(number, start)


def raised(number: int = 1, start: float = 0) -> Attempt:
    return attempt(number, start, "unknown", "raised")


def gateway(number: int = 1, start: float = 0, **more: Any) -> Attempt:
    return attempt(number, start, "unknown", "gateway", http_status=504, **more)


def unsent(number: int, start: float, kind: str = "not_connected") -> Attempt:
    return attempt(number, start, "not_sent", kind)


def said(answer: Any, number: int = 1, asked: float = 30, **more: Any) -> Evidence:
    return Evidence("t", 0, number, at(asked), BOOT0 + asked, OS, answer, id=int(asked), **more)


def decided(kind: Any, made: float = 0) -> Decision:
    return Decision("m", "t", 0, kind, "ann", "because", KEY, "sha", 1, at(made), at(made + 900), at(made))


@dataclass(frozen=True)
class Row:
    name: str
    profile: str
    expected: type
    attempts: list[Attempt] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    after: float = 60
    reason: str = ""
    step: dict[str, Any] = field(default_factory=dict)
    newest: float | None = None
    boot: int = 2


def action_of(row: Row) -> decide.Action:
    values: dict[str, Any] = {"effect": "mutating", "status": "pending", **row.step}
    step = Step("t", 0, "tool", values.pop("status"), values.pop("effect"), KEY, "{}", None, T0, T0, **values)
    now = Now(Moment(at(row.after), BOOT0 + row.after, OS), None if row.newest is None else at(row.newest), row.boot)
    return decide.decide(step, row.attempts, row.evidence, PROFILES[row.profile], now)
