"""The grammar of the command line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import NoReturn, get_args

from journal.cli.accept import run as accept
from journal.cli.check import run as check
from journal.cli.codes import USAGE
from journal.cli.decide import VERBS, run_decide, run_retry
from journal.cli.recover import run as recover
from journal.cli.show import run as show
from journal.cli.submit import run as submit
from journal.cli.supervise import run as supervise
from journal.models import TaskStatus

_CODES = """exit codes:
  0  done, nothing wrong          3  the file cannot be read as a journal
  1  a problem was found          4  busy: another process holds the journal
  2  the command line is wrong   75  nothing is wrong, but something waits (for a person, a time, the agent)"""


# More lines than anybody reads, and a number that every count may be compared with.
_MOST = 1_000_000


class _JsonParser(argparse.ArgumentParser):
    """A parser whose errors are a JSON document on standard output."""

    def error(self, message: str) -> NoReturn:
        hint = " ".join(self.format_usage().split())
        print(json.dumps({"error": {"kind": "usage", "message": message, "hint": hint}}), flush=True)
        self.exit(USAGE)


def build(*, as_json: bool = False) -> argparse.ArgumentParser:
    """The parser of `python -m journal`; with `as_json` it prints errors on standard output."""
    kind = _JsonParser if as_json else argparse.ArgumentParser
    parser = kind(
        prog="python -m journal",
        description="Look at an agent's journal, give the agent work, check it, recover it, keep its daemon running.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True, parser_class=kind)

    def verb(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = verbs.add_parser(
            name,
            help=text,
            description=text,
            epilog=_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        made.set_defaults(verb=run)
        made.add_argument("--json", action="store_true", help="print one JSON document instead of text")
        return made

    shown = verb("show", show, "Show the tasks of a journal, or one task's timeline. Changes nothing.")
    shown.add_argument("file", metavar="FILE", help="the journal")
    shown.add_argument("task", metavar="TASK", nargs="?", help="a task id: show its steps, attempts and decisions")
    shown.add_argument(
        "--status",
        choices=get_args(TaskStatus),
        metavar="STATUS",
        help="only tasks of this status (see docs/reference/runtime.md)",
    )
    shown.add_argument("--limit", type=_count, default=100, metavar="N", help="at most N tasks (default 100)")

    submitted = verb("submit", submit, "Give the journal's agent a task. The message is on disk on return.")
    submitted.add_argument("file", metavar="FILE", help="the journal")
    submitted.add_argument("handler", metavar="HANDLER", help="the name of one of the agent's handlers")
    submitted.add_argument("--task-id", required=True, metavar="ID", help="the new task's id; never reused")
    submitted.add_argument(
        "--input", default="{}", metavar="JSON", help="the handler's arguments, a JSON object; - reads it from stdin"
    )

    recovered = verb("recover", recover, "Settle every pending step that can be settled without the agent's code.")
    recovered.add_argument("file", metavar="FILE", help="the journal")
    recovered.add_argument(
        "--wait", type=float, default=10.0, metavar="SECONDS", help="how long to wait for another writer (default 10)"
    )

    accepted = verb("accept", accept, "Let a restored or copied journal be worked on as it is.")
    accepted.add_argument("file", metavar="FILE", help="the journal")
    accepted.add_argument("--reason", required=True, metavar="TEXT", help="who restored it, and why; it is kept")

    decided = verb("decide", run_decide, "Decide about a pending step, as on the dashboard's page of the step.")
    decided.add_argument("file", metavar="FILE", help="the journal")
    decided.add_argument("task", metavar="TASK", help="the task's id")
    decided.add_argument("step", metavar="STEP", type=int, help="the step's number")
    decided.add_argument("verb_of_step", metavar="VERB", choices=VERBS, help=", ".join(VERBS))
    decided.add_argument("--reason", required=True, metavar="TEXT", help="why; it is kept with the decision")
    decided.add_argument("--output", metavar="JSON", help="of mark_committed: what the tool would have returned")
    decided.add_argument("--reference", metavar="TEXT", help="of mark_committed: where the effect can be seen")

    retried = verb("retry", run_retry, "Run a failed task again: the same steps and keys, its failed step anew.")
    retried.add_argument("file", metavar="FILE", help="the journal")
    retried.add_argument("task", metavar="TASK", help="the task's id")
    retried.add_argument("--reason", required=True, metavar="TEXT", help="what was mended; it is kept")

    checked = verb("check", check, "Verify a journal: file, keys, hashes, order, outputs. Changes nothing.")
    checked.add_argument("file", metavar="FILE", help="the journal")
    checked.add_argument(
        "--budget", type=float, default=60.0, metavar="SECONDS", help="give up after this long (default 60)"
    )

    supervised = verb(
        "supervise", supervise, "Start an agent's daemon, record how it dies, start it again. Ends with it."
    )
    supervised.add_argument("--journal", required=True, metavar="FILE", help="the journal of the daemon")
    supervised.add_argument("--quiet", action="store_true", help="say nothing about restarts")
    supervised.usage = "python -m journal supervise [-h] [--json] --journal FILE [--quiet] -- COMMAND [ARGUMENT ...]"
    return parser


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= _MOST:
        raise argparse.ArgumentTypeError(f"a number from 1 to {_MOST} is needed")
    return number
