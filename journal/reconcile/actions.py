"""The six actions that recovery can take on a pending intent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from journal.clock import Moment
from journal.models import Attempt, JournalDoubt


@dataclass(frozen=True, slots=True)
class Now:
    """When a decision is made, and in which state of the journal.

    `newest` is the newest wall time in the journal, `boot` the number of this boot. `doubt`: the file is restored,
    copied or another one, and nobody has accepted it yet.
    """

    moment: Moment
    newest: datetime | None
    boot: int
    doubt: JournalDoubt | str | None = None


# Every action says `rule`, the row or law of the recovery table it follows, and `why`, a sentence for people.


@dataclass(frozen=True, slots=True)
class Send:
    """Dispatch the stored bytes under the stored key."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Query:
    """Ask the provider about the key, record the evidence, decide again."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing before `until`; then decide again."""

    until: datetime
    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """Commit the step with this output. `alarm` is a sentence for people if the effect may exist twice."""

    output_json: str | None
    source: Literal["attempt", "evidence"]
    rule: str
    why: str
    alarm: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """The effect did not happen and will not. The step failed with this attempt's error."""

    attempt: Attempt
    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Hold:
    """No machine may decide: `reason` is a word of `journal.hold_reasons`."""

    reason: str
    rule: str
    why: str


Action = Send | Query | Wait | Adopt | Fail | Hold
