"""One attempt of an intent, and the record of its verdict."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from journal import clock, codec, stored_errors
from journal.effects import Invoke, NotCalled, Program, Write
from journal.errors import NoEffect, StepkeeperError
from journal.http.frozen_request import MissingReference
from journal.http.secrets import Secrets
from journal.models import Evidence, FrozenRequest, Step
from journal.providers.classify import Outcome
from journal.providers.profile import Profile
from journal.store.sql import attempts, decisions, evidence, steps
from journal.store.sql.attempts import Mark
from journal.store.transaction import Transaction
from journal.store.writer import Store
from journal.tools import Call, Tool

# Law 6: older than this between the mark and the first byte, nothing is sent.
MAX_SEND_DELAY = 5.0
_RELAXED_WINDOW_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Intent:
    """A mutating step's stored bytes and the promises they were made under."""

    step: Step
    profile: Profile
    request: FrozenRequest | None

    @property
    def synced_commit(self) -> bool:
        """Whether the commit must be synced: no, where a lost one would be settled again without a person."""
        window = self.profile.window
        dedupes = self.profile.keyed and window is not None and window.total_seconds() >= _RELAXED_WINDOW_SECONDS
        return not (dedupes or self.profile.asks)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What one dispatch brought: the output's text where the step is committed, or what the tool raised."""

    text: str | None = None
    raised: BaseException | None = None


def dispatch(store: Store, secrets: Secrets, tool: Tool | None, intent: Intent, mark: Mark) -> Program[Dispatched]:
    """Send the marked attempt and record its outcome.

    A kill anywhere in here leaves a mark without outcome: unknown.
    """
    raised: BaseException | None = None
    try:
        if intent.request is not None:
            outcome: Outcome = yield Invoke(lambda: _send_request(store, secrets, intent, mark))
        else:
            assert tool is not None
            outcome, raised = yield from _run_tool(store, secrets, tool, intent, mark)
        # The tool's own types are read here: while the store is held, code that hangs would hold up every step.
        output = secrets.stored(outcome.output)
        last = Write(
            store,
            lambda tx: record(tx, intent, mark, outcome, output, secrets),
            sync=intent.synced_commit,
            outcome=True,
        )
    except GeneratorExit:
        raise
    except BaseException as error:
        # An interrupt is no outcome of the step: the outcome stays unknown, unless the call was not made.
        cut = _cut_short(error)
        nothing = secrets.stored(None)

        def note_cut(tx: Transaction) -> None:
            record(tx, intent, mark, cut, nothing, secrets)
            if cut.verdict == "not_sent":
                # A person's approval is for a call, and none was made: it may be used again.
                decisions.return_approval(tx, mark.task_id, mark.step_index, mark.attempt)

        yield Write(store, note_cut, sync=True, outcome=True)
        raise
    text: str | None = yield last
    return Dispatched(text, raised)


def record(
    tx: Transaction, intent: Intent, mark: Mark, outcome: Outcome, output: tuple[str, bool], secrets: Secrets
) -> str | None:
    """Give the attempt its verdict and, for a plain success, commit the step in the same transaction.

    `output` is what `Secrets.stored` made of the outcome's.
    """
    text, complete = output
    plain = outcome.verdict == "applied" and outcome.kind == "accepted"
    settled = attempts.settle_attempt(
        tx,
        mark,
        verdict=outcome.verdict,
        kind=outcome.kind,
        http_status=outcome.http_status,
        detail=secrets.hide(outcome.detail),
        retry_after_at=outcome.retry_after_at,
        output_json=text if outcome.has_output and not plain else None,
    )
    if not settled:
        _keep_late_outcome(tx, intent.step, mark, outcome)
        return None
    if plain:
        duration = max(0.0, clock.boot_seconds() - mark.boottime)
        complete = complete and outcome.has_output
        if steps.commit_step(tx, mark.task_id, mark.step_index, text, complete=complete, duration=duration):
            return text
    return None


def _keep_late_outcome(tx: Transaction, step: Step, mark: Mark, outcome: Outcome) -> None:
    moment = clock.moment()
    evidence.append_evidence(
        tx,
        Evidence(
            task_id=step.task_id,
            step_index=step.step_index,
            attempt=mark.attempt,
            asked_at=moment.wall,
            asked_boottime=moment.boot,
            os_boot_id=moment.os_boot_id,
            answer="unknown",
            source="late",
            http_status=outcome.http_status,
            detail=f"an outcome arrived after the attempt was settled: {outcome.verdict}",
        ),
    )


def _send_request(store: Store, secrets: Secrets, intent: Intent, mark: Mark) -> Outcome:
    from journal.http import client

    assert intent.request is not None
    try:
        return client.send_request(
            intent.request,
            profile=intent.profile,
            redispatch=mark.redispatch,
            guard=lambda: _begin_sending(store, mark),
            secrets=secrets,
        )
    except MissingReference as error:
        # The environment changed since it was looked at; nothing was opened.
        return Outcome(verdict="not_sent", kind="stale", detail=error.message)


def _begin_sending(store: Store, mark: Mark) -> str | None:
    """Why nothing may be sent, or None once the journal says that the first byte comes next.

    That is not synced. A kill after it leaves an attempt that may have arrived; one before it, an attempt that did not.
    """

    def note() -> str | None:
        try:
            store.write(lambda tx: attempts.note_sending(tx, mark), sync=False)
        except (sqlite3.Error, StepkeeperError) as error:
            return f"the journal could not be written: {error}"
        return None

    # Looked at again: the write may have waited.
    return stale(store, mark) or note() or stale(store, mark)


def _run_tool(
    store: Store, secrets: Secrets, tool: Tool, intent: Intent, mark: Mark
) -> Program[tuple[Outcome, BaseException | None]]:
    reason = stale(store, mark)
    if reason is not None:
        return Outcome(verdict="not_sent", kind="stale", detail=reason), None
    step = intent.step
    assert step.idempotency_key is not None
    assert step.arguments_json is not None
    call = Call(step.idempotency_key, step.task_id, step.step_index, mark.attempt)
    arguments = codec.loads(step.arguments_json)
    try:
        value = yield Invoke(lambda: tool.invoke(arguments, call), blocking=not tool.is_async)
    except NoEffect as error:
        return _failed(error, secrets, verdict="no_effect", kind="rejected")
    except Exception as error:
        return _failed(error, secrets, verdict="unknown", kind="raised")
    return Outcome(verdict="applied", kind="accepted", output=value, has_output=True), None


def _cut_short(error: BaseException) -> Outcome:
    if isinstance(error, NotCalled):
        return Outcome(verdict="not_sent", kind="stale", detail="cancelled before the call was made")
    return Outcome(verdict="unknown", kind="no_outcome", detail=f"interrupted: {type(error).__name__}")


def _failed(error: Exception, secrets: Secrets, *, verdict: Any, kind: Any) -> tuple[Outcome, BaseException | None]:
    stored = stored_errors.dump_error(error, hide=secrets.hide)
    detail, output = stored_errors.describe_error(stored), codec.loads(stored)
    return Outcome(verdict=verdict, kind=kind, detail=detail, output=output, has_output=True), secrets.cause(error)


def stale(store: Store, mark: Mark) -> str | None:
    """Why the mark may not be acted on any more, or None (law 6)."""
    if not store.is_current():
        return "another writer has taken over"
    age = clock.boot_seconds() - mark.boottime
    if age > MAX_SEND_DELAY:
        return f"{age:.1f} s passed between the mark and the first byte"
    return None
