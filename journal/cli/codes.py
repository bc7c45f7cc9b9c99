"""The command line's exit codes. They are part of the interface: docs/reference/cli.md lists them."""

from __future__ import annotations

from typing import Final

OK: Final = 0
PROBLEM: Final = 1
USAGE: Final = 2
UNREADABLE: Final = 3
BUSY: Final = 4
# EX_TEMPFAIL of sysexits.h: nothing is wrong, but something waits for a person, a time or the agent.
WAITS: Final = 75
# 128 + SIGINT, as shells report it.
INTERRUPTED: Final = 130
