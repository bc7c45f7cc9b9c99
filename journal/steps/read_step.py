"""A step that changes nothing outside: it runs again after a kill and does not wait for the disk."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from journal import clock, codec, stored_errors
from journal.effects import Invoke, Program, Read, Sleep, Write
from journal.models import Step
from journal.providers.classify import Outcome
from journal.reconcile import replay_window
from journal.settle.context import QUARANTINE_STARTS, hold, waiting
from journal.settle.quarantine import take_turn
from journal.steps.task_run import TaskRun, settled_outcome
from journal.store.sql import steps
from journal.store.transaction import Transaction
from journal.tools import Call, Tool

# Read-only requests are repeated under the same back-off as intents, counted by their starts: no attempt is on disk.
_RETRIED_KINDS = frozenset({"dns", "not_connected", "lost_answer", "gateway", "rate_limited", "stale"})


def repeat_step(task_run: TaskRun, step: Step, program: Program[Any]) -> Program[Any]:
    """Count one more start of a pending read-only or model step and run it as `program`; hold it when it keeps killing.

    Where somebody ended it meanwhile nothing runs, and the journal's outcome is returned.
    """
    context = task_run.context
    # Fetching a stored request runs none of the agent's code.
    deaths = 0 if step.transport == "http" else step.starts
    if deaths >= QUARANTINE_STARTS:
        yield from hold(context, step, "quarantined", f"This step was started {deaths} times and never ended.")
    if step.next_attempt_at is not None and step.next_attempt_at > clock.wall():
        yield from _wait(task_run, step, step.next_attempt_at, clock.wall() + context.max_wait)

    def restart(tx: Transaction) -> bool:
        if not steps.restart_step(tx, step.task_id, step.step_index):
            return False
        task_run.begin(tx)
        return True

    with (yield from take_turn(context, step, deaths)):
        if (yield Write(context.store, restart)):
            return (yield from program)
    return (yield from decided(task_run, step.task_id, step.step_index))


def read(task_run: TaskRun, tool: Tool, new: steps.NewStep, text: str) -> Program[Any]:
    """Run a read-only tool with the arguments in `text`, or fetch its request, and end the step."""
    started = clock.boot_seconds()
    if new.request is not None:
        return (yield from _fetch(task_run, new, started))
    try:
        call = Call(new.key, new.task_id, new.step_index, 1)
        value = yield Invoke(lambda: tool.invoke(codec.loads(text), call), blocking=not tool.is_async)
    except Exception as error:
        text = stored_errors.dump_error(error, hide=task_run.context.secrets.hide)
        return (yield from fail(task_run, new, text, task_run.context.secrets.cause(error)))
    except GeneratorExit:
        raise
    except BaseException:
        yield Write(task_run.context.store, lambda tx: steps.uncount_start(tx, new.task_id, new.step_index))
        raise
    return (yield from _commit(task_run, new, value, started))


def _commit(task_run: TaskRun, new: steps.NewStep, value: object, started: float) -> Program[Any]:
    """Commit a read-only output, unsynced, and return it as a resume will."""
    text, complete = task_run.context.secrets.stored(value)
    duration = max(0.0, clock.boot_seconds() - started)

    def commit(tx: Transaction) -> bool:
        return steps.commit_step(tx, new.task_id, new.step_index, text, complete=complete, duration=duration)

    if (yield Write(task_run.context.store, commit, outcome=True)):
        return codec.loads(text)
    return (yield from decided(task_run, new.task_id, new.step_index))


def fail(task_run: TaskRun, new: steps.NewStep, error_json: str, cause: BaseException | None) -> Program[Any]:
    """Store the failure of a step that changed nothing outside, and raise it."""

    def end(tx: Transaction) -> bool:
        return steps.end_step(tx, new.task_id, new.step_index, "failed", error_json)

    if (yield Write(task_run.context.store, end, outcome=True)):
        raise stored_errors.load_step_failed(error_json, new.label) from cause
    return (yield from decided(task_run, new.task_id, new.step_index))


def decided(task_run: TaskRun, task_id: str, index: int) -> Program[Any]:
    """The outcome of a step that an operator ended while it ran. A resume gives the same."""
    step: Step = yield Read(task_run.context.store, lambda tx: steps.find_step(tx, task_id, index))
    return settled_outcome(task_run, step)


def _fetch(task_run: TaskRun, new: steps.NewStep, started: float) -> Program[Any]:
    """A read-only HTTP request: repeated with back-off while the provider cannot be reached."""
    context = task_run.context
    assert new.request is not None
    assert new.profile is not None
    request, profile = new.request, new.profile
    deadline = clock.wall() + context.max_wait
    tries = 0
    while True:

        def send() -> Outcome:
            from journal.http import client

            return client.send_request(
                request, profile=profile, redispatch=False, guard=lambda: None, secrets=context.secrets, reads=True
            )

        outcome: Outcome = yield Invoke(send)
        if outcome.verdict == "applied":
            return (yield from _commit(task_run, new, outcome.output, started))
        if outcome.kind not in _RETRIED_KINDS:
            return (
                yield from fail(task_run, new, stored_errors.dump_rejection(outcome.http_status, outcome.detail), None)
            )
        step: Step = yield Read(context.store, lambda tx: steps.find_step(tx, new.task_id, new.step_index))
        until = outcome.retry_after_at or clock.wall() + replay_window.compute_backoff(new.key, step.starts - 1 + tries)
        tries += 1
        if not (yield from _wait(task_run, step, until, deadline)):
            return (yield from decided(task_run, new.task_id, new.step_index))


def _wait(task_run: TaskRun, step: Step, until: datetime, deadline: datetime) -> Program[bool]:
    """Sleep until the step is due; False where somebody ended it meanwhile. Past the deadline it is put off."""
    context = task_run.context
    while True:
        # Read first, so that a decision after the read ends the sleep.
        woken = _woken(task_run, context.epoch())
        now: Step = yield Read(context.store, lambda tx: steps.find_step(tx, step.task_id, step.step_index))
        if now.status != "pending":
            return False
        if until > deadline or task_run.is_closed():
            break
        # A message about another task ends a sleep too, and makes nothing due.
        if clock.wall() >= until or now.next_attempt_at != step.next_attempt_at:
            return True
        yield Sleep(until, woken)
    yield Write(context.store, lambda tx: steps.schedule_step(tx, step.task_id, step.step_index, until))
    raise waiting(step, until)


def _woken(task_run: TaskRun, epoch: int) -> Callable[[], bool]:
    return lambda: task_run.is_closed() or task_run.context.epoch() != epoch
