"""`decide` and `retry`: the decisions of the dashboard's pages, on the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from journal import Journal, NoEffect, StepFailed, StepHeld, tool
from journal.cli import main
from tests.journal.agent import rows, status, steps_of

FIXED = [False]
CALLS: list[str] = []


@pytest.fixture(autouse=True)
def fresh():
    FIXED[0] = False
    CALLS.clear()


@tool(effect="mutating")
def send(call: Any, text: str) -> str:
    CALLS.append(call.key)
    if not FIXED[0]:
        raise NoEffect("the address is unknown")
    return text


@tool(effect="read_only")
def look() -> int:
    CALLS.append("look")
    if not FIXED[0]:
        raise ValueError("no such file")
    return 1


@tool(effect="mutating")
def lose(text: str) -> str:
    CALLS.append("lose")
    if not FIXED[0]:
        raise TimeoutError("no answer")
    return text


TOOLS = [send, look, lose]


def run(path, *used: Any, branch: bool = False) -> None:
    with Journal(path, agent="a", tools=TOOLS) as journal:
        journal.recover()
        with journal.task("t") as task:
            for one in used:
                if branch:
                    with task.branch("b") as child:
                        child.run(one, text="x") if one is not look else child.run(one)
                else:
                    task.run(one, text="x") if one is not look else task.run(one)


def decisions(path) -> list[tuple[Any, ...]]:
    found = rows(path, "SELECT task_id, step_index, kind, outcome, outcome_detail, reason FROM agent_decision")
    return [tuple(row.values()) for row in found]


@pytest.mark.parametrize("used", [send, look])
@pytest.mark.parametrize("branch", [False, True])
def test_a_failed_task_is_retried_with_the_same_steps_and_keys_and_its_failed_step_anew(path, used, branch):
    with pytest.raises(StepFailed):
        run(path, used, branch=branch)
    before = steps_of(path, "t/b" if branch else "t")[0]
    FIXED[0] = True
    with pytest.raises(StepFailed):
        run(path, used, branch=branch)
    assert len(CALLS) == 1
    assert main(["retry", str(path), "t", "--reason", "the address is right now"]) == 0
    run(path, used, branch=branch)
    after = steps_of(path, "t/b" if branch else "t")
    assert (len(after), after[0]["status"], after[0]["idempotency_key"]) == (1, "committed", before["idempotency_key"])
    assert (status(path, "t"), len(CALLS), len(set(CALLS))) == ("completed", 2, 1)
    assert ("t", None, "retry_task", "applied", "", "the address is right now") in decisions(path)


def test_a_retry_of_what_did_not_fail_is_refused_and_repeats_nothing(path, capsys):
    FIXED[0] = True
    run(path, send)
    assert main(["retry", str(path), "t", "--reason", "again"]) == 2
    assert "Only a failed task is retried" in capsys.readouterr().err
    assert main(["retry", str(path), "other", "--reason", "again"]) == 2
    run(path, send)
    assert len(CALLS) == 1


def test_a_step_that_was_served_before_the_failed_one_is_not_repeated(path):
    FIXED[0] = True
    with Journal(path, agent="a", tools=TOOLS) as journal, pytest.raises(KeyError), journal.task("t") as task:
        {}[task.run(send, text="first")]
    assert main(["retry", str(path), "t", "--reason", "the bug is mended"]) == 0
    with Journal(path, agent="a", tools=TOOLS) as journal:
        journal.recover()
        assert status(path, "t") == "queued"
        with journal.task("t") as task:
            assert task.run(send, text="first") == "first"
    assert (status(path, "t"), len(CALLS)) == ("completed", 1)


def held(path) -> None:
    with pytest.raises(StepHeld):
        run(path, lose)


def test_a_held_step_is_decided_bound_to_what_stands_there(path):
    held(path)
    FIXED[0] = True
    assert main(["decide", str(path), "t", "0", "replay", "--reason", "it is not there"]) == 0
    run(path, lose)
    assert (status(path, "t"), CALLS) == ("completed", ["lose", "lose"])
    assert decisions(path) == [("t", 0, "replay", "applied", "", "it is not there")]
    bound = rows(path, "SELECT key, payload_sha256, dispatches FROM agent_decision")[0]
    step = steps_of(path, "t")[0]
    assert bound == {"key": step["idempotency_key"], "payload_sha256": step["payload_sha256"], "dispatches": 1}


def test_a_decision_about_a_step_that_was_sent_again_meanwhile_is_refused(path):
    held(path)
    for _ in range(2):
        main(["decide", str(path), "t", "0", "replay", "--reason", "it is not there"])
    held(path)
    assert [one[3] for one in decisions(path)] == ["applied", "refused"]


def test_a_step_is_marked_committed_with_an_output_and_a_reference(path, capsys):
    held(path)
    words = ["decide", str(path), "t", "0", "mark_committed", "--reason", "I saw it"]
    assert main(words) == 2
    assert main([*words, "--output", "{half", "--reference", "#7"]) == 2
    capsys.readouterr()
    assert main([*words, "--output", '"sent"', "--reference", "#7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["decision"] == "mark_committed"
    run(path, lose)
    step = steps_of(path, "t")[0]
    assert (step["status"], step["output_json"], step["reference"], len(CALLS)) == ("committed", '"sent"', "#7", 1)


@pytest.mark.parametrize(("step", "words"), [("7", "is not in this journal"), ("0", "it is committed")])
def test_nothing_is_decided_about_a_step_that_is_not_open(path, capsys, step, words):
    FIXED[0] = True
    run(path, lose)
    assert main(["decide", str(path), "t", step, "abandon", "--reason", "no"]) == 2
    assert words in capsys.readouterr().err
    assert decisions(path) == []
