"""What must hold for any rows at all, however odd."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from journal.clock import Moment
from journal.models import Attempt, Evidence, Step
from journal.reconcile import decide
from journal.reconcile.decide import Fail, Hold, Now, Send, Wait
from tests.journal.reconcile.pending_step import (
    DAY,
    KEY,
    OS,
    PROFILES,
    T0,
    Row,
    action_of,
    at,
    decided,
    gateway,
    killed,
    lost,
    raised,
    said,
)

times = st.one_of(st.none(), st.floats(-10, 3 * DAY).map(at))
numbers = st.integers(0, 8)
verdicts = st.sampled_from([None, "not_sent", "no_effect", "applied", "in_progress", "unknown"])
kinds = st.sampled_from(
    [None, "no_outcome", "dns", "not_connected", "stale", "tls", "lost_answer", "accepted", "replayed",
     "unmarked", "rejected", "rate_limited", "gateway", "raised", "settled", "other"]
)  # fmt: skip
os_ids = st.sampled_from([None, "", OS, "os-boot-2"])
boottimes = st.one_of(st.none(), st.floats(0, 4 * DAY))
attempts_of_any_kind = st.builds(
    Attempt, st.just("t"), st.just(0), numbers, st.integers(0, 3), times, boottimes, os_ids, ended_at=times,
    verdict=verdicts, kind=kinds, retry_after_at=times, key_generation=st.integers(0, 1),
    decision_id=st.sampled_from([None, "m"]),
)  # fmt: skip
evidence_of_any_kind = st.builds(
    Evidence, st.just("t"), st.just(0), numbers, times, boottimes, os_ids,
    st.sampled_from(["exists", "absent", "in_progress", "unknown"]), http_status=st.sampled_from([None, 200, 404, 503]),
    in_flight=st.booleans(), id=numbers,
)  # fmt: skip
decisions = st.one_of(st.none(), st.builds(decided, st.sampled_from(["replay", "abandon"]), st.floats(0, DAY)))
steps = st.builds(
    Step, st.just("t"), st.just(0), st.just("tool"), st.sampled_from(["pending", "pending", "committed"]),
    st.sampled_from(["mutating", "mutating", "read_only", "model", None]), st.sampled_from([KEY, None]), st.just("{}"),
    st.none(), st.just(T0), st.just(T0), key_generation=st.integers(0, 1), decision=decisions,
    hold_reason=st.sampled_from([None, "quarantined", "unknown_outcome"]),
)  # fmt: skip
nows = st.builds(
    Now, st.builds(Moment, st.floats(0, 3 * DAY).map(at), st.floats(0, 4 * DAY), st.sampled_from(["", OS])), times,
    st.integers(0, 4),
)  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(
    steps, st.lists(attempts_of_any_kind, max_size=8), st.lists(evidence_of_any_kind, max_size=6),
    st.sampled_from(sorted(PROFILES)), nows,
)  # fmt: skip
def test_any_rows_give_one_action_and_never_an_unprotected_send(step, attempts, evidence, name, now):
    profile = PROFILES[name]
    action = decide.decide(step, attempts, evidence, profile, now)
    assert action == decide.decide(step, list(reversed(attempts)), evidence, profile, now) or _ambiguous(attempts)
    if not isinstance(action, Send):
        return
    assert step.status == "pending"
    assert step.effect != "model"
    if step.effect == "read_only" or step.decision is not None:
        return
    own = [one for one in attempts if one.key_generation == step.key_generation]
    assert not any(one.verdict == "applied" for one in own)
    assert now.newest is None or now.moment.wall >= now.newest
    if not any(one.verdict in (None, "unknown", "in_progress") for one in own):
        return
    proven = any(one.answer == "absent" and not one.in_flight for one in evidence)
    authoritative = profile.status is not None and profile.status.absence == "authoritative"
    assert profile.window or (proven and authoritative and profile.on_absent == "redispatch")
    dispatched = [one for one in own if one.verdict != "not_sent"]
    assert len(dispatched) < profile.max_attempts


def _ambiguous(attempts: list[Attempt]) -> bool:
    return len({one.attempt for one in attempts}) < len(attempts)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([lost, killed, gateway]), min_size=1, max_size=5), st.floats(0, 2 * DAY), st.booleans())
def test_a_closed_gate_sends_nothing(makers, after, suspect):
    attempts = [make(number + 1, float(number)) for number, make in enumerate(makers)]
    row = Row("", "K", Send, attempts, after=max(after, len(attempts) + 1), newest=3 * DAY if suspect else None)
    action = action_of(row)
    if suspect or row.after + 30 > 0.9 * DAY:
        assert isinstance(action, Hold)
    assert isinstance(action, Send | Wait | Hold)


def _rank(action: decide.Action) -> int:
    """How far a machine gets: by itself, by itself later, or not."""
    return 0 if isinstance(action, Hold | Fail) else 1


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from([lost, killed, gateway, raised]), min_size=1, max_size=5),
    st.lists(st.tuples(st.sampled_from(["absent", "in_progress", "unknown"]), st.floats(6, DAY)), max_size=4),
    st.floats(6, DAY),
    st.sampled_from([("PK", "PKS"), ("K", "KS"), ("P", "PS"), ("Z", "U")]),
)
def test_a_status_query_beside_a_key_never_makes_a_tool_weaker(makers, answers, after, names):
    attempts = [make(number + 1, float(number)) for number, make in enumerate(makers)]
    evidence = [said(answer, len(attempts), asked) for answer, asked in sorted(answers, key=lambda one: one[1])]
    evidence = [one for one in evidence if one.asked_at is not None and one.asked_at <= at(after)]
    without, with_status = (action_of(Row("", name, Send, attempts, evidence, after=after)) for name in names)
    assert _rank(with_status) >= _rank(without), (without, with_status)
