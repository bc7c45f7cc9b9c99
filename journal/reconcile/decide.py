"""The decision about a pending intent: stored values in, one action out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from journal.models import Attempt, Evidence, Step, describe_answer
from journal.providers.profile import Profile
from journal.reconcile import replay_window, status_rules
from journal.reconcile.actions import Action, Adopt, Fail, Hold, Now, Query, Send, Wait
from journal.reconcile.history import Facts
from journal.reconcile.replay_window import WindowCheck
from journal.reconcile.status_rules import RAISED

__all__ = ["Action", "Adopt", "Fail", "Hold", "Now", "Query", "Send", "Wait", "decide"]

# Rules that stand in no row or law of the table.
NO_ROW = "no row"
APPROVED = "an operator decided"
READ = "a read is repeated"

_LOOK_AGAIN = timedelta(seconds=1)
# No person decides these; the right clock, environment or code settles them.
_MENDED_BY_A_START = (
    *("clock_suspect", "missing_reference", "reference_changed", "tool_missing", "profile_missing", "diverged"),
)


def decide(step: Step, attempts: Sequence[Attempt], evidence: Sequence[Evidence], profile: Profile, now: Now) -> Action:
    """The next action about a pending step. Pure and total: equal rows give the equal action, and no rows raise.

    It follows the laws and rows of docs/reference/recovery.md; an outcome without a row is held.
    """
    facts = Facts.of(step, attempts, evidence, profile, now)
    if step.status != "pending" or step.effect == "model":
        return Hold("other_outcome", NO_ROW, f"A {step.effect} step that is {step.status} needs no recovery.")
    if facts.in_flight:
        return Wait(
            replay_window.add_span(facts.wall, _LOOK_AGAIN), "law 1", "An attempt of this process is in flight."
        )
    action = _settled(facts) or _by_person(facts) or _by_machine(facts)
    if isinstance(action, Send) and now.doubt and step.decision is None and step.effect == "mutating":
        why = "This journal was restored or copied, so later steps may be missing from it."
        return Hold("restored_copy", "journal rule 9", why)
    return action


def _settled(facts: Facts) -> Action | None:
    """Rows 13 to 15 and 41: the effect exists. No clock is needed for that."""
    for attempt in reversed(facts.attempts):
        if attempt.kind == "replayed" and attempt in facts.dispatched[:1]:
            return Hold("key_seen_before", "law 10", "The provider answered the first request as a replay.")
        if attempt.verdict == "applied":
            return Adopt(attempt.output_json, "attempt", *_adopted_by(attempt), _alarm(facts, attempt))
        if attempt.kind == "replayed" and attempt.verdict == "no_effect":
            return Fail(attempt, "row 22", "The provider repeated its first answer, a refusal.")
    if facts.seen_before():
        return Hold("key_seen_before", "law 10", "The provider knew the key before anything was sent.")
    if found := facts.exists():
        return Adopt(found.output_json, "evidence", "row 41", "The status query found the effect.")
    return None


def _adopted_by(attempt: Attempt) -> tuple[str, str]:
    rows = {
        "accepted": ("row 13", "The provider accepted the request."),
        "replayed": ("row 14", "The provider had applied an earlier attempt."),
    }
    without_marker = ("row 15", "The provider accepted the request, without the replay marker it promises.")
    return rows.get(attempt.kind or "", without_marker)


def _alarm(facts: Facts, attempt: Attempt) -> str:
    if attempt.kind != "unmarked" or not facts.may_have_arrived_before(attempt):
        return ""
    return "The provider did not mark this answer as a replay: the effect may exist twice."


def _by_person(facts: Facts) -> Action | None:
    """A suspect clock, an operator's decision, or the need for one."""
    newest, decision, reason = facts.now.newest, facts.step.decision, facts.step.hold_reason
    if newest is not None and facts.wall < newest and facts.step.effect != "read_only":
        if reason and reason not in _MENDED_BY_A_START:
            # A person needs the hold's own reason. The wrong clock changes nothing: no machine would send anyway.
            return Hold(reason, "law 8", facts.step.hold_detail or "The step stays held while the clock is wrong.")
        behind = newest - facts.wall
        return Hold("clock_suspect", "law 8", f"The clock is {behind} behind the newest time in the journal.")
    if decision is not None and decision.kind == "replay":
        return _approved(facts)
    if reason == "quarantined":
        return Hold("quarantined", NO_ROW, "The process died repeatedly while this step ran.")
    return None


def _approved(facts: Facts) -> Action:
    """An operator approved a replay: the status is checked once more, then the stored bytes go out."""
    decision, last = facts.step.decision, facts.last
    if decision is None or last is None:
        return Send(APPROVED, "An operator approved it, and nothing has arrived so far.")
    times = [one for one in (decision.created_at, decision.applied_at) if one is not None]
    since = min(times, default=None)
    if facts.profile.asks:
        asked = facts.counted_since(since)
        if not asked:
            return Query(APPROVED, "An operator approved a replay, so the status is queried right before it.")
        if asked[-1].answer == "in_progress":
            return status_rules.poll_again(facts, since)
    if last.retry_after_at is not None and last.retry_after_at > facts.wall:
        why = "An operator approved a replay, and the provider asked to wait."
        return Wait(last.retry_after_at, APPROVED, why)
    return Send(APPROVED, "An operator approved a replay.")


def _by_machine(facts: Facts) -> Action:
    if not facts.attempts:
        if facts.step.key_generation:
            # Law 4: only an operator's decision sends under another key.
            return Hold("unknown_outcome", "law 4", "Only the operator's own decision sends under a further key.")
        return Send("row 1", "It was never sent.")
    if facts.step.effect == "read_only":
        return _read_again(facts)
    if facts.unsent and facts.unsent[-1].kind not in ("dns", "not_connected", "stale"):
        return _not_sendable(facts.unsent[-1])
    return _unknown(facts) if facts.unknown else _clean(facts)


def _not_sendable(attempt: Attempt) -> Hold:
    if attempt.kind == "tls":
        return Hold("tls", "row 5", "No trusted connection could be made, so nothing was sent.")
    return Hold("other_outcome", "row 6", f"Nothing was sent: {attempt.detail}")


def _clean(facts: Facts) -> Action:
    """No attempt had an effect, which is proven. So a dispatch needs no key."""
    last = facts.last
    if facts.unsent:
        if any(one.kind == "settled" for one in facts.attempts):
            # Each approval is for one sending. It was not sent, and a machine does not send it later.
            return _not_applied()
        rule = "row 3" if facts.unsent[-1].kind == "dns" else "row 4" if facts.unsent[-1].kind != "stale" else "law 6"
        return _send_when_due(facts, _budget(facts), rule, "The last attempt was not sent")
    if last is None:
        return Send("row 1", "It was never sent.")
    if last.kind == "rejected":
        return Fail(last, "row 22", "The provider refused it, and no attempt had an effect.")
    if last.kind == "settled":
        return _not_applied()
    if last.kind == "rate_limited":
        return _send_when_due(facts, _budget(facts), "row 36", "The provider limits the rate of requests")
    return _unrecognised(last)


def _not_applied() -> Hold:
    return Hold("not_applied", APPROVED, "An operator said that it was not applied, so a replay needs their approval.")


def _unrecognised(attempt: Attempt) -> Hold:
    answer = describe_answer(attempt.http_status, attempt.detail)
    return Hold("other_outcome", NO_ROW, f"No rule covers this answer: {answer}")


def _budget(facts: Facts) -> WindowCheck:
    return replay_window.check_budget(facts.attempts, facts.profile, facts.now.moment)


def _send_when_due(facts: Facts, allowed: WindowCheck, rule: str, why: str) -> Action:
    if not allowed.open:
        return Hold(allowed.reason, rule, f"{why}, but {allowed.why}.")
    if facts.due > facts.wall:
        return Wait(facts.due, rule, f"{why}. The next attempt is due later.")
    return Send(rule, f"{why}. The same bytes are sent again.")


def _unknown(facts: Facts) -> Action:
    """At least one attempt may have had its effect."""
    last, profile = facts.last, facts.profile
    allowed = replay_window.check_window(facts.attempts, profile, due=facts.due, now=facts.now.moment)
    if last is None:
        return Hold("other_outcome", NO_ROW, "The outcome is unknown, but no attempt is on record.")
    silent = last.kind in (None, "no_outcome") if last.verdict is None else last.kind in ("no_outcome", "lost_answer")
    if last.verdict == "in_progress":
        return status_rules.decide_after_acceptance(facts, last)
    if last.kind == "rejected":
        return status_rules.decide_after_rejection(facts)
    if last.kind == "raised":
        return status_rules.decide_after_raise(
            facts, last, _send_when_due(facts, allowed, RAISED, "The tool raised, and its key makes a replay safe")
        )
    if not silent and last.kind not in ("gateway", "rate_limited"):
        return _unrecognised(last)
    if not allowed.open:
        return _without_key(facts, allowed)
    if profile.asks and facts.counted and facts.counted[-1].answer == "in_progress":
        # Row 44.
        return status_rules.poll_again(facts)
    if last.kind == "gateway" and profile.asks and not facts.counted:
        return Query("row 40", "A gateway answered, so the status is queried with the original key.")
    why = "The outcome is unknown, and the provider still knows the key"
    return _send_when_due(facts, allowed, status_rules.row_of(last), why)


def _without_key(facts: Facts, closed: WindowCheck) -> Action:
    if not facts.profile.asks:
        rule = "row 49" if closed.reason in ("no_key_no_status", "key_window_unknown") else "row 48"
        return Hold(closed.reason, rule, f"The outcome is unknown, and {closed.why}.")
    if closed.reason in ("no_key_no_status", "key_window_unknown"):
        return status_rules.decide_by_status(facts)
    return status_rules.decide_last_look(facts, closed)


def _read_again(facts: Facts) -> Action:
    """A read is repeated while the budget lasts. Then the step fails with the last error."""
    newest = facts.attempts[-1]
    if newest.kind in ("rejected", "other", "raised", "settled", "tls"):
        return Fail(newest, READ, "The read was refused.")
    if not _budget(facts).open:
        return Fail(newest, READ, "The read was repeated as often as the profile allows.")
    if facts.due > facts.wall:
        return Wait(facts.due, READ, "The read is repeated after a pause.")
    return Send(READ, "The read is repeated.")
