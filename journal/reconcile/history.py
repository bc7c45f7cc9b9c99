"""The attempts and evidence of one pending step, sorted out for a decision. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from journal.clock import Moment
from journal.models import Attempt, Evidence, Step
from journal.providers.profile import Profile
from journal.reconcile import replay_window
from journal.reconcile.actions import Now

_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Facts:
    """The attempts of the step's key generation and the evidence, each in order, with the facts that follow."""

    step: Step
    profile: Profile
    now: Now
    attempts: tuple[Attempt, ...]
    evidence: tuple[Evidence, ...]
    in_flight: bool

    @classmethod
    def of(
        cls, step: Step, attempts: Sequence[Attempt], evidence: Sequence[Evidence], profile: Profile, now: Now
    ) -> Facts:
        own = sorted(
            (one for one in attempts if one.key_generation == step.key_generation), key=lambda one: one.attempt
        )
        asked = sorted(evidence, key=lambda one: (one.asked_at or _EARLIEST, one.id))
        # An intent of the current boot is in flight: its own sender writes the outcome.
        flying = any(one.verdict is None and one.boot >= now.boot for one in attempts)
        return cls(step, profile, now, tuple(own), tuple(asked), flying)

    @property
    def wall(self) -> datetime:
        return self.now.moment.wall

    @property
    def key(self) -> str:
        return self.step.idempotency_key or ""

    @property
    def dispatched(self) -> tuple[Attempt, ...]:
        """The attempts that may have arrived."""
        return tuple(one for one in self.attempts if one.verdict != "not_sent")

    @property
    def last(self) -> Attempt | None:
        """The newest attempt that may have arrived."""
        return self.dispatched[-1] if self.dispatched else None

    @property
    def unsent(self) -> tuple[Attempt, ...]:
        """The attempts after `last`: each proven not sent."""
        return self.attempts[self.attempts.index(self.dispatched[-1]) + 1 :] if self.dispatched else self.attempts

    @property
    def unknown(self) -> tuple[Attempt, ...]:
        """The attempts with unknown effect. A started attempt without outcome is one (law 1)."""
        return tuple(one for one in self.attempts if one.verdict in (None, "unknown", "in_progress"))

    def may_have_arrived_before(self, attempt: Attempt) -> bool:
        """Whether an earlier attempt without a known effect may have arrived.

        None may have if none came to its first byte, or if the status said afterwards that nothing was there.
        """
        earlier = [one for one in self.unknown if one.attempt < attempt.attempt and self._may_have_left(one)]
        if not earlier:
            return False
        status = self.profile.status
        return not (
            status is not None
            and status.absence == "authoritative"
            and any(
                one.answer == "absent"
                and one.attempt >= earlier[-1].attempt
                and _counts(one, earlier[-1])
                and (attempt.started_at is None or (one.asked_at or _EARLIEST) <= attempt.started_at)
                for one in self.evidence
            )
        )

    def _may_have_left(self, attempt: Attempt) -> bool:
        # An attempt that ended with its process says by `sent_at` whether its first byte was due. That is not synced:
        # after a restart of the machine it may be missing.
        if attempt.verdict is not None and attempt.kind != "no_outcome":
            return True
        return attempt.sent_at is not None or attempt.os_boot_id != self.now.moment.os_boot_id

    @property
    def due(self) -> datetime:
        """The time of the next attempt: after the back-off and the wait that the provider asked for."""
        last, n = self.last, len(self.dispatched) - 1
        if self.unsent:
            due = _after(self.unsent[-1], replay_window.compute_backoff(self.key, len(self.unsent) - 1))
        elif last is None:
            due = None
        elif last.kind in (None, "no_outcome"):
            # The restart was the pause. Only a step whose process dies again and again waits longer.
            due = _after(last, replay_window.compute_backoff(self.key, n - 1)) if n else None
        else:
            due = _after(last, replay_window.compute_backoff(self.key, n))
        times = [due, last.retry_after_at if last else None]
        return max([one for one in times if one is not None], default=self.wall)

    @property
    def counted(self) -> tuple[Evidence, ...]:
        """The evidence about the newest dispatched attempt, asked after it had ended or was known dead."""
        last = self.last
        return tuple(one for one in self.evidence if last is not None and _counts(one, last))

    def counted_since(self, moment: datetime | None) -> tuple[Evidence, ...]:
        """`counted`, asked at `moment` or later."""
        return tuple(one for one in self.counted if moment is None or (one.asked_at or _EARLIEST) >= moment)

    def exists(self) -> Evidence | None:
        """The newest `exists` asked once something of ours may have arrived."""
        first = self.dispatched[0].attempt if self.dispatched else None
        found = [one for one in self.evidence if one.answer == "exists" and first is not None and one.attempt >= first]
        return found[-1] if found else None

    def seen_before(self) -> bool:
        """Whether the key existed before any dispatch of ours (law 10). Only generation 0 has no older evidence."""
        first = self.dispatched[0].attempt if self.dispatched else None
        return self.step.key_generation == 0 and any(
            one.answer == "exists" and (first is None or one.attempt < first) for one in self.evidence
        )

    def horizon_left(self, attempt: Attempt, at: Evidence | None = None) -> timedelta:
        """The rest of an attempt's in-flight horizon, now or when the evidence was asked; the smaller reading counts.

        It runs from the attempt's end where one was written, however long the call had taken.
        """
        moment = self.now.moment if at is None else _asked(at)
        if moment is None:
            return self.profile.horizon
        small = replay_window.measure_elapsed(replay_window.read_start(attempt), moment)[0]
        return self.profile.horizon - (
            small if attempt.ended_at is None else min(small, moment.wall - attempt.ended_at)
        )


def _after(attempt: Attempt, span: timedelta) -> datetime | None:
    base = attempt.ended_at or attempt.started_at
    return None if base is None else replay_window.add_span(base, span)


def _asked(evidence: Evidence) -> Moment | None:
    if evidence.asked_at is None:
        return None
    if evidence.asked_boottime is None:
        return Moment(evidence.asked_at, 0.0, "")
    return Moment(evidence.asked_at, evidence.asked_boottime, evidence.os_boot_id or "")


def _counts(evidence: Evidence, last: Attempt) -> bool:
    since = last.ended_at or last.started_at
    if (
        evidence.asked_at is None
        or evidence.attempt < last.attempt
        or (since is not None and evidence.asked_at < since)
    ):
        return False
    # While the request was still under way, "absent" proves nothing.
    return not (evidence.answer == "absent" and evidence.in_flight)
