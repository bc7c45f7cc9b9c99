"""However many intents a killed agent left, all of them are recovered."""

from __future__ import annotations

import pytest

from tests.journal.agent import World, opened, rows

MANY = 1100


@pytest.mark.slow
def test_more_than_a_thousand_intents_are_all_recovered(tmp_path):
    path = tmp_path / "j.db"
    world = World()
    with opened(path, world, max_wait=0) as journal:
        with journal.task("t") as task:
            task.run(world.blind, "x")

        def copy(tx: object) -> None:
            # As many killed dispatches of one tool without a key as no test wants to make one by one.
            for number in range(MANY):
                _copy_row(tx, "agent_task", f"u{number}", status="running")
                _copy_row(tx, "agent_step_journal", f"u{number}", status="pending", output_json=None)
                _copy_row(tx, "agent_step_attempt", f"u{number}", verdict=None, kind=None, ended_at=None)

        journal.store.write(copy, sync=False)
    with opened(path, world) as journal:
        assert journal.recover().held == MANY
    held = rows(path, "SELECT count(*) AS n FROM agent_step_journal WHERE hold_reason = 'no_key_no_status'")
    assert held[0]["n"] == MANY
    assert world.names() == ["blind"]


def _copy_row(tx, table: str, task_id: str, **values: object) -> None:
    row = dict(tx.one(f"SELECT * FROM {table} WHERE task_id = 't'"))
    row |= {"task_id": task_id, "revision": tx.revision(), **values}
    places = ", ".join("?" * len(row))
    tx.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))
