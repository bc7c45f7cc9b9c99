"""What must survive a power cut is synced, and what need not be is not: every transaction of a step, in its order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from journal import Journal, OutcomeUnknown, Request, http_tool
from journal.store.connection import FULL
from tests.journal.agent import World, opened
from tests.journal.operator import decide
from tests.journal.raw_server import json_answer, serving

STEP, ATTEMPT, REQUEST, BODY = "agent_step_journal", "agent_step_attempt", "agent_request", "agent_body"
_SYNCHRONOUS = re.compile(r"PRAGMA synchronous = (\d)")
_WRITTEN = re.compile(r"(?:INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM) (\w+)")


def synced(*tables: str) -> tuple[str, set[str]]:
    return ("synced", set(tables))


def unsynced(*tables: str) -> tuple[str, set[str]]:
    return ("unsynced", set(tables))


@contextmanager
def written(journal: Journal, world: World) -> Iterator[list[tuple[str, Any]]]:
    """What SQLite runs for this journal within the block, among the calls of the world's tools: for each COMMIT its
    durability and the tables that it wrote."""
    connection = journal.store._connection
    level = int(connection.execute("PRAGMA synchronous").fetchone()[0])
    tables: set[str] = set()

    def see(statement: str) -> None:
        nonlocal level
        if found := _SYNCHRONOUS.match(statement):
            level = int(found[1])
        elif found := _WRITTEN.match(statement):
            tables.add(found[1])
        elif statement in ("COMMIT", "ROLLBACK"):
            word = statement if statement != "COMMIT" else "synced" if level == FULL else "unsynced"
            world.calls.append((word, set(tables)))
            tables.clear()

    world.calls.clear()
    connection.set_trace_callback(see)
    try:
        yield world.calls
    finally:
        connection.set_trace_callback(None)


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("write", "p", [synced(STEP, ATTEMPT), ("write", "p"), unsynced(STEP, ATTEMPT)]),
        ("once", "p", [synced(STEP, ATTEMPT), ("once", "p"), unsynced(STEP, ATTEMPT)]),
        ("blind", "p", [synced(STEP, ATTEMPT), ("blind", "p"), synced(STEP, ATTEMPT)]),
        ("read", 1, [unsynced(STEP), ("read", 1), unsynced(STEP)]),
    ],
)
def test_an_intent_and_its_mark_are_synced_together_before_the_call(path, world, name, argument, expected):
    with opened(path, world) as journal, journal.task("t") as task, written(journal, world) as log:
        task.run(getattr(world, name), argument)
        assert log == expected


def test_a_payload_that_is_kept_apart_is_synced_with_its_intent(path, world):
    long = "x" * 9000
    with opened(path, world) as journal, journal.task("t") as task, written(journal, world) as log:
        task.run(world.write, long)
        assert log[:2] == [synced(STEP, ATTEMPT, BODY), ("write", long)]


def test_a_frozen_request_is_synced_with_its_intent_before_it_leaves(path, world):
    def taken(connection: Any, request: bytes) -> None:
        world.calls.append(("request", request.partition(b" ")[0]))
        json_answer(200, b"{}")(connection, request)

    with serving(taken) as server:

        @http_tool(effect="mutating")
        def order() -> Request:
            return Request("POST", f"{server.url}/orders", json={})

        with opened(path, world) as journal, journal.task("t") as task, written(journal, world) as log:
            task.run(order)
            # The note that the first byte comes next waits for no disk.
            sent = [unsynced(ATTEMPT), ("request", b"POST")]
            assert log == [synced(STEP, ATTEMPT, REQUEST), *sent, synced(STEP, ATTEMPT)]


def test_a_model_call_syncs_nothing(path, world):
    with opened(path, world) as journal, journal.task("t") as task, written(journal, world) as log:
        task.ask(world.model, "q")
        calls = "agent_model_call"
        assert log == [unsynced(STEP), unsynced(calls), ("model", "q"), unsynced(STEP, calls)]


def test_a_submitted_task_is_on_the_platter_when_submit_returns(path, world):
    with opened(path, world, handlers={"h": lambda task: None}) as journal, written(journal, world) as log:
        journal.submit("h", task_id="t")
        assert log == [synced("agent_task")]


def test_the_mark_of_a_replay_is_synced_before_the_replay(path, world):
    world.fail = SystemExit()
    with suppress(SystemExit), opened(path, world) as journal, journal.task("t") as task:
        task.run(world.write, "p")
    world.fail = None
    with opened(path, world) as journal, written(journal, world) as log:
        assert journal.recover().settled == 1
        assert log[:3] == [synced(STEP, ATTEMPT), ("write", "p"), unsynced(STEP, ATTEMPT)]


def test_an_unknown_outcome_and_its_hold_are_synced(path, world):
    world.fail = TimeoutError()
    with (
        opened(path, world) as journal,
        pytest.raises(OutcomeUnknown),
        journal.task("t") as task,
        written(journal, world) as log,
    ):
        task.run(world.blind, "p")
    assert log[:2] == [synced(STEP, ATTEMPT), ("blind", "p")]
    assert [(word, tables & {STEP, ATTEMPT}) for word, tables in log[2:4]] == [synced(ATTEMPT), synced(STEP)]


def test_a_decision_is_on_the_platter_before_its_message_is_removed(held, world):
    decide(held, "abandon")
    with opened(held, world) as journal, written(journal, world) as log:
        journal.context.apply_inbox()
        (first, *_) = log
        assert first[0] == "synced"
        assert {STEP, "agent_decision"} <= first[1]
