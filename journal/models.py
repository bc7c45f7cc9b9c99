"""The models: the meaning of the journal's rows, as frozen values.

Readers of damaged or foreign journals put `None` in the place of a missing cell. `odd` names the columns of the cells
they could not read, so that one bad cell is one marked cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Effect = Literal["read_only", "mutating", "model"]
StepStatus = Literal["pending", "committed", "failed", "abandoned"]
TaskStatus = Literal["queued", "running", "waiting", "completed", "failed", "cancelled"]
Verdict = Literal["not_sent", "no_effect", "applied", "in_progress", "unknown"]
# The kind of an attempt's outcome; docs/reference/recovery.md explains the rows. Recovery decides by kind, never by
# free text.
Kind = Literal[
    "no_outcome",  # row 2: a mark and nothing after it
    "dns",  # row 3
    "not_connected",  # row 4
    "stale",  # law 6: boot or age re-check failed before the first byte
    "tls",  # row 5
    "lost_answer",  # row 8
    "accepted",  # row 13: 2xx, or the Python tool returned
    "replayed",  # row 14: 2xx with the replay marker
    "unmarked",  # row 15: 2xx on a re-dispatch, marker promised but missing
    "rejected",  # row 22
    "rate_limited",  # row 36
    "gateway",  # row 40
    "raised",  # a Python tool raised: it may have acted before
    "settled",  # an operator said: not applied
    "other",  # every row not listed: held
]
Answer = Literal["exists", "absent", "in_progress", "unknown"]
CallState = Literal["open", "exact", "partial", "unknown"]
Role = Literal["agent", "supervisor", "cli", "worker"]
JournalDoubt = Literal[
    "older",  # the file holds less than its last writer wrote
    "copied",  # the file is a copy of the one its last writer wrote
    "replaced",  # another journal stood at this path before
]
WaitKind = Literal[
    "held",  # a step waits for a person, or for what mends its hold
    "due",  # a step is due at a time of its own
    "diverged",  # the code asks for another step than the journal holds
    "unwritten",  # the journal could not be written
    "unset",  # environment variables are not set
    "no_handler",  # this agent has no handler of the task's name
    "interrupted",  # the process was stopping
    "broken_off",  # SystemExit, KeyboardInterrupt or a cancellation left the handler
    "unresolved",  # the handler ended while a step was pending
]
DecisionKind = Literal[
    "replay",
    "mark_committed",
    "mark_not_applied",
    "abandon",
    "retry_task",
    "cancel_task",
    "accept_journal",
]


DecisionOutcome = Literal["applied", "refused", "expired", "superseded"]


def describe_answer(http_status: int | None, detail: str) -> str:
    """A provider's answer, or what went wrong instead, on one line."""
    return ": ".join(filter(None, ("" if http_status is None else f"HTTP {http_status}", detail)))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One dispatch of an intent. `verdict` None = a mark on disk without an outcome: unknown (law 1)."""

    task_id: str
    step_index: int
    attempt: int
    boot: int
    started_at: datetime | None
    started_boottime: float | None
    os_boot_id: str | None
    ended_at: datetime | None = None
    verdict: Verdict | None = None
    kind: Kind | None = None
    http_status: int | None = None
    detail: str = ""
    retry_after_at: datetime | None = None
    output_json: str | None = None
    key_generation: int = 0
    decision_id: str | None = None
    duration: float | None = None  # seconds, by boot time
    sent_at: datetime | None = None  # when the first byte of an HTTP request was about to be written
    odd: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One status query's answer, bound to the newest attempt at the time it was asked."""

    task_id: str
    step_index: int
    attempt: int
    asked_at: datetime | None
    asked_boottime: float | None
    os_boot_id: str | None
    answer: Answer
    source: str = ""  # "status" | "tool" | "worker" | "late"
    http_status: int | None = None
    detail: str = ""
    output_json: str | None = None
    in_flight: bool = False  # asked while an attempt of the then-current boot had no outcome
    id: int = 0
    odd: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """An operator's decision about one step, and its outcome."""

    message_id: str
    task_id: str
    step_index: int | None
    kind: DecisionKind | str
    actor: str
    reason: str
    key: str | None
    payload_sha256: str | None
    dispatches: int | None
    created_at: datetime | None
    expires_at: datetime | None
    applied_at: datetime | None = None
    outcome: DecisionOutcome | str = ""
    outcome_detail: str = ""  # why it was refused, or which decision superseded it, for a person to read
    output_json: str | None = None
    reference: str | None = None
    consumed_attempt: int | None = None  # the attempt an approved replay sent
    odd: tuple[str, ...] = ()

    @property
    def came_late(self) -> bool:
        """Whether it had expired before the journal's writer took it in."""
        return self.expires_at is not None and self.applied_at is not None and self.expires_at <= self.applied_at


@dataclass(frozen=True, slots=True)
class FrozenRequest:
    """The HTTP request as it will be sent, byte for byte, credentials as references.

    `headers` are (name, text) pairs; `refs` say where a reference stands: (part, start, end, env name, quoting, mark)
    with part "url", "body" or "header:<n>"; start and end count characters (bytes in the body). The mark tells whether
    the variable still has the value the request was made with; empty in a header, whose credentials may change.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    refs: tuple[tuple[str, int, int, str, str, str], ...]
    sha256: str
    body_bytes: int | None = None  # set by readers; more than len(body) where only the beginning was read
    odd: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call or model call of a task. Payload columns are None where a list did not select them."""

    task_id: str
    step_index: int
    tool_name: str
    status: StepStatus | str
    effect: Effect | None
    idempotency_key: str | None
    arguments_json: str | None
    output_json: str | None
    created_at: datetime | None
    updated_at: datetime | None
    args_hash: str | None = None
    payload_sha256: str | None = None
    key_generation: int = 0
    starts: int = 0
    hold_reason: str | None = None
    hold_detail: str | None = None
    prompt_hashes: str | None = None  # of a long prompt: where another one differs from it first
    hold_parameter: str | None = None  # of a diverged step: the parameter that differs, or `tool`
    next_attempt_at: datetime | None = None
    boot: int | None = None
    revision: int = 0
    transport: str = "python"  # "python" | "http"
    provider: str | None = None
    profile_version: str | None = None
    output_complete: bool = True
    error_json: str | None = None
    drift_json: str | None = None
    reference: str | None = None
    committed_boot: int | None = None
    duration: float | None = None  # seconds, by boot time
    arguments_bytes: int | None = None
    output_bytes: int | None = None
    decision: Decision | None = None  # an applied `replay` not yet consumed
    replayable: bool = True
    odd: tuple[str, ...] = ()
    replayable_reason: str = ""  # why not, where `replayable` is False
    alarm: str | None = None  # a sentence where the effect may exist twice
    previewed: tuple[str, ...] = ()  # payload columns of which only the beginning was read


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One provider response of a model step: disjoint token buckets, None where not reported."""

    task_id: str
    step_index: int
    call: int
    boot: int
    started_at: datetime | None
    ended_at: datetime | None
    state: CallState | str
    api: str | None = None
    model: str | None = None
    request_model: str | None = None
    response_id: str | None = None
    raw_usage: str | None = None
    in_uncached: int | None = None
    in_cache_read: int | None = None
    in_cache_write: int | None = None
    out_visible: int | None = None
    out_reasoning: int | None = None
    service_tier: str | None = None
    flags: str = ""
    id: int = 0
    revision: int = 0
    odd: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitReason:
    """The reason a task waits. The step is the task's own or one of a branch."""

    kind: WaitKind | str
    step_task: str | None = None
    step_index: int | None = None
    hold: str | None = None  # the step's hold reason
    detail: str | None = None  # names for a person to read: of variables, or of the exception that left the handler


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One piece of work of an agent."""

    task_id: str
    status: TaskStatus | str
    handler: str | None = None
    input_json: str | None = None
    parent_id: str | None = None
    agent: str | None = None
    wait_kind: WaitKind | str | None = None
    wait_step_task: str | None = None
    wait_step_index: int | None = None
    wait_hold: str | None = None
    wait_detail: str | None = None
    output_json: str | None = None
    error_json: str | None = None
    next_attempt_at: datetime | None = None
    boot: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    ended_at: datetime | None = None
    conflict: str | None = None
    conflict_at: datetime | None = None
    cancel_reason: str | None = None
    revision: int = 0
    steps: int | None = None
    pending: int | None = None
    odd: tuple[str, ...] = ()
    derived: bool = False  # the journal has no tasks: this one was put together from its steps
    previewed: tuple[str, ...] = ()  # payload columns of which only the beginning was read

    @property
    def wait(self) -> WaitReason | None:
        """The reason the task waits; None if it does not wait, or if the journal does not say."""
        if self.wait_kind is None:
            return None
        return WaitReason(self.wait_kind, self.wait_step_task, self.wait_step_index, self.wait_hold, self.wait_detail)


@dataclass(frozen=True, slots=True)
class Run:
    """One opening of a task by a process. Steps up to `served_through` were served from the journal."""

    task_id: str
    run: int
    boot: int
    started_at: datetime | None
    ended_at: datetime | None
    served_through: int
    ended: str | None
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Boot:
    """One taking of the writer's lock that wrote; only `agent` boots are restarts."""

    boot: int
    role: Role | str
    pid: int | None
    host: str | None
    os_boot_id: str | None
    started_at: datetime | None
    ended_at: datetime | None
    ended: str | None  # "clean", "SIGKILL", "exit 1", "out of memory", "vanished", …
    recovery_model_calls: int = 0
    clock_offset: float = 0.0
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that holds the journal's lock now."""

    pid: int
    role: str
    alive: bool = True
