"""The limit on wrong passwords: for one person, and for everybody together. Counted in the audit, not in memory."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User

from agents.models import AuditEvent
from journal import clock

SIGN_IN = "sign in"
WRONG = "Name or password was wrong, or it is switched off."
MOST_OF_ONE = 8
MOST_OF_ALL = 60  # hashing a password is slow on purpose: many checks at once would delay every page
WINDOW = timedelta(minutes=10)


def find_wait(claimed: User | None) -> timedelta | None:
    """How long no password is checked for this person. None: a password may be tried now.

    `claimed` None stands for all names that no account has.
    """
    now = clock.wall()
    wrong = AuditEvent.objects.filter(action=SIGN_IN, detail=WRONG, at__gt=now - WINDOW).order_by("-at")
    ends = []
    for failures, most in ((wrong.filter(actor=claimed), MOST_OF_ONE), (wrong, MOST_OF_ALL)):
        oldest = failures.values_list("at", flat=True)[most - 1 : most].first()
        if oldest is not None:
            ends.append(oldest + WINDOW)
    return max(ends) - now if ends else None
