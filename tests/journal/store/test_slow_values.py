"""What a value of the agent's does when it is read, it does while nobody waits for the store."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import pytest

from journal import Journal, Reply, tool
from tests.journal.agent import opened


class Odd:
    """A value that says, each time it is read, whether another thread can use the journal meanwhile."""

    model_fields: ClassVar[dict[str, Any]] = {}

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.was_free: list[bool] = []

    def model_dump(self, mode: str = "json") -> dict[str, Any]:
        other = threading.Thread(target=self._journal.store.read, args=(lambda tx: None,))
        other.start()
        other.join(0.3)
        self.was_free.append(not other.is_alive())
        return {"prompt_tokens": 1, "completion_tokens": 1}

    def __str__(self) -> str:
        return str(self.model_dump())


@pytest.mark.parametrize("effect", ["mutating", "read_only"])
def test_an_output_is_read_before_the_store_is_taken(path, world, effect):
    @tool(effect=effect)
    def act() -> Odd:
        return odd

    with opened(path, world) as journal, journal.task("t") as task:
        odd = Odd(journal)
        assert task.run(act)["prompt_tokens"] == 1
    assert odd.was_free == [True]


def test_a_reply_and_its_usage_are_read_before_the_store_is_taken(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        odd = Odd(journal)
        task.ask(lambda: Reply(odd, usage=odd, model=odd))  # type: ignore[arg-type]
    assert odd.was_free
    assert all(odd.was_free)


def test_the_output_and_the_error_of_a_task_are_read_before_the_store_is_taken(path, world):
    class Failure(Exception):
        def __str__(self) -> str:
            return str(odd)

    with opened(path, world) as journal:
        odd = Odd(journal)
        journal.task("t").leave(None, odd)
        journal.task("u").leave(Failure())
    assert odd.was_free == [True, True]
