"""A task that is submitted many times at once runs once."""

from __future__ import annotations

import threading
from typing import Any

from journal.inbox import mailbox
from tests.journal.agent import opened, serving, soon, start, status, task_row


def test_twenty_threads_submit_one_task_and_it_runs_once(path, world):
    def triage(task: Any, number: int) -> None:
        world.calls.append(("triage", number))
        task.run(world.write, "p")

    with opened(path, world, handlers={"triage": triage}) as journal, serving(journal):
        threads = [threading.Thread(target=lambda: journal.submit("triage", task_id="t", number=1)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        soon(lambda: status(path, "t") == "completed")
    assert world.names() == ["triage", "write"]


def test_four_processes_submit_one_task_and_it_runs_once(path, world):
    def triage(task: Any, number: int) -> None:
        world.calls.append(("triage", number))
        task.run(world.write, "p")

    code = "import sys; from journal import post_submit; post_submit(sys.argv[1], 'triage', task_id='t', number=1)"
    with opened(path, world, handlers={"triage": triage}) as journal, serving(journal):
        children = [start(code, path) for _ in range(4)]
        for child in children:
            child.communicate()
            assert child.returncode == 0
        soon(lambda: status(path, "t") == "completed" and not mailbox.list_messages(path))
    assert world.names() == ["triage", "write"]
    assert task_row(path, "t")["conflict"] is None
