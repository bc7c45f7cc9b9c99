"""`accept`: say that a restored or copied journal may be worked on as it is."""

from __future__ import annotations

import argparse
import getpass
import json
from datetime import timedelta

from journal import clock
from journal.cli.codes import OK
from journal.cli.terminal import clean
from journal.errors import JournalUnreadable, UsageError
from journal.hold_reasons import describe_doubt
from journal.inbox import mailbox
from journal.reader import inspect

_EXPIRES = timedelta(minutes=15)


def run(options: argparse.Namespace) -> int:
    """Post the decision for the journal's writer; it is bound to the boot that noticed the restored file."""
    state = inspect(options.file)
    if state.kind != "ok":
        raise JournalUnreadable(state.sentence, kind=state.kind, hint=state.hint)
    if not state.doubt:
        raise UsageError(
            f"Journal {clean(options.file)}: it was not found to be restored or copied.",
            hint="Its agent finds that out when it starts, and `python -m journal recover` too.",
        )
    message = {
        "kind": "decision",
        "decision": "accept_journal",
        "uuid": state.uuid,
        "boot": state.doubt_boot,
        "actor": getpass.getuser(),
        "reason": options.reason,
        "expires_at": clock.text(clock.wall() + _EXPIRES),
    }
    message_id = mailbox.post_message(options.file, message)
    if options.json:
        print(json.dumps({"message_id": message_id, "doubt": state.doubt}))
    else:
        print(f"{describe_doubt(state.doubt)} Accepted (message {message_id}).")
        print("A running agent goes on by itself. Without one, `python -m journal recover` applies the decision.")
    return OK
