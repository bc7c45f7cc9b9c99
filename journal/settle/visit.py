"""A visit to a journal that no agent holds, by a worker or the command line.

The visitor applies the waiting messages, settles what needs none of the agent's code, and leaves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from journal import clock
from journal.http.frozen_request import MissingReference
from journal.http.secrets import Secrets
from journal.inbox import mailbox
from journal.settle.context import IntentSnapshot, SettleContext, load_intent
from journal.settle.recovery import RecoveryReport, apply_messages, recover_steps
from journal.settle.status_check import ask_over_http, build_evidence, evidence_message
from journal.store.sql import boots, intents, requests
from journal.store.writer import Store
from journal.writer_lock import WAIT_SECONDS

# A visit that asks a provider posts the answer and comes again, as does one that gave the lock back in between.
_ROUNDS = 1000
# A visitor begins nothing more after this long: it gives the lock back within 5 s of its last write.
_VISIT_SECONDS = 1.0
# Then it frees the lock for a while: a process that waits for the lock looks every 50 ms.
_AWAY_SECONDS = 0.2


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


@dataclass(frozen=True, slots=True)
class _Visit:
    """The rest after one hold of the lock: steps whose status is checked next, and steps that had no turn."""

    asking: list[IntentSnapshot]
    later: list[tuple[str, int]]


def _visit(
    path: Path, role: str, wait: float, secrets: Secrets, report: RecoveryReport, todo: list[tuple[str, int]] | None
) -> _Visit:
    store = Store(path, agent="", role=role, wait=wait)
    try:
        secrets.learn(store.read(requests.list_references))
        apply_messages(store, agent=store.read(boots.read_agent_name), secrets=secrets, report=report)
        context = SettleContext(store, {}, secrets, epoch=lambda: 0, mode="visit", max_wait=timedelta(0))
        unresolved = dict.fromkeys(store.read(intents.list_unresolved))
        wanted = list(unresolved) if todo is None else [at for at in todo if at in unresolved]
        asking: list[tuple[str, int]] = []
        began = time.monotonic()
        while wanted and time.monotonic() - began < _VISIT_SECONDS:
            asking += recover_steps(context, [wanted.pop(0)], report)
        seen = [store.read(partial(load_intent, task_id=task_id, step_index=index)) for task_id, index in asking]
        return _Visit(seen, wanted)
    finally:
        store.close()


def _ask_and_post(path: Path, seen: IntentSnapshot, secrets: Secrets, report: RecoveryReport) -> bool:
    """Ask and post the answer; False where this process cannot ask, which is left to the agent.

    `seen` was read under the lock, which no agent held: nothing is in flight.
    """
    step, asked = seen.step, clock.moment()
    try:
        answer = ask_over_http(seen.intent, secrets)
    except MissingReference as error:
        report.left += 1
        report.lines.append(f"step {step.step_index} of {step.task_id}: left to its agent: {error.message}")
        return False
    found = build_evidence(step, seen.attempts, asked, answer, secrets, source="worker")
    mailbox.post_message(path, evidence_message(found))
    return True
