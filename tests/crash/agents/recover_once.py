"""Opens its journal, recovers, says how that went, and ends: no task is run."""

from __future__ import annotations

import json
import os

from journal import Journal
from tests.crash.agents import serving, tools

if __name__ == "__main__":
    with Journal(
        os.environ["JOURNAL"],
        agent="crash",
        tools=list(tools.ALL.values()),
        handlers={"once": serving.once},
        providers=os.environ["PROVIDERS"],
    ) as journal:
        report = journal.recover()
        print("report", json.dumps([report.settled, report.held, report.waiting, report.left]), flush=True)
