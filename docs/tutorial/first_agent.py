"""A first agent to kill: it reads reports, asks a model, and files entries. It needs no network and no account.

    make install                                     # once, in the checkout; makes .venv
    .venv/bin/python docs/tutorial/first_agent.py    # start it, kill it in the middle (kill -9), start it again
    STEPKEEPER_JOURNALS=first-agent/journal.db make up

The first argument is the folder for everything it writes (default: first-agent). The second is the number of seconds
it waits before and after each effect, so that you can kill it there (default: 2).
"""

import logging
import os
import random
import sys
import time
from datetime import timedelta
from pathlib import Path

try:
    from journal import Journal, Reply, tool
except ModuleNotFoundError:
    sys.exit("Not installed here. In the checkout: make install; .venv/bin/python docs/tutorial/first_agent.py")

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "first-agent")
DAWDLE = float(sys.argv[2] if len(sys.argv) > 2 else 2)
REPORTS = ("The door of room 7 does not close.", "The lamp on the stairs is dark.", "The tap in the kitchen drips.")


def say(text):
    print(text, flush=True)


@tool(effect="read_only")  # changes nothing: after a kill in the middle the report is read again
def read_report(number: int) -> str:
    say(f"report {number}: read")
    return REPORTS[number % len(REPORTS)]


def call_model(report: str) -> Reply:
    """Stands in for a model. It rarely says the same twice, and writes a line for each call, as an invoice does."""
    with (FOLDER / "model-calls.txt").open("a") as file:
        file.write(f"{report}\n")
    plan = f"{random.choice(('Send', 'Call', 'Book'))} a carpenter on day {random.randint(1, 1000)}. {report}"
    say(f"  the model says: {plan}")
    usage = {"prompt_tokens": len(report), "completion_tokens": len(plan), "total_tokens": len(report) + len(plan)}
    return Reply(plan, usage=usage, model="stand-in")


def find_entry(call):
    """The status check: is there an entry with this key? The ledger holds the key beside each entry."""
    ledger = FOLDER / "ledger.txt"
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    found = [number for number, line in enumerate(lines, 1) if line.startswith(call.key)]
    return {"line": found[0]} if found else None


# A dead process writes to no local file. After one second, not 15 minutes, "no entry" proves that there is none.
@tool(effect="mutating", status=find_entry, horizon=timedelta(seconds=1))
def file_entry(call, text: str) -> dict:
    say(f"  filing under key {call.key[:8]}…  (kill -9 {os.getpid()} now: intent on disk, no entry yet)")
    time.sleep(DAWDLE)
    with (FOLDER / "ledger.txt").open("a") as file:
        file.write(f"{call.key} {text}\n")
    say("  filed                     (kill now: the entry exists, its outcome is not stored)")
    time.sleep(DAWDLE)
    return find_entry(call)


def clerk(task, number):
    """The handler. To resume, the runtime calls it again; committed steps return their output from the journal."""
    report = task.run(read_report, number)
    first = task.ask(call_model, report)
    task.run(file_entry, text=first.content)
    second = task.ask(call_model, f"Done so far: {first.content} What else?")
    return task.run(file_entry, text=second.content)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="  journal: %(message)s", stream=sys.stdout)
    FOLDER.mkdir(exist_ok=True)
    with Journal(
        FOLDER / "journal.db", agent="clerk", tools=[read_report, file_entry], handlers={"clerk": clerk}
    ) as journal:
        for number in range(3):
            journal.submit("clerk", task_id=f"report-{number}", number=number)  # submitted before: the same task
        say(f"pid {os.getpid()} serves {FOLDER / 'journal.db'}; Ctrl-C stops it, kill -9 {os.getpid()} does not hurt")
        journal.serve(concurrency=1)
