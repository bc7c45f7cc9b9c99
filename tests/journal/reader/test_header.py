"""Only plain tables are read: SQL inside a journal file never runs in its reader."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from journal.errors import JournalUnreadable
from journal.reader import Reader, inspect
from tests.journal.rows import a_journal, a_step, a_task, writer

# A call of this kind is one step of SQLite, which no budget interrupts; with longer texts it takes seconds.
_SLOW = "instr(printf('%.*c',90000,'a'), printf('%.*c',40000,'a')||'b')"
_OTHERS = "idempotency_key TEXT, arguments_json TEXT, status TEXT, output_json TEXT, created_at TEXT, updated_at TEXT"
FILES = {
    "a generated column": f"""
        CREATE TABLE agent_step_journal (task_id TEXT, step_index INTEGER,
            tool_name TEXT GENERATED ALWAYS AS ({_SLOW}) VIRTUAL, {_OTHERS}, PRIMARY KEY (task_id, step_index));
        INSERT INTO agent_step_journal (task_id, step_index, status) VALUES ('t', 0, 'pending');""",
    "a view": f"""
        CREATE TABLE steps (task_id TEXT, step_index INTEGER, {_OTHERS});
        INSERT INTO steps (task_id, step_index, status) VALUES ('t', 0, 'pending');
        CREATE VIEW agent_step_journal AS SELECT *, {_SLOW} AS tool_name FROM steps;""",
    "a view of another case": f"""
        CREATE TABLE steps (task_id TEXT, step_index INTEGER, {_OTHERS});
        CREATE VIEW Agent_STEP_journal AS SELECT *, {_SLOW} AS tool_name FROM steps;""",
    "a virtual table": """
        CREATE VIRTUAL TABLE agent_step_journal USING fts5(task_id, step_index, tool_name, idempotency_key,
            arguments_json, status, output_json, created_at, updated_at);""",
}


@pytest.mark.parametrize("what", FILES)
def test_what_is_no_plain_table_is_refused_unread(path: Path, what: str):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FILES[what])
    state = inspect(path)
    assert state.kind == "foreign_tables"
    assert "only plain tables without generated columns are read" in state.sentence
    with pytest.raises(JournalUnreadable, match=r"agent_step_journal (is a|has the generated column tool_name)"):
        Reader(path).steps("t")


@pytest.mark.parametrize("table", ["agent_task", "agent_request", "agent_decision", "journal_meta"])
def test_each_table_of_a_journal_of_ours_must_be_a_plain_one(path: Path, table: str):
    a_journal(path)
    with closing(writer(path)) as connection:
        connection.execute(f"ALTER TABLE {table} RENAME TO other")
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM other")
    state = inspect(path)
    assert (state.kind, f"{table} is a view" in state.sentence) == ("foreign_tables", True)


def test_what_a_reader_never_runs_may_stand_beside_the_tables(path: Path):
    """Triggers, checks and indexes of expressions cost a writer something, and a reader nothing."""
    a_journal(path)
    with closing(writer(path)) as connection:
        a_task(connection)
        a_step(connection)
        connection.execute(
            f"CREATE TRIGGER agent_task AFTER UPDATE ON agent_task WHEN {_SLOW} BEGIN DELETE FROM agent_task; END"
        )
        connection.execute(f"CREATE INDEX slow ON agent_step_journal (task_id) WHERE task_id = 'other' AND {_SLOW}")
        connection.execute(f"CREATE VIEW slow_view AS SELECT {_SLOW} FROM agent_task")
    assert inspect(path).kind == "ok"
    assert [step.step_index for step in Reader(path).steps("t")] == [0]
    assert [task.task_id for task in Reader(path).tasks().items] == ["t"]
