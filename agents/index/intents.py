"""Pending intents in the index: why each is pending, and what recovery would do next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Max

from agents.decisions.allowed import ENDED, can_be_asked, read_profile
from agents.index.expired_approvals import expired_approval, without_expired_approval
from agents.index.pace import Pace
from agents.models import IndexedTask, JournalFile, PendingIntent
from agents.models.pending_intent import FOREIGN, HELD, IN_FLIGHT, UNRESOLVED, WAITING
from agents.states import sum_up_sent
from journal import clock
from journal.models import Attempt, Step
from journal.reader.snapshot import IntentSnapshot
from journal.reconcile import actions
from journal.reconcile.decide import decide

if TYPE_CHECKING:
    from journal.providers.profile import Profile
    from journal.reader import Reader

Known = dict[tuple[str, int], PendingIntent]

# As horizons and key windows pass, recovery would decide otherwise: intents are looked at again this often.
STALE = timedelta(seconds=30)
_NO_KEY_COUNTS = "It changes nothing outside, so no key counts."
_CHANGED = -1  # no journal has this revision: it marks an intent to be looked at again
MOST = 1000  # pending intents kept per journal, those changed the longest ago; as they are settled the others follow


_COLUMNS = tuple(
    field.name
    for field in PendingIntent._meta.concrete_fields
    if field.name not in ("id", "journal", "task_id", "step_index")
)


@dataclass(frozen=True, slots=True)
class Outlook:
    """The derived columns of one pending intent."""

    state: str
    hold_reason: str = ""
    next_action: str = ""
    next_sentence: str = ""
    next_attempt_at: datetime | None = None
    window_left_until: datetime | None = None
    window_text: str = ""


def update_slices(journal: JournalFile, reader: Reader) -> Iterator[None]:
    """Bring the journal's pending intents in line with its rows; pauses after each slice of the work.

    Settled ones leave. New, changed and marked ones are looked at, and those last looked at half a minute ago. The row
    of each intent says when that was: a kill leaves the others to be looked at.
    """
    now = clock.wall()
    # A held step of any effect waits for a person. Recovery ignores other steps that change nothing outside.
    pending = [step for step in reader.pending(limit=MOST) if step.effect in ("mutating", None) or step.hold_reason]
    pending += [step for step in reader.diverged(limit=MOST) if step.status != "pending"]
    known = {(row.task_id, row.step_index): row for row in PendingIntent.objects.filter(journal=journal)}
    settled = known.keys() - {(step.task_id, step.step_index) for step in pending}
    PendingIntent.objects.filter(pk__in=[known[place].pk for place in settled]).delete()
    due = [step for step in pending if _is_due(step, known.get((step.task_id, step.step_index)), now)]
    pace = Pace()
    while due:
        with pace.slice():
            steps, due = due[: pace.rows], due[pace.rows :]
            places = [(step.task_id, step.step_index) for step in steps]
            ours = journal.dialect == "stepkeeper"
            intents = reader.load_intents(places) if ours else [IntentSnapshot(step) for step in steps]
            _put(journal, intents, known, now)
        yield


def _is_due(step: Step, row: PendingIntent | None, now: datetime) -> bool:
    return row is None or row.revision != step.revision or now - row.decided_at > STALE


def mark_changed(journal: JournalFile, task_ids: Collection[str] | None = None) -> None:
    """Have the intents of these tasks, or all of the journal's, looked at again."""
    rows = PendingIntent.objects.filter(journal=journal)
    (rows if task_ids is None else rows.filter(task_id__in=task_ids)).update(revision=_CHANGED)


def journals_with_old_intents() -> set[int]:
    """The journals with an intent last looked at so long ago that its outlook may have changed by itself."""
    late = PendingIntent.objects.filter(decided_at__lt=clock.wall() - STALE)
    return set(late.values_list("journal", flat=True).distinct())


def _put(journal: JournalFile, intents: list[IntentSnapshot], known: Known, now: datetime) -> None:
    newest = IndexedTask.objects.filter(journal=journal).aggregate(at=Max("updated_at"))["at"]
    moment = actions.Now(moment=clock.moment(), newest=newest, boot=journal.highest_boot + 1, doubt=journal.doubt)
    rows = []
    for intent in intents:
        before = known.get((intent.step.task_id, intent.step.step_index))
        rows.append(_row(journal, intent, moment, now, first_read=before.since if before else now))
    # One transaction: a kill before its commit leaves these intents to be looked at again.
    PendingIntent.objects.bulk_create(
        rows,
        batch_size=200,
        update_conflicts=True,
        unique_fields=["journal", "task_id", "step_index"],
        update_fields=_COLUMNS,
    )


def _row(
    journal: JournalFile, intent: IntentSnapshot, moment: actions.Now, now: datetime, *, first_read: datetime
) -> PendingIntent:
    step = intent.step
    status = intent.task.status[:16] if intent.task else ""
    profile = read_profile(step, intent.profile_json) if journal.dialect == "stepkeeper" else None
    judged = replace(intent, step=without_expired_approval(step, now))
    outlook = _outlook(journal, judged, profile, status, moment)
    lapsed = expired_approval(step, now) if outlook.state == HELD else None
    return PendingIntent(
        journal=journal,
        task_id=step.task_id,
        step_index=step.step_index,
        agent=journal.agent,
        tool_name=step.tool_name[:200],
        effect=step.effect or "",
        transport=step.transport,
        provider=step.provider or "",
        key=(step.idempotency_key or "")[:200],
        payload_sha256=(step.payload_sha256 or "")[:64],
        arguments_bytes=step.arguments_bytes,
        dispatches=count_dispatches(intent.attempts),
        sent=sum_up_sent(attempt.verdict for attempt in intent.attempts),
        raised=bool(intent.attempts) and intent.attempts[-1].kind == "raised",
        target=intent.host[:200],
        state=outlook.state,
        hold_reason=outlook.hold_reason,
        differs_at=(step.hold_parameter or "") if outlook.hold_reason == "diverged" else "",
        lapsed_actor=lapsed.actor[:200] if lapsed else "",
        detail=_detail(step, outlook),
        next_action=outlook.next_action,
        next_sentence=outlook.next_sentence,
        next_attempt_at=outlook.next_attempt_at or step.next_attempt_at,
        since=step.created_at or step.updated_at or first_read,
        dated=bool(step.created_at or step.updated_at),
        window_left_until=outlook.window_left_until,
        window_text=outlook.window_text,
        task_status=status,
        asks=can_be_asked(profile),
        revision=step.revision,
        decided_at=now,
    )


def _detail(step: Step, outlook: Outlook) -> str:
    """What a hold quotes. Where code diverged that is the whole place: below a parameter it is made of payload keys."""
    said = step.hold_detail or ""
    if outlook.state != HELD or (step.hold_reason == "diverged" and outlook.hold_reason != "diverged"):
        return ""
    if outlook.hold_reason == "diverged":
        return "" if said == step.hold_parameter else f"In full: {said}."
    return said


def count_dispatches(attempts: Sequence[Attempt]) -> int:
    """How often the intent may have left this machine. A decision is bound to this number."""
    return sum(attempt.verdict != "not_sent" for attempt in attempts)


def _outlook(
    journal: JournalFile, intent: IntentSnapshot, profile: Profile | None, task_status: str, moment: actions.Now
) -> Outlook:
    step, attempts = intent.step, intent.attempts
    if journal.dialect != "stepkeeper":
        return Outlook(FOREIGN)
    if attempts and attempts[-1].verdict is None and journal.agent_is_alive and step.boot == journal.highest_boot:
        return Outlook(IN_FLIGHT)
    if task_status in ENDED:
        return _of_ended_task(step)
    if step.hold_reason == "diverged":
        return Outlook(HELD, "diverged", "hold", window_text="Nothing is sent, so no key counts.")
    if step.effect in ("read_only", "model"):
        return Outlook(HELD, step.hold_reason or "", "hold", window_text=_NO_KEY_COUNTS)
    if profile is None:
        return Outlook(HELD, "profile_missing")
    until, text = _window(profile, attempts)
    reason, state = step.hold_reason or "", UNRESOLVED
    action, why, due = _decide(intent, profile, moment)
    if action == "hold" or (reason and step.decision is None):
        state = HELD
        reason = reason or why
    elif action == "wait":
        state = WAITING
    sentence = "" if action == "hold" else why
    return Outlook(state, reason if state == HELD else "", action, sentence, due, until, text)


def _of_ended_task(step: Step) -> Outlook:
    """Recovery sends nothing of an ended task. Only a person can still say what became of its step."""
    # The task has ended, so no code runs that could diverge.
    reason = "" if step.hold_reason == "diverged" else step.hold_reason or ""
    text = _NO_KEY_COUNTS if step.effect in ("read_only", "model") else "Nothing is sent any more."
    return Outlook(HELD, reason or "task_ended", "hold", window_text=text)


def _decide(intent: IntentSnapshot, profile: Profile, moment: actions.Now) -> tuple[str, str, datetime | None]:
    action = decide(intent.step, intent.attempts, intent.evidence, profile, moment)
    name = type(action).__name__.lower()
    if isinstance(action, actions.Hold):
        return name, action.reason, None
    return name, action.why, action.until if isinstance(action, actions.Wait) else None


def _window(profile: Profile, attempts: Sequence[Attempt]) -> tuple[datetime | None, str]:
    sent = [attempt.started_at for attempt in attempts if attempt.verdict != "not_sent" and attempt.started_at]
    if not profile.keyed:
        return None, "The provider takes no key."
    if profile.window is None:
        return None, "How long the provider keeps a key is not known."
    if profile.window == timedelta.max:
        return None, "The provider keeps a key for ever."
    if not sent:
        return None, "The key was never used."
    return min(sent) + profile.window, ""
