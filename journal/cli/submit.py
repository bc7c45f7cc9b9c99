"""`submit`: one synced message that gives the journal's agent a task."""

from __future__ import annotations

import argparse
import json
import os
import sys

from journal import codec
from journal.cli.codes import OK
from journal.cli.terminal import clean
from journal.errors import JournalUnreadable, UsageError
from journal.ids import check_task_id
from journal.inbox import mailbox
from journal.reader import dialects, inspect

# States that pass by themselves: the agent opens the file, merges its log, or makes it at its first start.
_COMES_RIGHT = ("ok", "missing", "empty", "busy", "log_unreadable")


def run(options: argparse.Namespace) -> int:
    """Post the message; whether the task is new, the same or a conflict is for the agent to say."""
    if not options.handler:
        raise UsageError("Handler: its name is empty.", hint="Name one of the agent's handlers.")
    check_task_id(options.task_id)
    codec.dumps(options.handler, what="handler")
    text = sys.stdin.read() if options.input == "-" else options.input
    body = _input(text)
    state = inspect(options.file)
    if state.kind not in _COMES_RIGHT:
        raise JournalUnreadable(state.sentence, kind=state.kind, hint=state.hint)
    if state.dialect not in (None, dialects.OURS):
        raise UsageError(f"Journal {clean(options.file)}: of another maker; no agent of stepkeeper reads its inbox.")
    if not os.path.isdir(os.path.dirname(os.path.abspath(options.file))):
        raise JournalUnreadable(
            f"Journal {clean(options.file)}: its folder does not exist.", kind="missing", hint="Check the path."
        )
    message = {"kind": "submit", "handler": options.handler, "task_id": options.task_id, "input": body}
    message_id = mailbox.post_message(options.file, message)
    note = "" if state.kind != "missing" else "There is no journal yet; its agent finds the message at its first start."
    if options.json:
        print(json.dumps({"message_id": message_id, "task_id": options.task_id, "note": note}))
    else:
        print(f"Task {clean(options.task_id)} submitted (message {message_id}). {note}".rstrip())
    return OK


def _input(text: str) -> dict[str, object]:
    try:
        value = codec.typed(text, what="input")
    except ValueError as error:
        raise UsageError(f"--input: not JSON ({error}).", hint="""Write it as '{"number": 42}'.""") from error
    if not isinstance(value, dict):
        raise UsageError("--input: a JSON object is needed.", hint="""Write it as '{"number": 42}'.""")
    return value
