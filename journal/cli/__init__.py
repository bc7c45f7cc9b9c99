"""The command line: one module per verb."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from journal.cli.codes import BUSY, INTERRUPTED, OK, PROBLEM, UNREADABLE, USAGE
from journal.errors import JournalBusy, JournalUnreadable, StepkeeperError, UsageError

if TYPE_CHECKING:
    import argparse

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns its exit code and never raises for a user's mistake."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        options = _parse(words)
        verb: Callable[[argparse.Namespace], int] = options.verb
        code = _run(verb, options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of the output (head, less) has closed it.
        _drop_output()
        return OK
    except OSError as error:
        # Probably the disk behind the output is full: the rest of the output is lost.
        _drop_output()
        print(f"The system refused: {error}.", file=sys.stderr)
        return PROBLEM
    except KeyboardInterrupt:
        return INTERRUPTED


def _drop_output() -> None:
    # The interpreter must not complain about it once more at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parse(words: list[str]) -> argparse.Namespace:
    from journal.cli.parser import build

    # The part after "--" is another program's command line.
    ours, command = words, list[str]()
    if "--" in words:
        place = words.index("--")
        ours, command = words[:place], words[place + 1 :]
    options = build(as_json="--json" in ours).parse_args(ours)
    options.command = command
    return options


def _run(verb: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    try:
        return verb(options)
    except StepkeeperError as error:
        _say(error, as_json=options.json)
        return _code(error)


def _code(error: StepkeeperError) -> int:
    if isinstance(error, JournalUnreadable):
        return BUSY if error.kind == "busy" else UNREADABLE
    if isinstance(error, JournalBusy):
        return BUSY
    return USAGE if isinstance(error, UsageError) else PROBLEM


def _say(error: StepkeeperError, *, as_json: bool) -> None:
    from journal.cli.terminal import clean

    ours = "busy" if isinstance(error, JournalBusy) else "usage" if isinstance(error, UsageError) else "problem"
    kind = getattr(error, "kind", None) or ours
    if as_json:
        print(json.dumps({"error": {"kind": kind, "message": error.message, "hint": error.hint}}))
    else:
        print(f"{clean(error.message)}\n{clean(error.hint)}".rstrip(), file=sys.stderr)
