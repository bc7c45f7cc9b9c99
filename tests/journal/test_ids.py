"""The idempotency key is exactly the design's formula."""

from __future__ import annotations

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from journal import codec
from journal.ids import sha256_hex, step_key
from tests.journal.agent import opened, steps_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ARGUMENTS = st.dictionaries(TEXT, st.none() | st.integers(-(2**63), 2**63) | TEXT | st.lists(TEXT))


@given(TEXT, st.integers(0, 2**31), ARGUMENTS)
def test_generation_zero_is_the_hash_of_task_step_and_sorted_arguments(task_id, step_index, arguments):
    formula = f"{task_id}:{step_index}:{json.dumps(arguments, sort_keys=True)}"
    assert step_key(task_id, step_index, codec.dumps(arguments)) == hashlib.sha256(formula.encode()).hexdigest()


@given(TEXT, st.integers(0, 2**31), ARGUMENTS, st.integers(1, 100))
def test_a_later_generation_hashes_its_number_behind_the_step(task_id, step_index, arguments, generation):
    text = codec.dumps(arguments)
    formula = f"{task_id}:{step_index}#{generation}:{text}"
    assert step_key(task_id, step_index, text, generation=generation) == hashlib.sha256(formula.encode()).hexdigest()
    assert step_key(task_id, step_index, text, generation=generation) != step_key(task_id, step_index, text)


def test_one_known_key_is_pinned():
    pinned = "44af343026182226594930324c019bc2d7e3846131a232b29b46e6fc9bd76f56"
    assert (
        step_key("triage-42", 3, '{"branch": "fix"}')
        == pinned
        == hashlib.sha256(b'triage-42:3:{"branch": "fix"}').hexdigest()
        == sha256_hex('triage-42:3:{"branch": "fix"}')
    )


def test_a_model_step_has_the_key_and_the_hash_of_its_own_arguments_text(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.read, 1)
        task.ask(world.model, "q")
    step = steps_of(path, "t")[1]
    assert set(json.loads(step["arguments_json"])) == {"prompt_bytes", "prompt_sha256", "preview"}
    assert step["idempotency_key"] == step_key("t", 1, step["arguments_json"])
    assert step["args_hash"] == sha256_hex(step["arguments_json"])


def test_the_same_call_twice_in_one_task_has_two_keys():
    assert step_key("t", 0, '{"amount": 5}') != step_key("t", 1, '{"amount": 5}')
