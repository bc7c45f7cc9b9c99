"""`supervise`: the parent of an agent's daemon."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from journal.errors import UsageError


def run(options: argparse.Namespace) -> int:
    """Run the command under supervision; returns the code it ended with."""
    if not options.command:
        raise UsageError(
            "supervise: no command.", hint="Put it behind two dashes: supervise --journal FILE -- python agent.py"
        )
    from journal.supervise.supervisor import supervise

    code = supervise(Path(options.journal), options.command, quiet=options.quiet or options.json)
    if options.json:
        print(json.dumps({"exit_code": code}))
    return code
