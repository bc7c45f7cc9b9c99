"""The action that follows from status checks, where no key allows a replay. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from journal.models import Attempt, Evidence
from journal.reconcile import replay_window
from journal.reconcile.actions import Action, Fail, Hold, Query, Send, Wait
from journal.reconcile.history import Facts
from journal.reconcile.replay_window import WindowCheck

# A question changes nothing, so it is repeated more readily than a dispatch.
_POLL_CAP = timedelta(seconds=60)


def poll_again(facts: Facts, since: datetime | None = None) -> Action:
    """Ask again, each time a little later."""
    asked = facts.counted_since(since)
    if not asked:
        return Query("Status: nothing was asked since the last attempt ended.")
    pause = min(replay_window.compute_backoff(f"{facts.key}?", len(asked) - 1), _POLL_CAP)
    due = replay_window.add_span(asked[-1].asked_at or facts.wall, pause)
    if due > facts.wall:
        return Wait(due, f"Status said {asked[-1].answer}: it is asked again.")
    return Query(f"Status said {asked[-1].answer}: asked again.")


def decide_by_status(facts: Facts) -> Action:
    """Column U of rows 2, 7, 8, 36 and 40: ask, then rows 44 to 47. `exists` was adopted before."""
    last, asked = facts.last, facts.counted
    if last is None or not asked:
        return Query("Rows 2, 8, 40: the outcome is unknown and no key decides it, so the status is asked.")
    newest = asked[-1]
    if newest.answer == "in_progress":
        return _age(facts) or poll_again(facts)
    if newest.answer == "absent":
        return _absent(facts, last, newest)
    return ask_while_silent(facts) or Hold(
        "status_gave_nothing", f"Row 45: {len(asked)} status queries gave no answer."
    )


def decide_last_look(facts: Facts, closed: WindowCheck) -> Action:
    """Row 48 and its kin: the key no longer helps; only `exists`, adopted before, settles the step without a person."""
    since = _closed_at(facts) if closed.reason == "key_window_closed" else None
    asked = facts.counted_since(since)
    if not asked:
        return Query(f"Row 48: {closed.why}, so the status is asked a last time.")
    if asked[-1].answer == "in_progress" and closed.reason == "attempts_used":
        return _age(facts) or poll_again(facts)
    return Hold(closed.reason, f"Row 48: {closed.why}, and the status said {asked[-1].answer}.")


def decide_after_rejection(facts: Facts) -> Action:
    """Row 22 where an earlier attempt is unknown: the rejection proves nothing about that one."""
    asked = facts.counted
    why = "Row 22: the last attempt was refused, but an earlier one may have been applied."
    if not facts.profile.asks:
        return Hold("rejected_after_unknown", why)
    if not asked:
        return Query(f"{why} The status is asked.")
    if asked[-1].answer == "in_progress":
        return _age(facts) or poll_again(facts)
    again = ask_while_silent(facts) if asked[-1].answer == "unknown" else None
    return again or Hold("rejected_after_unknown", f"{why} The status said {asked[-1].answer}.")


def decide_after_acceptance(facts: Facts, last: Attempt) -> Action:
    """Row 16: the provider accepted the request and has not carried it out yet. The request is never sent again."""
    asked = facts.counted
    if not facts.profile.asks:
        return Hold("other_outcome", "Row 16: accepted but not done yet, and the profile has no status query.")
    if not asked:
        return Query("Row 16: accepted but not done yet, so the status is asked.")
    if asked[-1].answer == "in_progress":
        return _age(facts) or poll_again(facts)
    if asked[-1].answer == "absent":
        # The status may show the work only once it is done.
        if facts.horizon_left(last) > timedelta(0):
            return poll_again(facts)
        return Hold("absent_not_proven", "Row 16: the provider accepted the request, and the status finds nothing.")
    silent = Hold("status_gave_nothing", f"Row 16: accepted, and {len(asked)} status queries gave no answer.")
    return ask_while_silent(facts) or silent


def decide_after_raise(facts: Facts, last: Attempt, replay: Action) -> Action:
    """A Python tool raised after its mark. `replay` is what the key allows; its hold where it allows nothing."""
    if not facts.profile.asks:
        if facts.profile.keyed:
            return replay
        return Hold("unknown_outcome", "The tool raised; it may have acted before, and nothing can tell.")
    if not facts.counted:
        return Query("The tool raised; it may have acted before, so the status is asked.")
    newest = facts.counted[-1]
    if newest.answer == "in_progress":
        return _age(facts) or poll_again(facts)
    if facts.profile.keyed and not isinstance(replay, Hold):
        # As without a status query: while the key protects a replay, no answer but these two makes the tool weaker.
        return replay
    if newest.answer == "absent" and facts.profile.status and facts.profile.status.absence == "authoritative":
        # The call has returned, its request may still be under way: a client's timeout ends only the waiting.
        newest_unknown = facts.unknown[-1]
        if facts.horizon_left(newest_unknown, newest) <= timedelta(0):
            return Fail(last, "The tool raised, and the status says that nothing was done.")
        return _until_horizon(facts, newest_unknown)
    if newest.answer == "absent":
        return Hold("absent_not_proven", "The tool raised; the status finds nothing but cannot prove it.")
    return ask_while_silent(facts) or Hold("status_gave_nothing", "The tool raised, and the status gave no answer.")


def ask_while_silent(facts: Facts) -> Action | None:
    """Row 45: asked again while the provider cannot be reached, a few times where it answers nonsense; then None."""
    asked = facts.counted
    spoke = sum(one.http_status is not None and one.http_status < 500 for one in asked)
    if (
        spoke >= facts.profile.max_attempts
        or replay_window.measure_age(facts.attempts, facts.now.moment) > facts.profile.max_age
    ):
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
            return Wait(due, f"Row 46: not there yet; asked {found} of {status.probes} times.")
        return Query("Row 46: the answer may lag behind, so the status is asked again.")
    return Hold("absent_not_proven", "Row 46: the status finds nothing, which proves nothing at this provider.")


def _absent_for_sure(facts: Facts, last: Attempt, newest: Evidence) -> Action:
    if facts.horizon_left(last, newest) > timedelta(0):
        return _until_horizon(facts, last)
    if facts.profile.on_absent != "redispatch" or facts.profile.duplicate_cost == "money":
        return Hold(
            "not_applied", "Row 47: the status says that nothing was done; the profile leaves the rest to people."
        )
    spent = replay_window.check_budget(facts.attempts, facts.profile, facts.now.moment)
    if not spent.open:
        return Hold(spent.reason, f"Row 47: nothing was done, but {spent.why}.")
    if facts.due > facts.wall:
        return Wait(facts.due, "Row 47: nothing was done; the same bytes go out after a pause.")
    return Send("Row 47: nothing was done, and nothing of ours can still be under way.")


def _until_horizon(facts: Facts, attempt: Attempt) -> Action:
    left = facts.horizon_left(attempt)
    if left > timedelta(0):
        return Wait(replay_window.add_span(facts.wall, left), "Row 47: absent, but the request may still be under way.")
    return Query("Row 47: the in-flight horizon has passed, so the status is asked once more.")


def _age(facts: Facts) -> Action | None:
    if replay_window.measure_age(facts.attempts, facts.now.moment) > facts.profile.max_age:
        return Hold("too_old", f"Row 44: still in progress after {facts.profile.max_age}.")
    return None


def _closed_at(facts: Facts) -> datetime | None:
    """When the window closed by wall time; None where another reading closed it, so that no question is repeated."""
    end = replay_window.find_window_end(facts.attempts, facts.profile)
    closed = None if end is None else end - facts.profile.timeout
    return closed if closed is not None and closed <= facts.wall else None
