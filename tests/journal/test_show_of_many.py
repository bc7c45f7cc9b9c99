"""`show` of a journal with more pending steps than the pages keep."""

from __future__ import annotations

from contextlib import closing

from journal.cli import main
from tests.journal.rows import a_held_journal, a_step, a_task, writer


def test_a_higher_limit_lists_the_tasks_of_all_pending_steps_and_why_each_waits(path, capsys):
    a_held_journal(path)
    with closing(writer(path)) as connection:
        connection.execute("BEGIN")
        a_task(connection, "a", status="waiting")
        for index in range(1001):
            a_step(connection, "a", index, status="pending", output_json=None)
        connection.execute("COMMIT")
    assert main(["show", str(path), "--limit", "1000000"]) == 0
    why = {line.split()[1]: line for line in capsys.readouterr().out.splitlines()[2:]}
    assert list(why) == ["a", "held", "done"]
    assert "step 1 open_issue: no_key_no_status" in why["held"]
