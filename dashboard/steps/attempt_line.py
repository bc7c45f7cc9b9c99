"""One attempt in words: its verdict, and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.journal_page import Opened
from dashboard.timeline.status import describe_attempt
from journal.models import Attempt, Step


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """One dispatch with its verdict and why."""

    attempt: Attempt
    state: str
    word: str
    why: str
    detail: str


# The meaning of each kind of attempt, as a sentence after "because".
_WHY = {
    "no_outcome": "It was about to be sent, and no answer is recorded: the process ended in between.",
    "dns": "The host's name did not resolve: no connection existed.",
    "not_connected": "No connection was made: not one byte of the request left.",
    "stale": "The check right before the first byte failed: it was too late, or another process had taken over.",
    "tls": "The TLS handshake failed before any byte of the request.",
    "lost_answer": "The request went out and no answer came back: it may have been carried out.",
    "accepted": "The provider answered with success.",
    "replayed": "The provider answered that it had carried this key out before.",
    "unmarked": "Success on a repeat, but without the promised replay mark: look for a second effect.",
    "rejected": "The provider refused the request as it stands.",
    "rate_limited": "The provider was asked too often and refused before acting.",
    "gateway": "A gateway gave up waiting: neither success nor failure.",
    "raised": "The tool raised an exception: it may have acted before.",
    "settled": "An operator said it was not applied.",
    "other": "No rule of the profile covers this answer.",
}


# The same where the agent's own code made the call: the journal knows no provider then.
_WHY_PYTHON = {
    "accepted": "The tool returned.",
    "rejected": "The tool said that it had no effect.",
}


def build_attempt_line(attempt: Attempt, opened: Opened, step: Step, *, reveal: bool) -> AttemptLine:
    """One attempt in words."""
    signal = describe_attempt(attempt, live=opened.live, now=opened.now)
    kind = attempt.kind or ("no_outcome" if attempt.verdict is None and signal.state != "running" else "")
    why = (_WHY | _WHY_PYTHON if step.transport == "python" else _WHY).get(kind, "")
    return AttemptLine(attempt, signal.state, signal.word, why, attempt.detail if reveal else "")
