"""`decide` and `retry`: an operator's word about a held step or a failed task, without the dashboard."""

from __future__ import annotations

import argparse
import getpass
import json
from datetime import timedelta
from typing import Any

from journal import clock, codec
from journal.cli.codes import OK
from journal.cli.terminal import clean
from journal.errors import InvalidArguments, UsageError
from journal.inbox import mailbox
from journal.models import Step, TaskRow
from journal.reader import Reader

VERBS = ("replay", "mark_committed", "mark_not_applied", "abandon")
_EXPIRES = timedelta(minutes=15)


def run_decide(options: argparse.Namespace) -> int:
    """Post a decision about one pending step, bound to the key, the payload and the attempts that stand there now."""
    reader = Reader(options.file)
    step = reader.step(options.task, options.step)
    if step is None:
        raise UsageError(f"Step {options.step} of {clean(options.task)}: it is not in this journal.", hint=_LOOK)
    _check_pending(step)
    dispatches = sum(attempt.verdict != "not_sent" for attempt in reader.attempts(step.task_id, step.step_index))
    return _post(
        options,
        decision=options.verb_of_step,
        step_index=step.step_index,
        key=step.idempotency_key,
        payload_sha256=step.payload_sha256,
        dispatches=dispatches,
        output=_output(options),
        reference=options.reference,
    )


def run_retry(options: argparse.Namespace) -> int:
    """Post the decision that a failed task runs again: the same steps, the same keys, its failed step anew."""
    task = Reader(options.file).task(options.task)
    if task is None:
        raise UsageError(f"Task {clean(options.task)}: it is not in this journal.", hint=_LOOK)
    _check_failed(task)
    return _post(options, decision="retry_task")


_LOOK = "`python -m journal show FILE` lists the tasks, and `show FILE TASK` the steps."


def _check_pending(step: Step) -> None:
    if step.status != "pending":
        raise UsageError(f"Step {step.step_index} of {clean(step.task_id)}: it is {step.status}, so nothing is open.")
    if not step.idempotency_key or not step.payload_sha256:
        raise UsageError(f"Step {step.step_index} of {clean(step.task_id)}: it was not made by stepkeeper.")


def _check_failed(task: TaskRow) -> None:
    if task.parent_id is not None:
        raise UsageError(f"Task {clean(task.task_id)}: it is a branch.", hint="Retry the task it is a branch of.")
    if task.status != "failed":
        raise UsageError(f"Task {clean(task.task_id)}: it is {task.status}. Only a failed task is retried.")


def _output(options: argparse.Namespace) -> Any:
    if options.verb_of_step != "mark_committed":
        if options.output is not None:
            raise UsageError("--output is for mark_committed alone.")
        return None
    if options.output is None or options.reference is None:
        raise UsageError(
            "mark_committed needs --output and --reference.",
            hint="Give what the tool would have returned, and where the effect can be seen.",
        )
    try:
        return codec.typed(options.output, what="output")
    except InvalidArguments:
        raise
    except ValueError as error:
        raise UsageError(f"--output: this is not JSON: {error}.", hint='For example {"number": 7}, or null.') from None


def _post(options: argparse.Namespace, **body: Any) -> int:
    message = {
        "kind": "decision",
        "task_id": options.task,
        "actor": getpass.getuser(),
        "reason": options.reason,
        "expires_at": clock.text(clock.wall() + _EXPIRES),
        **body,
    }
    # On disk when this returns; the journal's writer applies it once and keeps it with the dashboard's decisions.
    message_id = mailbox.post_message(options.file, message)
    if options.json:
        print(json.dumps({"message_id": message_id, "decision": body["decision"]}))
    else:
        print(f"Posted: {body['decision']} (message {message_id}).")
        print("A running agent applies it by itself. Without one, `python -m journal recover` does.")
    return OK
