"""An operator ends a read or a model step while it runs: the handler gets what the journal holds, as on a resume."""

from __future__ import annotations

from typing import Any

import pytest

from journal import Journal, Reply, StepAbandoned, tool
from tests.journal.agent import opened, rows, steps_of
from tests.journal.operator import decide, outcome


def ends_it(journal: Journal, path: Any, kind: str, **other: Any) -> None:
    """The decision is posted and applied here and now, while the step is under way."""
    message = decide(path, kind, dispatches=0, **other)
    journal.context.take_messages()
    assert outcome(path, message) == "applied"


@pytest.mark.parametrize("fails", [False, True])
def test_a_read_abandoned_while_it_runs_is_abandoned_for_its_handler_too(path, world, fails):
    @tool(effect="read_only")
    def look() -> str:
        ends_it(journal, path, "abandon")
        if fails:
            raise ValueError("no")
        return "seen"

    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task, pytest.raises(StepAbandoned, match="I looked"):
            task.run(look)
    assert steps_of(path, "t")[0]["status"] == "abandoned"


def test_a_read_marked_committed_while_it_runs_gives_the_output_that_is_stored(path, world):
    @tool(effect="read_only")
    def look() -> str:
        ends_it(journal, path, "mark_committed", output="what I saw")
        return "seen"

    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            assert task.run(look) == "what I saw"


def test_a_model_step_abandoned_while_it_is_asked_gives_no_answer(path, world):
    def model(question: str) -> Reply:
        ends_it(journal, path, "abandon")
        return Reply("an answer", usage={"prompt_tokens": 1, "completion_tokens": 1})

    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task, pytest.raises(StepAbandoned):
            task.ask(model, "q")
    assert rows(path, "SELECT state, out_visible FROM agent_model_call") == [{"state": "exact", "out_visible": 1}]


def test_a_model_step_abandoned_while_it_waits_for_its_turn_asks_no_model(path, world):
    def dies(question: str) -> Reply:
        raise SystemExit

    class Turn:
        """A suspect's turn that comes after somebody has decided."""

        def acquire(self, blocking: bool) -> bool:
            ends_it(journal, path, "abandon")
            return True

        def release(self) -> None:
            pass

    with pytest.raises(SystemExit), opened(path, world) as journal, journal.task("t") as task:
        task.ask(dies, "q")
    with opened(path, world) as journal:
        journal.store.write(lambda tx: tx.execute("UPDATE agent_step_journal SET starts = 2"), sync=False)
        journal.context.suspect = Turn()  # type: ignore[assignment]
        with journal.task("t") as task, pytest.raises(StepAbandoned):
            task.ask(model_of(world), "q")
    assert world.calls == []


def model_of(world: Any) -> Any:
    def dies(question: str) -> Reply:
        return Reply(world.model(question))

    return dies
