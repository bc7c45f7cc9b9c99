"""Recovery: apply the waiting messages and settle every intent that can be settled, without one model call."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from journal import clock
from journal.effects import drive
from journal.errors import StepHeld, StepWaiting, TaskCancelled
from journal.http.secrets import Secrets
from journal.inbox import mailbox
from journal.inbox.apply import Applied, Malformed, apply_message
from journal.models import WaitReason
from journal.settle.context import AskFirst, NotHere, SettleContext
from journal.settle.settle import settle_step
from journal.store.sql import boots, tasks
from journal.store.transaction import Transaction
from journal.store.writer import Store

_log = logging.getLogger("journal")


@dataclass(slots=True)
class RecoveryReport:
    """The work of a recovery, as counts and sentences. `model_calls` is always 0: recovery has no way to make one."""

    settled: int = 0
    held: int = 0
    waiting: int = 0
    left: int = 0
    messages: int = 0
    model_calls: int = 0
    lines: list[str] = field(default_factory=list)


def apply_messages(store: Store, *, agent: str, secrets: Secrets, report: RecoveryReport) -> list[Applied]:
    """Apply every waiting message once, oldest first. A file that is no message is set aside under `.refused`.

    Raises sqlite3.Error where not even the first can be written; else what could be is returned, and the others wait.
    """
    found: list[Applied] = []
    for message in mailbox.list_messages(store.path):
        try:
            apply = partial(apply_message, message=message, agent=agent, secrets=secrets)
            applied = store.write(apply, sync=True)
        except Malformed as error:
            mailbox.set_message_aside(message)
            report.lines.append(f"message {message.path.name}: refused: {secrets.hide(str(error))}")
            _log.warning("%s", report.lines[-1])
            continue
        except sqlite3.Error as error:
            if not found:
                raise
            # The applied message needs work of this process, and no file is left to say so again.
            report.lines.append(f"message {message.path.name}: not applied yet: {error}")
            _log.warning("%s", report.lines[-1])
            break
        # A kill before this line leaves the file; applying it again changes nothing.
        mailbox.remove_message(message)
        report.messages += 1
        report.lines.append(applied.sentence)
        _log.log(logging.WARNING if applied.refused else logging.INFO, "message: %s", applied.sentence)
        found.append(applied)
    return found


def recover_steps(
    context: SettleContext,
    wanted: list[tuple[str, int]],
    report: RecoveryReport,
    *,
    skip: Callable[[str], bool] = lambda _: False,
) -> list[tuple[str, int]]:
    """Settle these intents as far as `context.mode` allows; returns those that need a status query first."""
    asking: list[tuple[str, int]] = []
    left_by: SystemExit | None = None
    with boots.in_recovery():
        for at in wanted:
            try:
                if not skip(at[0]) and _recover_step(context, *at, report):
                    asking.append(at)
            except SystemExit as error:
                # In the main thread it may be a signal's, and ends it at once; a tool's keeps no other intent waiting.
                if threading.current_thread() is threading.main_thread():
                    raise
                left_by = left_by or error
    if left_by is not None:
        raise left_by
    return asking


def _recover_step(context: SettleContext, task_id: str, index: int, report: RecoveryReport) -> bool:
    """Settle one intent; True when the provider must be asked first."""
    name = f"step {index} of {task_id}"
    try:
        step = drive(settle_step(context, task_id, index))
    except StepHeld as error:
        report.held += 1
        report.lines.append(f"{name}: held: {error.reason}")
        if error.reason == "clock_suspect":
            context.store.write(lambda tx: _look_again(tx, task_id, index), sync=False)
    except StepWaiting as error:
        report.waiting += 1
        report.lines.append(f"{name}: due later")
        context.store.write(partial(_put_off, task_id=task_id, index=index, until=error.until), sync=False)
    except AskFirst:
        return True
    except TaskCancelled as error:
        report.left += 1
        report.lines.append(f"{name}: left as it is: {error.message}")
    except NotHere as error:
        report.left += 1
        report.lines.append(f"{name}: left to its agent: {error.message}")
        if context.mode == "recover":
            # The rest needs the agent's tool, so the task must not wait for another process.
            context.store.write(lambda tx: tasks.requeue_task(tx, task_id), sync=False)
    else:
        report.settled += 1
        report.lines.append(f"{name}: {step.status}")
        context.store.write(lambda tx: tasks.requeue_task(tx, task_id), sync=False)
    return False


def _put_off(tx: Transaction, task_id: str, index: int, until: datetime) -> None:
    task = tasks.find_task(tx, task_id)
    # A crashed task whose intent is due later must be found by its due time, not run at once.
    if task is not None and task.status in ("running", "waiting", "queued") and task.boot != tx.boot:
        tasks.put_task_aside(tx, task_id, WaitReason("due", task_id, index), until)


def _look_again(tx: Transaction, task_id: str, index: int) -> None:
    """Have steps that only the clock holds decided anew, without a person, once the time has caught up."""
    until = clock.parse(max(tx.newest, tx.now))
    _put_off(tx, task_id, index, until)
    root = tasks.find_root(tx, task_id)
    # A branch is run by its root alone, which may wait for a person.
    if root is not None and root.status == "waiting" and root.next_attempt_at is None:
        tasks.put_task_aside(tx, root.task_id, root.wait or WaitReason("due", task_id, index), until)
