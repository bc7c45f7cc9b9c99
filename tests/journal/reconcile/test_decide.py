"""The recovery table: each row by its number."""

# ruff: noqa: E501  # a row of the table is a line
from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from journal.clock import Moment
from journal.models import Evidence, Step
from journal.reconcile import decide
from journal.reconcile.decide import Adopt, Fail, Hold, Now, Query, Send, Wait
from tests.journal.reconcile.pending_step import (
    BOOT0,
    DAY,
    HOUR,
    KEY,
    OS,
    PROFILES,
    T0,
    Row,
    action_of,
    at,
    attempt,
    decided,
    gateway,
    killed,
    lost,
    said,
    unsent,
)

SETTLED = attempt(1, 0, "no_effect", "settled")
LIMITED = attempt(1, 0, "no_effect", "rate_limited", retry_after_at=at(100))
REJECTED = attempt(2, 10, "no_effect", "rejected")
RAISED = attempt(1, 0, "unknown", "raised")
ACCEPTED = attempt(1, 0, "in_progress", "other", http_status=202)
OTHER = attempt(1, 0, "unknown", "other")
OTHER_RULES = {
    "16 accepted, not there yet": "row 45",
    "4 after hours, an earlier one unknown": "row 8",
    "36 past the window": "row 48",
    "47 absent, asked in flight": "row 2",
    "47 absent, about an older attempt": "row 2",
    "47 absent, asked before the attempt ended": "row 8",
    "48 the last moment": "row 2",
}

ROWS = [
    Row("1 prepared", "Z", Send),
    Row("2 K replays at once", "K", Send, [killed()], after=0.01),
    Row("2 keyed and asks: replays at once", "KS", Send, [killed()], after=0.01),
    Row("2 U asks", "U", Query, [killed()]),
    Row("2 Z holds", "Z", Hold, [killed()], reason="no_key_no_status"),
    Row("2 python, nothing can tell", "P", Hold, [killed()], reason="no_key_no_status"),
    Row("2 python asks", "PS", Query, [killed()]),
    Row("2 python keyed", "PK", Send, [killed()]),
    Row("law 1: of this boot = in flight", "K", Wait, [killed()], boot=1),
    Row("3 dns", "Z", Send, [unsent(1, 0, "dns")]),
    Row("4 refused, due", "Z", Send, [unsent(1, 0)]),
    Row("4 refused, not due", "Z", Wait, [unsent(1, 0)], after=1),
    Row("4 refused a hundred times", "Z", Send, [unsent(n, n) for n in range(1, 100)], after=HOUR),
    Row("4 after hours, an earlier one unknown", "K", Send, [lost(), *(unsent(n, n) for n in range(2, 99))], after=HOUR),
    Row("5 tls", "K", Hold, [unsent(1, 0, "tls")], reason="tls"),
    Row("6 local", "K", Hold, [unsent(1, 0, "other")], reason="other_outcome"),
    Row("8 K", "K", Send, [lost()]),
    Row("8 K, back-off", "K", Wait, [lost()], after=1.0),
    Row("8 keyed and asks: replays at once", "KS", Send, [lost()]),
    Row("8 U", "U", Query, [lost()]),
    Row("8 Z", "Z", Hold, [lost()], reason="no_key_no_status"),
    Row("13 accepted", "Z", Adopt, [attempt(1, 0, "applied", "accepted", output_json="1")]),
    Row("13 with a suspect clock", "Z", Adopt, [attempt(1, 0, "applied", "accepted")], newest=DAY),
    Row("14 replayed", "K", Adopt, [lost(), attempt(2, 10, "applied", "replayed")]),
    Row("law 10: replayed on the first dispatch", "K", Hold, [attempt(1, 0, "applied", "replayed")], reason="key_seen_before"),
    Row("law 10: after attempts not sent", "K", Hold, [unsent(1, 0), attempt(2, 9, "applied", "replayed")], reason="key_seen_before"),
    Row("law 10: exists before any dispatch", "U", Hold, [], [said("exists", 0)], reason="key_seen_before"),
    Row("15 unmarked", "K", Adopt, [lost(), attempt(2, 10, "applied", "unmarked")]),
    Row("22 all clean", "Z", Fail, [attempt(1, 0, "no_effect", "rejected")]),
    Row("22 after an unknown, Z", "Z", Hold, [lost(), REJECTED], reason="rejected_after_unknown"),
    Row("22 after an unknown, K", "K", Hold, [lost(), REJECTED], reason="rejected_after_unknown"),
    Row("22 after an unknown, asks", "KS", Query, [lost(), REJECTED]),
    Row("22 after an unknown, absent", "U", Hold, [lost(), REJECTED], [said("absent", 2)], reason="rejected_after_unknown"),
    Row("22 after an unknown, exists", "U", Adopt, [lost(), REJECTED], [said("exists", 2)]),
    Row("part 0 rule 1: a replayed refusal", "K", Fail, [lost(), attempt(2, 10, "no_effect", "replayed")]),
    Row("36 pre-execution, early", "Z", Wait, [LIMITED]),
    Row("36 pre-execution, due", "Z", Send, [LIMITED], after=101),
    Row("36 unknown, K early", "K", Wait, [replace(LIMITED, verdict="unknown")]),
    Row("36 unknown, K due", "K", Send, [replace(LIMITED, verdict="unknown")], after=101),
    Row("36 unknown, U", "U", Query, [replace(LIMITED, verdict="unknown")]),
    Row("36 unknown, Z", "Z", Hold, [replace(LIMITED, verdict="unknown")], reason="no_key_no_status"),
    Row("36 past the window", "K", Hold, [replace(LIMITED, verdict="unknown", retry_after_at=at(DAY))], reason="key_window_closed"),
    Row("40 K without status", "K", Send, [gateway()]),
    Row("40 K honours Retry-After", "K", Wait, [gateway(retry_after_at=at(100))]),
    Row("40 keyed and asks: asks first", "KS", Query, [gateway()]),
    Row("40 on a replay too", "KS", Query, [killed(), gateway(2, 10)], [said("absent", 1, 5)]),
    Row("40 keyed, absent: replays at once", "KS", Send, [gateway()], [said("absent")]),
    Row("40 keyed, no answer: replays at once", "KS", Send, [gateway()], [said("unknown")]),
    Row("40 keyed, in progress", "KS", Wait, [gateway()], [said("in_progress", asked=59.9)]),
    Row("40 keyed, in progress, asked again", "KS", Query, [gateway()], [said("in_progress")]),
    Row("40 keyed, exists", "KS", Adopt, [gateway()], [said("exists")]),
    Row("40 U", "U", Query, [gateway()]),
    Row("40 Z", "Z", Hold, [gateway()], reason="no_key_no_status"),
    Row("41 exists", "U", Adopt, [killed()], [said("exists", output_json="7")]),
    Row("41 with a suspect clock", "U", Adopt, [killed()], [said("exists")], newest=DAY),
    Row("44 in progress", "U", Wait, [killed()], [said("in_progress", asked=59.9)]),
    Row("44 in progress for too long", "U", Hold, [killed()], [said("in_progress")], after=DAY + 1, reason="too_old"),
    Row("45 U unreachable: asked again", "U", Query, [killed()], [said("unknown")]),
    Row("45 U unreachable for hours", "U", Query, [killed()], [said("unknown", asked=30 + n) for n in range(50)], after=5 * HOUR),
    Row("45 U unreachable for days", "U", Hold, [killed()], [said("unknown")], after=2 * DAY, reason="status_gave_nothing"),
    Row("45 U nonsense", "U", Hold, [killed()], [said("unknown", asked=n, http_status=401) for n in range(6)], reason="status_gave_nothing"),
    Row("46 eventual", "U_eventual", Wait, [killed()], [said("absent", asked=55)]),
    Row("46 eventual, asked again", "U_eventual", Query, [killed()], [said("absent")]),
    Row("46 eventual, asked enough", "U_eventual", Hold, [killed()], [said("absent"), said("absent", asked=45)], reason="absent_not_proven"),
    Row("46 never", "U_never", Hold, [killed()], [said("absent")], reason="absent_not_proven"),
    Row("47 absent, inside the horizon", "U", Wait, [killed()], [said("absent")]),
    Row("47 absent, asked inside the horizon", "U", Query, [killed()], [said("absent")], after=901),
    Row("47 absent, past the horizon", "U", Send, [killed()], [said("absent", asked=901)], after=902),
    Row("47 absent, the profile holds", "U_hold", Hold, [killed()], [said("absent", asked=901)], after=902, reason="not_applied"),
    Row("47 absent, asked in flight", "U", Query, [killed()], [said("absent", asked=901, in_flight=True)], after=902),
    Row("47 absent, about an older attempt", "U", Query, [killed(), killed(2, 902)], [said("absent", 1, 901)], after=903),
    Row("47 absent, asked before the attempt ended", "U", Query, [lost(1, 950)], [said("absent", asked=950.5)], after=960),
    Row("47 window unknown, asks", "KS_unknown", Send, [killed()], [said("absent", asked=901)], after=902),
    Row("47 attempts used", "U", Hold, [lost(n, n) for n in range(1, 7)], [said("absent", 6, 990)], after=1000, reason="attempts_used"),
    Row("47 python", "PS", Send, [killed()], [said("absent", asked=901)], after=902),
    Row("48 window closed", "K", Hold, [killed()], after=DAY, reason="key_window_closed"),
    Row("48 the timeout no longer fits", "K", Hold, [killed()], after=0.9 * DAY - 29, reason="key_window_closed"),
    Row("48 the last moment", "K", Send, [killed()], after=0.9 * DAY - 31),
    Row("48 measured from the first dispatch", "K", Hold, [unsent(1, 0), killed(2, 5), lost(3, DAY - 9)], after=DAY, reason="key_window_closed"),
    Row("48 asks a last time", "KS", Query, [killed()], [said("unknown", asked=100)], after=DAY),
    Row("48 exists", "KS", Adopt, [killed()], [said("exists", asked=DAY)], after=DAY),
    Row("48 anything else", "KS", Hold, [killed()], [said("absent", asked=DAY - 1)], after=DAY, reason="key_window_closed"),
    Row("48 in progress is anything else", "KS", Hold, [killed()], [said("in_progress", asked=DAY)], after=DAY, reason="key_window_closed"),
    Row("law 3: window unknown", "K_unknown", Hold, [killed()], reason="key_window_unknown"),
    Row("attempts used, K", "K", Hold, [lost(n, n) for n in range(1, 7)], after=HOUR, reason="attempts_used"),
    Row("attempts used, asks", "KS", Query, [lost(n, n) for n in range(1, 7)], after=HOUR),
    Row("law 8: suspect clock", "K", Hold, [killed()], newest=61, reason="clock_suspect"),
    Row("law 8: suspect clock before a first dispatch", "K", Hold, newest=61, reason="clock_suspect"),
    Row("other outcome", "KS", Hold, [OTHER], reason="other_outcome"),
    Row("other outcome, exists", "KS", Adopt, [OTHER], [said("exists")]),
    Row("settled", "K", Hold, [SETTLED], reason="not_applied"),
    Row("settled, then not sent without a word", "K", Hold, [SETTLED, unsent(2, 5)], reason="not_applied"),
    Row("settled, approved, then not sent", "K", Hold, [SETTLED, replace(unsent(2, 5), decision_id="m")], reason="not_applied"),
    Row("44 in progress after a kill, with a key too", "KS", Wait, [killed()], [said("in_progress", asked=60)]),
    Row("settled, approved", "Z", Send, [SETTLED], step={"decision": decided("replay", 40)}),
    Row("raised, nothing can tell", "P", Hold, [RAISED], reason="unknown_outcome"),
    Row("raised, asks", "PS", Query, [RAISED]),
    Row("raised, exists", "PS", Adopt, [RAISED], [said("exists")]),
    Row("raised, absent, inside the horizon", "PS", Wait, [RAISED], [said("absent")]),
    Row("raised, absent, asked inside the horizon", "PS", Query, [RAISED], [said("absent")], after=902),
    Row("raised, absent, past the horizon", "PS", Fail, [RAISED], [said("absent", asked=902)], after=903),
    Row("raised after a long call, absent", "PS", Wait, [replace(RAISED, ended_at=at(900))], [said("absent", asked=902)], after=903),
    Row("raised, keyed, absent, inside the horizon", "PKS", Send, [RAISED], [said("absent")]),
    Row("raised, keyed, absent, past the horizon", "PKS", Send, [RAISED], [said("absent", asked=902)], after=903),
    Row("raised, keyed, absent, past the window", "PKS", Fail, [RAISED], [said("absent", asked=DAY)], after=DAY + 1),
    Row("raised, keyed, in progress", "PKS", Wait, [RAISED], [said("in_progress", asked=60)]),
    Row("16 accepted, no status query", "K", Hold, [ACCEPTED], reason="other_outcome"),
    Row("16 accepted", "U", Query, [ACCEPTED]),
    Row("16 accepted, under a key", "KS", Query, [ACCEPTED]),
    Row("16 accepted, done", "KS", Adopt, [ACCEPTED], [said("exists")]),
    Row("16 accepted, in progress", "U", Wait, [ACCEPTED], [said("in_progress", asked=60)]),
    Row("16 accepted, not there yet", "U", Query, [ACCEPTED], [said("absent")]),
    Row("16 accepted, never there", "U", Hold, [ACCEPTED], [said("absent", asked=902)], after=903, reason="absent_not_proven"),
    Row("raised after a kill, absent", "PS", Wait, [killed(), replace(RAISED, attempt=2)], [said("absent", 2)]),
    Row("raised, keyed", "PK", Send, [RAISED]),
    Row("raised, keyed and asks", "PKS", Query, [RAISED]),
    Row("approved replay, Z", "Z", Send, [killed()], step={"decision": decided("replay", 40)}),
    Row("approved replay asks first", "U", Query, [killed()], [said("unknown")], step={"decision": decided("replay", 40)}),
    Row("approved replay, exists", "U", Adopt, [killed()], [said("exists", asked=50)], step={"decision": decided("replay", 40)}),
    Row("approved replay, in progress", "U", Wait, [killed()], [said("in_progress", asked=59.9)], step={"decision": decided("replay", 40)}),
    Row("approved replay, absent", "U", Send, [killed()], [said("absent", asked=50)], step={"decision": decided("replay", 40)}),
    Row("approved replay past the window", "K", Send, [killed()], after=DAY, step={"decision": decided("replay", DAY - 9)}),
    Row("approved replay past the budget", "Z", Send, [lost(n, n) for n in range(9)], step={"decision": decided("replay", 40)}),
    Row("law 4: a new key without its decision", "K", Hold, [killed()], step={"key_generation": 1}, reason="unknown_outcome"),
    Row("quarantined", "K", Hold, [killed()], step={"hold_reason": "quarantined"}, reason="quarantined"),
    Row("a read is repeated", "Z", Send, [killed()], step={"effect": "read_only"}),
    Row("a refused read fails", "Z", Fail, [OTHER], step={"effect": "read_only"}),
    Row("a model call is never recovered", "Z", Hold, [killed()], step={"effect": "model"}, reason="other_outcome"),
    Row("a settled step is nothing to recover", "Z", Hold, [killed()], step={"status": "committed"}, reason="other_outcome"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_recovery_table(row):
    action = action_of(row)
    assert type(action) is row.expected, action
    assert getattr(action, "reason", "") == row.reason
    assert action.why.endswith((".", "…")) or row.reason == "other_outcome"
    assert not re.search(r"\b[Rr]ows? \d|\b[Ll]aw \d", action.why)
    said = re.match(r"(law )?\d+", row.name)
    named = said[0] if said and said[1] else f"row {said[0]}" if said else action.rule
    # What a row begins, the rows of the key and of the status query's answer may decide.
    assert action.rule in (OTHER_RULES.get(row.name, named), "row 41", "row 44", "row 49")


UNMARKED = attempt(2, 40, "applied", "unmarked", output_json="7")
SENT = replace(killed(), sent_at=at(0))


@pytest.mark.parametrize(
    ("profile", "first", "evidence", "alarmed"),
    [
        ("K", lost(), [], True),
        ("K", gateway(), [], True),
        ("K", SENT, [], True),
        ("K", replace(SENT, verdict="unknown", kind="no_outcome"), [], True),
        # Its process ended before the first byte.
        ("K", killed(), [], False),
        ("K", attempt(1, 0, "unknown", "no_outcome"), [], False),
        # What was not synced may be gone after a restart of the machine.
        ("K", replace(killed(), os_boot_id="os-boot-0"), [], True),
        ("K", LIMITED, [], False),
        ("K", unsent(1, 0), [], False),
        ("KS", lost(), [said("absent")], False),
        ("KS", SENT, [said("absent")], False),
        ("KS", lost(), [said("absent", in_flight=True)], True),
        ("KS", lost(), [said("absent", asked=0.5)], True),
        ("KS", lost(), [said("absent", asked=41)], True),
        ("KS", lost(), [said("unknown")], True),
        ("U_never", lost(), [said("absent")], True),
    ],
)
def test_a_missing_marker_raises_an_alarm_only_where_an_earlier_attempt_may_have_arrived(
    profile, first, evidence, alarmed
):
    action = action_of(Row("", profile, Adopt, [first, UNMARKED], evidence))
    assert isinstance(action, Adopt)
    assert (bool(action.alarm), action.output_json) == (alarmed, "7")


def test_the_wait_of_a_refused_connection_grows_to_five_minutes():
    def wait(count: int) -> timedelta:
        attempts = [unsent(n, n) for n in range(1, count + 1)]
        action = action_of(Row("", "Z", Wait, attempts, after=count + 1))
        return action.until - at(count + 1) if isinstance(action, Wait) else timedelta(0)

    waits = [wait(count) for count in range(1, 60)]
    assert max(waits) <= timedelta(minutes=5)
    assert max(waits) > timedelta(minutes=2)
    assert wait(3) == wait(3)


def test_a_window_counts_the_larger_and_a_horizon_the_smaller_reading():
    def at_readings(profile: str, wall: float, boot: float, evidence: list[Evidence]) -> decide.Action:
        step = Step("t", 0, "tool", "pending", "mutating", KEY, "{}", None, T0, T0)
        return decide.decide(
            step, [killed()], evidence, PROFILES[profile], Now(Moment(at(wall), BOOT0 + boot, OS), None, 2)
        )

    for wall, boot in ((60, DAY), (DAY, 60)):
        held = at_readings("K", wall, boot, [])
        assert isinstance(held, Hold)
        assert held.reason == "key_window_closed"
    for wall, boot in ((901, 60), (60, 901)):
        asked = Evidence("t", 0, 1, at(wall), BOOT0 + boot, OS, "absent")
        assert isinstance(at_readings("U", wall + 1, boot + 1, [asked]), Wait)
