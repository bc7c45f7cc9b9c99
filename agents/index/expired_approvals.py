"""Approvals that ran out before anything was sent: the step waits for a person again, whatever its row says. Pure.

The agent records the expiry when it starts. Both run on one machine with one clock, so pages need not wait for that.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from journal.models import Decision, Step


def expired_approval(step: Step, now: datetime) -> Decision | None:
    """The approval that expired unused; None if there is none, or if it can still be used."""
    decision = step.decision
    if decision is None or decision.expires_at is None or decision.expires_at > now:
        return None
    return decision


def without_expired_approval(step: Step, now: datetime) -> Step:
    """The step as recovery would judge it now: an approval that expired counts for nothing."""
    return step if expired_approval(step, now) is None else replace(step, decision=None)
