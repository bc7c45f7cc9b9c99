"""What is said of a step's attempts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboard.timeline.status import describe_doubt, list_doubtful_attempts
from journal.models import Attempt, Decision, Evidence

WHEN = datetime(2026, 11, 1, 10, tzinfo=UTC)


def an_attempt(number: int, verdict: str | None) -> Attempt:
    return Attempt("t", 0, number, 1, WHEN, 100.0, "os", WHEN, verdict)  # type: ignore[arg-type]


def a_replay(consumed: int | None) -> Decision:
    return Decision(f"m{consumed}", "t", 0, "replay", "ann", "why", "k", "p", 1, WHEN, None, WHEN, "applied",
                    consumed_attempt=consumed)  # fmt: skip


def an_answer(after: int, answer: str, *, in_flight: bool = False) -> Evidence:
    return Evidence("t", 0, after, WHEN, 100.0, "os", answer, in_flight=in_flight)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdicts", "consumed", "answers", "doubtful"),
    [
        (["unknown", "applied"], 2, [], (1,)),
        ([None, "unknown", "applied"], 3, [], (1, 2)),
        (["no_effect", "applied"], 2, [], ()),
        (["unknown", "applied"], None, [], ()),
        (["unknown"], None, [], ()),
        (["unknown", "applied"], 2, [(1, "unknown")], (1,)),
        (["unknown", "applied"], 2, [(1, "absent")], ()),
    ],
)
def test_an_attempt_without_an_outcome_may_have_arrived_besides_the_one_a_person_approved(
    verdicts, consumed, answers, doubtful
):
    attempts = [an_attempt(number, verdict) for number, verdict in enumerate(verdicts, 1)]
    evidence = [an_answer(*answer) for answer in answers]
    assert list_doubtful_attempts(attempts, [a_replay(consumed)], evidence) == doubtful


def test_an_absence_that_was_answered_while_the_attempt_was_under_way_takes_no_doubt_away():
    attempts = [an_attempt(1, "unknown"), an_attempt(2, "applied")]
    evidence = [an_answer(1, "absent", in_flight=True)]
    assert list_doubtful_attempts(attempts, [a_replay(2)], evidence) == (1,)


def test_doubtful_attempts_are_named():
    assert describe_doubt(()) == ""
    assert describe_doubt((1,)) == "Attempt 1 may also have arrived."
    assert describe_doubt((1, 2, 4)) == "Attempts 1, 2 and 4 may also have arrived."
