"""Recovery: settle every intent that can be settled, without one model call.

`recover` is the agent's own, at its start. `reconcile_file` is anybody else's (a worker, the command line): it
visits, does what needs no code of the agent's, and leaves.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from journal import clock
from journal.effects import drive
from journal.errors import StepHeld, StepWaiting, TaskCancelled
from journal.http.frozen_request import MissingReference
from journal.http.secrets import Secrets
from journal.inbox import mailbox
from journal.inbox.apply import Applied, Malformed, apply_message
from journal.models import WaitReason
from journal.providers.status_answer import StatusAnswer
from journal.reconcile.actions import Now
from journal.settle.context import AskFirst, Desk, NotHere, Snapshot, look
from journal.settle.settle import settle
from journal.store.sql import boots, intents, requests, tasks
from journal.store.transaction import Transaction
from journal.store.writer import Store
from journal.writer_lock import WAIT_SECONDS

_log = logging.getLogger("journal")

# A visit that asks a provider posts the answer and comes again, as does one that gave the lock back in between.
_ROUNDS = 1000
# A visitor begins nothing more after this long: it gives the lock back within 5 s of its last write.
_VISIT_SECONDS = 1.0
# Then it stays away for a while: whoever waits for the lock looks every 50 ms.
_AWAY_SECONDS = 0.2


@dataclass(slots=True)
class RecoveryReport:
    """What recovery did, as counts and sentences. `model_calls` is always 0: recovery has no way to make one."""

    settled: int = 0
    held: int = 0
    waiting: int = 0
    left: int = 0
    messages: int = 0
    model_calls: int = 0
    lines: list[str] = field(default_factory=list)


def apply_messages(store: Store, *, agent: str, secrets: Secrets, report: RecoveryReport) -> list[Applied]:
    """Apply every waiting message once, oldest first; what is no message is set aside under `.refused`.

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
            # What was applied asks something of this process, and no file is left to say so again.
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
    desk: Desk, wanted: list[tuple[str, int]], report: RecoveryReport, *, skip: Callable[[str], bool] = lambda _: False
) -> list[tuple[str, int]]:
    """Settle these intents as far as `desk.mode` allows; returns those that need a status query first."""
    asking: list[tuple[str, int]] = []
    left_by: SystemExit | None = None
    with boots.in_recovery():
        for at in wanted:
            try:
                if not skip(at[0]) and _recover_step(desk, *at, report):
                    asking.append(at)
            except SystemExit as error:
                # In the main thread it may be a signal's, and ends it at once; a tool's keeps no other intent waiting.
                if threading.current_thread() is threading.main_thread():
                    raise
                left_by = left_by or error
    if left_by is not None:
        raise left_by
    return asking


def _recover_step(desk: Desk, task_id: str, index: int, report: RecoveryReport) -> bool:
    """Settle one intent; True when the provider must be asked first."""
    name = f"step {index} of {task_id}"
    try:
        step = drive(settle(desk, task_id, index))
    except StepHeld as error:
        report.held += 1
        report.lines.append(f"{name}: held: {error.reason}")
        if error.reason == "clock_suspect":
            desk.store.write(lambda tx: _look_again(tx, task_id, index), sync=False)
    except StepWaiting as error:
        report.waiting += 1
        report.lines.append(f"{name}: due at {clock.text(error.until)}")
        desk.store.write(partial(_put_off, task_id=task_id, index=index, until=error.until), sync=False)
    except AskFirst:
        return True
    except TaskCancelled as error:
        report.left += 1
        report.lines.append(f"{name}: left as it is: {error.message}")
    except NotHere as error:
        report.left += 1
        report.lines.append(f"{name}: left to its agent: {error.message}")
        if desk.mode == "recover":
            # What is left is its tool's to run: its task must not wait for anybody else.
            desk.store.write(lambda tx: tasks.requeue_task(tx, task_id), sync=False)
    else:
        report.settled += 1
        report.lines.append(f"{name}: {step.status}")
        desk.store.write(lambda tx: tasks.requeue_task(tx, task_id), sync=False)
    return False


def reconcile_file(
    path: Path | str, *, role: str, only: tuple[str, int] | None = None, wait: float = WAIT_SECONDS
) -> RecoveryReport:
    """Visit a journal that no agent holds: apply its messages and settle what needs no code of the agent's.

    With `only`, that one step (task id, index) is settled and no other. Profiles are those stored with each intent.
    The lock is held for moments: never while a status is asked, and given back after each request that took its time.
    Raises JournalBusy while an agent, or longer than `wait` anyone else, holds it.
    """
    path = Path(path)
    report = RecoveryReport()
    secrets = Secrets()
    todo: list[tuple[str, int]] | None = None if only is None else [only]
    for _ in range(_ROUNDS):
        visit = _visit(path, role, wait, secrets, report, todo)
        asked = [seen for seen in visit.asking if _ask_and_post(path, seen, secrets, report)]
        todo = [*visit.later, *((seen.step.task_id, seen.step.step_index) for seen in asked)]
        if not todo:
            break
        time.sleep(_AWAY_SECONDS)
    return report


def ask_provider(seen: Snapshot, secrets: Secrets) -> tuple[Now, StatusAnswer]:
    """One HTTP status query for a step, and the moment it was asked."""
    from journal.http import client

    assert seen.intent.request is not None
    assert seen.step.idempotency_key is not None
    asked = Now(clock.moment(), None, seen.now.boot)
    answer = client.ask_status(
        seen.intent.request, profile=seen.intent.profile, key=seen.step.idempotency_key, secrets=secrets
    )
    return asked, answer


def evidence_message(seen: Snapshot, asked: Now, answer: StatusAnswer, secrets: Secrets) -> dict[str, object]:
    """The answer as a message to the journal's writer. `seen` was read under the lock: nothing was in flight."""
    newest = max((attempt.attempt for attempt in seen.attempts if attempt.verdict != "not_sent"), default=0)
    return {
        "kind": "evidence",
        "task_id": seen.step.task_id,
        "step_index": seen.step.step_index,
        "attempt": newest,
        "asked_at": clock.text(asked.moment.wall),
        "asked_boottime": asked.moment.boot,
        "os_boot_id": asked.moment.os_boot_id,
        "answered_at": clock.now_text(),
        "answer": answer.answer,
        "http_status": answer.http_status,
        "detail": secrets.hide(answer.detail),
        "output_json": secrets.stored(answer.output)[0] if answer.has_output else None,
        "source": "worker",
    }


@dataclass(frozen=True, slots=True)
class _Visit:
    """What one taking of the lock left: steps whose provider is asked next, and steps it did not come to."""

    asking: list[Snapshot]
    later: list[tuple[str, int]]


def _visit(
    path: Path, role: str, wait: float, secrets: Secrets, report: RecoveryReport, todo: list[tuple[str, int]] | None
) -> _Visit:
    store = Store(path, agent="", role=role, wait=wait)
    try:
        secrets.learn(store.read(requests.list_references))
        apply_messages(store, agent=store.read(boots.read_agent_name), secrets=secrets, report=report)
        desk = Desk(store, {}, secrets, epoch=lambda: 0, mode="visit", max_wait=timedelta(0))
        unresolved = dict.fromkeys(store.read(intents.list_unresolved))
        wanted = list(unresolved) if todo is None else [at for at in todo if at in unresolved]
        asking: list[tuple[str, int]] = []
        began = time.monotonic()
        while wanted and time.monotonic() - began < _VISIT_SECONDS:
            asking += recover_steps(desk, [wanted.pop(0)], report)
        seen = [store.read(partial(look, task_id=task_id, step_index=index)) for task_id, index in asking]
        return _Visit(seen, wanted)
    finally:
        store.close()


def _ask_and_post(path: Path, seen: Snapshot, secrets: Secrets, report: RecoveryReport) -> bool:
    """Ask and post the answer; False where this process cannot ask, which is left to the agent."""
    try:
        asked, answer = ask_provider(seen, secrets)
    except MissingReference as error:
        report.left += 1
        report.lines.append(f"step {seen.step.step_index} of {seen.step.task_id}: left to its agent: {error.message}")
        return False
    mailbox.post_message(path, evidence_message(seen, asked, answer, secrets))
    return True


def _put_off(tx: Transaction, task_id: str, index: int, until: datetime) -> None:
    task = tasks.find_task(tx, task_id)
    # A crashed task whose intent is due later must be found by its due time, not run at once.
    if task is not None and task.status in ("running", "waiting", "queued") and task.boot != tx.boot:
        tasks.put_task_aside(tx, task_id, WaitReason("due", task_id, index), until)


def _look_again(tx: Transaction, task_id: str, index: int) -> None:
    """Have what a clock holds that went back decided anew, by nobody, once the time has caught up."""
    until = clock.parse(max(tx.newest, tx.now))
    _put_off(tx, task_id, index, until)
    root = tasks.find_root(tx, task_id)
    # A branch is run by its root alone, which may wait for a person.
    if root is not None and root.status == "waiting" and root.next_attempt_at is None:
        tasks.put_task_aside(tx, root.task_id, root.wait or WaitReason("due", task_id, index), until)
