"""The decision about a pending intent: stored values in, one action out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from journal.models import Attempt, Evidence, Step
from journal.providers.profile import Profile
from journal.reconcile import replay_window, status_rules
from journal.reconcile.actions import Action, Adopt, Fail, Hold, Now, Query, Send, Wait
from journal.reconcile.history import Facts
from journal.reconcile.replay_window import WindowCheck

__all__ = ["Action", "Adopt", "Fail", "Hold", "Now", "Query", "Send", "Wait", "decide"]

_LOOK_AGAIN = timedelta(seconds=1)
# What no person decides: the right clock, environment or code does.
_MENDED_BY_A_START = (
    *("clock_suspect", "missing_reference", "reference_changed", "tool_missing", "profile_missing", "diverged"),
)


def decide(step: Step, attempts: Sequence[Attempt], evidence: Sequence[Evidence], profile: Profile, now: Now) -> Action:
    """What recovery does next about a pending step. Pure and total: equal rows give the equal Action, and none raise.

    Laws 1 to 11 of the design and rows 1-4, 8, 13-15, 22, 36, 40, 41, 44-49; every other outcome is held.
    """
    facts = Facts.of(step, attempts, evidence, profile, now)
    if step.status != "pending" or step.effect == "model":
        return Hold("other_outcome", f"A {step.effect} step that is {step.status} is nothing to recover.")
    if facts.in_flight:
        return Wait(replay_window.add_span(facts.wall, _LOOK_AGAIN), "An attempt of this boot is in flight.")
    action = _settled(facts) or _by_person(facts) or _by_machine(facts)
    if isinstance(action, Send) and now.doubt and step.decision is None and step.effect == "mutating":
        return Hold("restored_copy", "This journal was restored or copied, so later steps may be missing from it.")
    return action


def _settled(facts: Facts) -> Action | None:
    """Rows 13 to 15 and 41: the effect exists. No clock is needed for that."""
    for attempt in reversed(facts.attempts):
        if attempt.kind == "replayed" and attempt in facts.dispatched[:1]:
            return Hold("key_seen_before", "Law 10: the first dispatch was answered as a replay.")
        if attempt.verdict == "applied":
            return Adopt(attempt.output_json, "attempt", _alarm(facts, attempt), _adopted_by(attempt))
        if attempt.kind == "replayed" and attempt.verdict == "no_effect":
            return Fail(attempt, "The provider replayed its first answer: a refusal.")
    if facts.seen_before():
        return Hold("key_seen_before", "Law 10: the status knew the key before anything of ours was dispatched.")
    if found := facts.exists():
        return Adopt(found.output_json, "evidence", why="Row 41: the status says that the effect exists.")
    return None


def _adopted_by(attempt: Attempt) -> str:
    rows = {"accepted": "Row 13: the provider accepted it.", "replayed": "Row 14: an earlier attempt was applied."}
    return rows.get(attempt.kind or "", "Row 15: accepted, without the marker that was promised.")


def _alarm(facts: Facts, attempt: Attempt) -> str:
    if attempt.kind != "unmarked" or not facts.may_have_arrived_before(attempt):
        return ""
    return "The provider did not mark this answer as a replay: the effect may exist twice."


def _by_person(facts: Facts) -> Action | None:
    """A suspect clock, an operator's decision, or the need for one."""
    newest, decision, reason = facts.now.newest, facts.step.decision, facts.step.hold_reason
    if newest is not None and facts.wall < newest and facts.step.effect != "read_only":
        if reason and reason not in _MENDED_BY_A_START:
            # Whoever decides it needs to know why, not that no machine sends: none would.
            return Hold(reason, facts.step.hold_detail or "Law 8: under a clock that went back it stays as it was.")
        return Hold("clock_suspect", f"Law 8: the clock stands {newest - facts.wall} before the newest journaled time.")
    if decision is not None and decision.kind in ("replay", "replay_as_new"):
        return _approved(facts)
    if not facts.dispatched and decision is not None and decision.kind == "approve":
        return Send("Row 1: approved, never dispatched.")
    if reason == "quarantined":
        return Hold("quarantined", "The process died repeatedly while this step ran.")
    if reason == "approval_required" and not facts.attempts:
        return Hold("approval_required", "Row 1: never dispatched; this tool asks a person first.")
    return None


def _approved(facts: Facts) -> Action:
    """An operator approved a replay: the world is asked once more, then the stored bytes go out."""
    decision, last = facts.step.decision, facts.last
    if decision is None or last is None:
        return Send("An operator approved it; nothing may have arrived so far.")
    times = [one for one in (decision.created_at, decision.applied_at) if one is not None]
    since = min(times, default=None)
    if facts.profile.asks:
        asked = facts.counted_since(since)
        if not asked:
            return Query("An operator approved a replay: the status is asked right before.")
        if asked[-1].answer == "in_progress":
            return status_rules.poll_again(facts, since)
    if last.retry_after_at is not None and last.retry_after_at > facts.wall:
        return Wait(last.retry_after_at, "An operator approved a replay; the provider asked to wait.")
    return Send("An operator approved a replay.")


def _by_machine(facts: Facts) -> Action:
    if not facts.attempts:
        if facts.step.key_generation:
            # Law 4: only an operator's own decision sends under a further key.
            return Hold("unknown_outcome", "An operator's new key waits for the decision that made it.")
        return Send("Row 1: prepared, never dispatched.")
    if facts.step.effect == "read_only":
        return _read_again(facts)
    if facts.unsent and facts.unsent[-1].kind not in ("dns", "not_connected", "stale"):
        return _not_sendable(facts.unsent[-1])
    return _unknown(facts) if facts.unknown else _clean(facts)


def _not_sendable(attempt: Attempt) -> Hold:
    if attempt.kind == "tls":
        return Hold("tls", "Row 5: no trusted connection; nothing was sent.")
    return Hold("other_outcome", f"Row 6: nothing was sent, for a reason of our own: {attempt.detail}.")


def _clean(facts: Facts) -> Action:
    """Every attempt is proven without effect: a dispatch needs no key, only patience."""
    last = facts.last
    if facts.unsent:
        if any(one.kind == "settled" for one in facts.attempts):
            # Each approval is for one sending; what came of it was not sent, and a machine does not go on late.
            return Hold("not_applied", "An operator said that it was not applied; a replay needs their approval.")
        return _send_when_due(facts, _budget(facts), "Rows 3, 4: not sent")
    if last is None:
        return Send("Row 1: prepared, never dispatched.")
    if last.kind == "rejected":
        return Fail(last, "Row 22: refused, and no attempt had an effect.")
    if last.kind == "settled":
        return Hold("not_applied", "An operator said that it was not applied; a replay needs their approval.")
    if last.kind == "rate_limited":
        return _send_when_due(facts, _budget(facts), "Row 36: limited")
    return Hold("other_outcome", f"No row for this outcome: {last.detail}.")


def _budget(facts: Facts) -> WindowCheck:
    return replay_window.check_budget(facts.attempts, facts.profile, facts.now.moment)


def _send_when_due(facts: Facts, allowed: WindowCheck, why: str) -> Action:
    if not allowed.open:
        return Hold(allowed.reason, f"{why}, but {allowed.why}.")
    if facts.due > facts.wall:
        return Wait(facts.due, f"{why}; the next attempt is due later.")
    return Send(f"{why}; the same bytes go out.")


def _unknown(facts: Facts) -> Action:
    """At least one attempt may have had its effect."""
    last, profile = facts.last, facts.profile
    allowed = replay_window.check_window(facts.attempts, profile, due=facts.due, now=facts.now.moment)
    if last is None:
        return Hold("other_outcome", "No dispatch is on record, yet an outcome is unknown.")
    silent = last.kind in (None, "no_outcome") if last.verdict is None else last.kind in ("no_outcome", "lost_answer")
    if last.verdict == "in_progress":
        return status_rules.decide_after_acceptance(facts, last)
    if last.kind == "rejected":
        return status_rules.decide_after_rejection(facts)
    if last.kind == "raised":
        return status_rules.decide_after_raise(
            facts, last, _send_when_due(facts, allowed, "The tool raised; its key protects a replay")
        )
    if not silent and last.kind not in ("gateway", "rate_limited"):
        return Hold("other_outcome", f"No row for this outcome: {last.detail}.")
    if not allowed.open:
        return _without_key(facts, allowed)
    if profile.asks and facts.counted and facts.counted[-1].answer == "in_progress":
        # Row 44.
        return status_rules.poll_again(facts)
    if last.kind == "gateway" and profile.asks and not facts.counted:
        return Query("Row 40: a gateway answered, so the status is asked with the original key.")
    row = {"gateway": "Row 40", "rate_limited": "Row 36"}.get(last.kind or "", "Rows 2, 8")
    return _send_when_due(facts, allowed, f"{row}: outcome unknown, the key is inside its window")


def _without_key(facts: Facts, closed: WindowCheck) -> Action:
    if not facts.profile.asks:
        return Hold(closed.reason, f"Row 49: an outcome is unknown; {closed.why}.")
    if closed.reason in ("no_key_no_status", "key_window_unknown"):
        return status_rules.decide_by_status(facts)
    return status_rules.decide_last_look(facts, closed)


def _read_again(facts: Facts) -> Action:
    """A read changes nothing: it is repeated while the budget lasts, and fails as it failed last."""
    newest = facts.attempts[-1]
    if newest.kind in ("rejected", "other", "raised", "settled", "tls"):
        return Fail(newest, "A read was refused.")
    if not _budget(facts).open:
        return Fail(newest, "A read was repeated as often as the profile allows.")
    if facts.due > facts.wall:
        return Wait(facts.due, "A read is repeated after a pause.")
    return Send("A read is repeated.")
