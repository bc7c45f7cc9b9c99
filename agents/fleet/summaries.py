"""The values that fleet pages show: frozen, and made from rows of the dashboard's own tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from agents.models import IndexedTask, JournalFile, PendingIntent
from agents.models.job import DECISION, QUERY_STATUS
from agents.models.journal_file import VANISHED
from agents.money import Money
from agents.paging import line_of
from agents.states import AgentState
from journal.hold_reasons import Sent
from journal.models import WaitReason

# By journal, task, step and kind: the job's uuid.
OpenJobs = dict[tuple[int | None, str, int | None, str], str]


@dataclass(frozen=True, slots=True)
class AgentLine:
    """One agent (one journal): one word, and sentences that are each a fact."""

    journal_id: int
    agent: str
    state: AgentState
    sentence: str
    pid: int | None  # of its living process
    changed_at: datetime | None  # the newest change of one of its tasks, as its journal dates it


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task of one journal. `state` is what nobody stored where there is such a thing, else the stored status."""

    journal_id: int
    task_id: str
    parent_id: str | None
    agent: str
    handler: str
    status: str
    state: str
    wait: WaitReason | None
    steps: int
    pending: int
    tokens_in: int | None
    tokens_out: int | None
    cost: Money | None  # None: the journal is another maker's and does not say
    saved_tokens: int
    saved: Money
    started_at: datetime | None
    updated_at: datetime | None
    ended_at: datetime | None
    last_boot: int | None
    error_type: str = ""
    error_message: str = ""  # may quote a payload: for who may see those
    branches: int = 0

    @property
    def name(self) -> str:
        """The task's id; of a branch its own part of it."""
        return self.task_id if self.parent_id is None else self.task_id.removeprefix(f"{self.parent_id}/")


@dataclass(frozen=True, slots=True)
class IntentLine:
    """One pending intent. `state`: in_flight, waiting, unresolved, held or foreign."""

    journal_id: int
    task_id: str
    step_index: int
    agent: str
    tool_name: str
    effect: str
    transport: str
    provider: str
    key: str
    payload_sha256: str
    arguments_bytes: int | None
    dispatches: int
    sent: Sent
    raised: bool
    target: str
    state: str
    hold_reason: str
    differs_at: str  # of diverged code: the parameter that differs, or `tool`
    lapsed_actor: str  # whose approval expired before anything was sent
    next_action: str  # send query wait adopt fail hold, or ""
    next_sentence: str
    next_attempt_at: datetime | None
    since: datetime | None
    window_left_until: datetime | None
    window_text: str
    task_status: str = ""
    asks: bool = False  # whether somebody can be asked for its status
    detail: str = ""  # may quote a provider: for who may see payloads
    job_uuid: str | None = None  # an open decision about this step
    question_uuid: str | None = None  # an open question about its status
    twins: tuple[str, ...] = ()  # the other journals with a pending step of the same key and provider

    @property
    def needs_person(self) -> bool:
        return self.state == "held"


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One journal file, or the card that says what is wrong with it (`kind` other than "ok" and "new")."""

    journal_id: int
    path: str
    agent: str
    uuid: str
    kind: str
    sentence: str
    hint: str
    warnings: tuple[str, ...]
    dialect: str
    journal_mode: str
    tasks: int
    pending: int
    writer_pid: int | None
    writer_role: str
    file_bytes: int
    wal_bytes: int
    inbox_messages: int
    highest_boot: int
    highest_revision: int
    copy_of_id: int | None
    doubt: str  # restored or copied, and nobody accepted it yet: what it is
    found_at: datetime
    seen_at: datetime
    read_at: datetime | None

    @property
    def is_fine(self) -> bool:
        """Whether nothing is wrong with it: what was just found, or acknowledged, is about to be read."""
        return self.kind in ("ok", "new")

    @property
    def is_gone(self) -> bool:
        return self.kind == VANISHED


@dataclass(frozen=True, slots=True)
class IndexAge:
    """How old what the fleet pages show is. `beaten_at` None: watch has never run."""

    beaten_at: datetime | None
    seconds: float | None
    stale: bool


@dataclass(frozen=True, slots=True)
class DiskLine:
    """The volume nearest to full, in one line."""

    mount: str
    free_bytes: int
    total_bytes: int
    used_percent: float
    level: str  # "ok", "warning", "critical"
    full_at: datetime | None


@dataclass(frozen=True, slots=True)
class Overview:
    """The fleet in words and numbers. `sentence` says the state in one sentence."""

    sentence: str
    agents: tuple[AgentLine, ...]
    states: Mapping[AgentState, int]  # how many agents are in each state
    pending: int
    held: int
    oldest_held_at: datetime | None
    oldest_pending_at: datetime | None
    spent_today: Money
    tokens_today: int
    saved_today: Money
    saved_tokens_today: int
    disk: DiskLine | None
    journals: int
    journals_bad: int
    journals_foreign: int  # of other makers: they say nothing of what their agents spend
    journals_ours: int
    journals_unread: int  # ours, known by their id, and not readable now: what they spent today is in no sum
    alerts_open: int
    index: IndexAge
    recent: tuple[TaskLine, ...]

    @property
    def is_empty(self) -> bool:
        """Whether no journal was ever found."""
        return self.journals == 0


def task_line(row: IndexedTask, *, branches: int = 0) -> TaskLine:
    """A task's row as pages show it; `branches` stand right below it."""
    return line_of(
        TaskLine,
        row,
        cost=None if row.journal.is_foreign else Money.of(row.cost_pico, unpriced_calls=row.unpriced_calls),
        saved=Money.of(row.saved_pico, unpriced_calls=row.saved_unpriced_calls),
        updated_at=row.updated_at if row.dated else None,
        branches=branches,
    )


def intent_line(row: PendingIntent, jobs: OpenJobs, twins: Collection[str]) -> IntentLine:
    """An intent's row as pages show it, with the open jobs about it and the journals that have its twins."""
    place = (row.journal_id, row.task_id, row.step_index)
    return line_of(
        IntentLine,
        row,
        since=row.since if row.dated else None,
        job_uuid=jobs.get((*place, DECISION)),
        question_uuid=jobs.get((*place, QUERY_STATUS)),
        twins=tuple(sorted(twins)),
    )


def journal_line(row: JournalFile, tasks: dict[int, int], waiting: dict[int, int]) -> JournalLine:
    """A journal file's row as pages show it, with its numbers of tasks and of pending intents."""
    return line_of(
        JournalLine,
        row,
        journal_id=row.pk,
        warnings=tuple(row.warnings),
        tasks=tasks.get(row.pk, 0),
        pending=waiting.get(row.pk, 0),
    )
