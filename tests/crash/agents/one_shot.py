"""A script: recovers, does its one task, ends. It ends with 75 while the task waits for somebody."""

from __future__ import annotations

import os

from journal import Journal
from tests.crash.agents import serving, tools

if __name__ == "__main__":
    with Journal(
        os.environ["JOURNAL"],
        agent="crash",
        tools=list(tools.ALL.values()),
        providers=os.environ["PROVIDERS"],
    ) as journal:
        journal.recover()
        with journal.task("t") as task:
            serving.once(task, tool=os.environ["TOOL"])
