"""The action that follows from status checks, where no key allows a replay. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from journal.models import Attempt, Evidence
from journal.reconcile import replay_window
from journal.reconcile.actions import Action, Fail, Hold, Query, Send, Wait
from journal.reconcile.history import Facts
from journal.reconcile.replay_window import WindowCheck

RAISED = "the tool raised"
# A status check changes nothing, so it is repeated sooner than a dispatch.
_POLL_CAP = timedelta(seconds=60)
_DETAIL_CHARACTERS = 500


def row_of(last: Attempt) -> str:
    """The row of an attempt whose outcome is unknown."""
    rows = {"gateway": "row 40", "rate_limited": "row 36", "lost_answer": "row 8", "raised": RAISED}
    return rows.get(last.kind or "", "row 2")


def poll_again(facts: Facts, since: datetime | None = None) -> Action:
    """Ask again, each time a little later."""
    asked = facts.counted_since(since)
    if not asked:
        return Query("row 44", "The status was not queried since the last attempt ended.")
    pause = min(replay_window.compute_backoff(f"{facts.key}?", len(asked) - 1), _POLL_CAP)
    due = replay_window.add_span(asked[-1].asked_at or facts.wall, pause)
    rule = "row 44" if asked[-1].answer == "in_progress" else "row 45"
    why = f"The status query said {asked[-1].answer.replace('_', ' ')}, so it is asked again."
    return Wait(due, rule, why) if due > facts.wall else Query(rule, why)


def decide_by_status(facts: Facts) -> Action:
    """Rows 2, 7, 8, 36 and 40 without a key: check the status, then rows 44 to 47. `exists` was adopted before."""
    last, asked = facts.last, facts.counted
    if last is None:
        return Query("row 2", "The outcome is unknown, so the status is queried.")
    if not asked:
        return Query(row_of(last), "The outcome is unknown and no key makes a replay safe, so the status is queried.")
    newest = asked[-1]
    if newest.answer == "in_progress":
        return _age(facts) or poll_again(facts)
    if newest.answer == "absent":
        return _absent(facts, last, newest)
    return ask_while_silent(facts) or Hold(
        "status_gave_nothing", "row 45", f"{len(asked)} status queries gave no answer."
    )


def decide_last_look(facts: Facts, closed: WindowCheck) -> Action:
    """Row 48: the key no longer helps. Without a person only `exists`, adopted before, settles the step."""
    since = _closed_at(facts) if closed.reason == "key_window_closed" else None
    asked = facts.counted_since(since)
    if not asked:
        return Query("row 48", f"The status is queried a last time, because {closed.why}.")
    if asked[-1].answer == "in_progress" and closed.reason == "attempts_used":
        return _age(facts) or poll_again(facts)
    said = asked[-1].answer.replace("_", " ")
    return Hold(closed.reason, "row 48", f"The status query said {said}, and {closed.why}.")


def decide_after_rejection(facts: Facts) -> Action:
    """Row 22 where an earlier attempt is unknown: the rejection proves nothing about that one."""
    asked = facts.counted
    why = "The last attempt was refused, but an earlier one may have been applied."
    if not facts.profile.asks:
        return Hold("rejected_after_unknown", "row 22", why)
    if not asked:
        return Query("row 22", f"{why} The status is queried.")
    if asked[-1].answer == "in_progress":
        return _age(facts) or poll_again(facts)
    again = ask_while_silent(facts) if asked[-1].answer == "unknown" else None
    return again or Hold("rejected_after_unknown", "row 22", f"{why} The status query said {asked[-1].answer}.")


def decide_after_acceptance(facts: Facts, last: Attempt) -> Action:
    """Row 16: the provider accepted the request and has not carried it out yet. The request is never sent again."""
    asked = facts.counted
    if not facts.profile.asks:
        return Hold(
            "other_outcome", "row 16", "The provider accepted it, has not done it yet, and has no status query."
        )
    if not asked:
        return Query("row 16", "The provider accepted it but has not done it yet, so the status is queried.")
    if asked[-1].answer == "in_progress":
        return _age(facts) or poll_again(facts)
    if asked[-1].answer == "absent":
        # The status may show the work only once it is done.
        if facts.horizon_left(last) > timedelta(0):
            return poll_again(facts)
        return Hold("absent_not_proven", "row 16", "The provider accepted it, but the status query finds nothing.")
    why = f"The provider accepted it, and {len(asked)} status queries gave no answer."
    return ask_while_silent(facts) or Hold("status_gave_nothing", "row 16", why)


def decide_after_raise(facts: Facts, last: Attempt, replay: Action) -> Action:
    """The action after a Python tool raised. `replay` is the action that the key allows, or its hold."""
    if not facts.profile.asks:
        if facts.profile.keyed:
            return replay
        return Hold("unknown_outcome", RAISED, f"{_raised(last)} It may have acted before, and has no status check.")
    if not facts.counted:
        return Query(RAISED, "The tool raised and may have acted before, so the status is queried.")
    newest = facts.counted[-1]
    if newest.answer == "in_progress":
        return _age(facts) or poll_again(facts)
    if facts.profile.keyed and not isinstance(replay, Hold):
        # As with the key alone: while it protects a replay, "absent" and "no answer" do not stop the replay.
        return replay
    if newest.answer == "absent" and facts.profile.status and facts.profile.status.absence == "authoritative":
        # The call has returned, but its request may still be under way: a timeout ends the waiting alone.
        newest_unknown = facts.unknown[-1]
        if facts.horizon_left(newest_unknown, newest) <= timedelta(0):
            return Fail(last, RAISED, "The tool raised, and the status query found that nothing was done.")
        return _until_horizon(facts, newest_unknown)
    if newest.answer == "absent":
        return Hold("absent_not_proven", RAISED, f"{_raised(last)} The status query finds nothing but cannot prove it.")
    return ask_while_silent(facts) or Hold(
        "status_gave_nothing", RAISED, f"{_raised(last)} The status query gave no answer."
    )


def _raised(attempt: Attempt) -> str:
    return f"The tool raised {attempt.detail[:_DETAIL_CHARACTERS]}."


def ask_while_silent(facts: Facts) -> Action | None:
    """Row 45: check again while the provider cannot be reached, or a few times if its answers are unusable."""
    asked = facts.counted
    spoke = sum(one.http_status is not None and one.http_status < 500 for one in asked)
    if spoke >= facts.profile.max_attempts or _is_too_old(facts):
        return None
    return poll_again(facts)


def _absent(facts: Facts, last: Attempt, newest: Evidence) -> Action:
    status = facts.profile.status
    absence = status.absence if status else "never"
    if absence == "authoritative":
        return _absent_for_sure(facts, last, newest)
    found = sum(one.answer == "absent" for one in facts.counted)
    if status is not None and absence == "eventual" and found < status.probes:
        due = replay_window.add_span(newest.asked_at or facts.wall, status.lag)
        if due > facts.wall:
            return Wait(due, "row 46", f"The effect is not there yet, after {found} of {status.probes} status queries.")
        return Query("row 46", "The provider's answer may lag behind, so the status is queried again.")
    return Hold("absent_not_proven", "row 46", "The status query finds nothing, which at this provider proves nothing.")


def _absent_for_sure(facts: Facts, last: Attempt, newest: Evidence) -> Action:
    if facts.horizon_left(last, newest) > timedelta(0):
        return _until_horizon(facts, last)
    if facts.profile.on_absent != "redispatch" or facts.profile.duplicate_cost == "money":
        why = "The status query found that nothing was done. The profile leaves a replay to people."
        return Hold("not_applied", "row 47", why)
    spent = replay_window.check_budget(facts.attempts, facts.profile, facts.now.moment)
    if not spent.open:
        return Hold(spent.reason, "row 47", f"Nothing was done, but {spent.why}.")
    if facts.due > facts.wall:
        return Wait(facts.due, "row 47", "Nothing was done. The same bytes are sent again after a pause.")
    return Send("row 47", "Nothing was done, and no request can still be under way. The same bytes are sent again.")


def _until_horizon(facts: Facts, attempt: Attempt) -> Action:
    left = facts.horizon_left(attempt)
    if left > timedelta(0):
        why = "The status query found nothing, but the request may still be under way."
        return Wait(replay_window.add_span(facts.wall, left), "row 47", why)
    return Query("row 47", "No request can still be under way, so the status is queried once more.")


def _age(facts: Facts) -> Action | None:
    if _is_too_old(facts):
        return Hold("too_old", "row 44", f"The provider is still at it after {facts.profile.max_age}.")
    return None


def _is_too_old(facts: Facts) -> bool:
    return replay_window.measure_age(facts.attempts, facts.now.moment) > facts.profile.max_age


def _closed_at(facts: Facts) -> datetime | None:
    """When the window closed by wall time; None where another reading closed it, so that no question is repeated."""
    end = replay_window.find_window_end(facts.attempts, facts.profile)
    closed = None if end is None else end - facts.profile.timeout
    return closed if closed is not None and closed <= facts.wall else None
