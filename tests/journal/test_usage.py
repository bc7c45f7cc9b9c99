"""Token usage becomes disjoint buckets; what was not reported is not zero, what contradicts itself is flagged."""

from __future__ import annotations

from typing import Any

import pytest

from journal import Reply
from journal.usage import TokenUsage, normalise_usage
from tests.journal.agent import World, opened, rows

IN_OUT = {"prompt_tokens": 100, "completion_tokens": 40}


def buckets(usage: TokenUsage) -> tuple[int | None, ...]:
    return (
        usage.in_uncached,
        usage.in_cache_read,
        usage.in_cache_write,
        usage.out_visible,
        usage.out_reasoning,
    )


@pytest.mark.parametrize(
    ("raw", "expected", "state"),
    [
        ({**IN_OUT, "total_tokens": 140}, (100, None, None, 40, None), "exact"),
        ({**IN_OUT, "prompt_tokens_details": None}, (100, None, None, 40, None), "exact"),
        ({**IN_OUT, "prompt_tokens_details": {"cached_tokens": 0}}, (100, 0, None, 40, None), "exact"),
        ({**IN_OUT, "prompt_tokens_details": {"cached_tokens": 64}}, (36, 64, None, 40, None), "exact"),
        ({**IN_OUT, "completion_tokens_details": {"reasoning_tokens": 30}}, (100, None, None, 10, 30), "exact"),
        (
            {
                "prompt_tokens": 10_000,
                "completion_tokens": 500,
                "total_tokens": 10_500,
                "prompt_tokens_details": {"cached_tokens": 6_000, "cache_write_tokens": 3_000, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 500},
            },
            (1_000, 6_000, 3_000, 0, 500),
            "exact",
        ),
        ({"prompt_tokens": 7, "completion_tokens": 0}, (7, None, None, 0, None), "exact"),
        ({"prompt_tokens": 7}, (7, None, None, None, None), "partial"),
    ],
)
def test_chat_completions_usage_becomes_disjoint_buckets(raw, expected, state):
    found = normalise_usage(raw)
    assert (buckets(found), found.state, found.api) == (expected, state, "openai_chat")
    assert found.flags == "" or state == "partial"


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ({"prompt_tokens": 19, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 39_000}}, "exceed"),
        ({**IN_OUT, "completion_tokens_details": {"reasoning_tokens": 41}}, "exceed"),
        ({**IN_OUT, "prompt_tokens": -1}, "prompt_tokens is -1"),
        ({**IN_OUT, "prompt_tokens": 1.5}, "prompt_tokens is 1.5"),
        ({**IN_OUT, "prompt_tokens": True}, "prompt_tokens is True"),
        ({**IN_OUT, "prompt_tokens": "100"}, "prompt_tokens is"),
        ({**IN_OUT, "completion_tokens": 2**63}, "completion_tokens is"),
        ({**IN_OUT, "completion_tokens": float("nan")}, "completion_tokens is nan"),
        ({**IN_OUT, "total_tokens": 7}, "total_tokens"),
    ],
)
def test_what_contradicts_itself_is_flagged_and_never_clamped(raw, word):
    found = normalise_usage(raw)
    assert found.state == "partial"
    assert word in found.flags
    assert all(bucket is None or 0 <= bucket < 2**63 for bucket in buckets(found))


PROMPT, COMPLETION = "prompt_tokens_details", "completion_tokens_details"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({PROMPT: {"audio_tokens": 7, "cached_tokens": 0}}, "prompt_tokens_details.audio_tokens"),
        ({PROMPT: {"image_tokens": 7}}, "prompt_tokens_details.image_tokens"),
        ({COMPLETION: {"audio_tokens": 7}}, "completion_tokens_details.audio_tokens"),
        ({COMPLETION: {"thinking_tokens": 7}}, "completion_tokens_details.thinking_tokens"),
        ({PROMPT: {"cached_tokens_details": {"text_tokens": 0, "audio_tokens": 9}}}, "cached_tokens_details"),
        ({"prompt_cache_hit_tokens": 9, "prompt_cache_miss_tokens": 91}, "prompt_cache_hit_tokens"),
        ({"cache_read_input_tokens": 9}, "cache_read_input_tokens"),
        ({"reasoning_tokens": 9}, "reasoning_tokens"),
        ({"num_sources_used": 3}, "num_sources_used"),
        ({"server_tool_use": {"web_search_requests": 3}}, "server_tool_use"),
        ({"iterations": [{"input_tokens": 9}]}, "iterations"),
        ({"cost": 0.0123}, "cost"),
        ({"s3cr3t value": 1}, "a field of an odd name"),
    ],
)
def test_a_field_that_is_not_understood_makes_the_usage_partial_and_is_named(more, named):
    found = normalise_usage({**IN_OUT, **more})
    assert found.state == "partial"
    assert f"{named} is not understood" in found.flags
    assert "s3cr3t" not in found.flags


@pytest.mark.parametrize(
    "more",
    [
        {"cost": 0, "server_tool_use": None, "iterations": [], "prompt_cache_hit_tokens": 0},
        {PROMPT: {"audio_tokens": 0, "cached_tokens_details": {"audio_tokens": 0}}},
        {COMPLETION: {"accepted_prediction_tokens": 5, "rejected_prediction_tokens": 6, "text_tokens": 40}},
        {"queue_time": 0.1, "prompt_time": 0.2, "completion_time": 0.3, "total_time": 0.6},
    ],
)
def test_a_field_that_says_nothing_or_costs_nothing_of_its_own_leaves_the_usage_exact(more):
    assert normalise_usage({**IN_OUT, **more}).state == "exact"


class Broken:
    def model_dump(self) -> Any:
        raise RuntimeError("no")


class Sdk:
    def model_dump(self) -> dict[str, Any]:
        return {**IN_OUT, "prompt_tokens_details": Inner()}


class Inner:
    def model_dump(self) -> dict[str, Any]:
        return {"cached_tokens": 60}


def test_an_sdks_own_objects_are_read_like_their_json():
    assert buckets(normalise_usage(Sdk())) == (40, 60, None, 40, None)


@pytest.mark.parametrize("raw", [None, {}, [], "x", 7, Broken(), object(), {"tokens": 5}])
def test_what_is_not_known_is_unknown_and_not_zero(raw):
    found = normalise_usage(raw)
    assert (found.state, buckets(found)) == ("unknown", (None,) * 5)
    assert bool(found.flags) == (raw is not None)


def test_a_reply_is_counted_once_however_often_the_task_resumes(tmp_path):
    path, world = tmp_path / "j.db", World()

    def model(question: str) -> Reply:
        world.calls.append(("model", question))
        usage = {**IN_OUT, "prompt_tokens_details": {"cached_tokens": 60}, "odd": object()}
        return Reply("hi", usage=usage, model="m-2", request_model="m", response_id="r1", service_tier="default")

    for _ in range(3):
        with opened(path, world) as journal, journal.task("t") as task:
            assert task.ask(model, "q").usage["prompt_tokens"] == 100
    (row,) = rows(path, "SELECT * FROM agent_model_call")
    assert (row["in_uncached"], row["in_cache_read"], row["out_visible"], row["state"]) == (40, 60, 40, "partial")
    assert (row["model"], row["request_model"], row["response_id"], row["service_tier"]) == (
        "m-2",
        "m",
        "r1",
        "default",
    )
    assert '"prompt_tokens": 100' in row["raw_usage"]


def test_a_call_cut_short_is_unknown_and_the_next_one_has_a_row_of_its_own(tmp_path):
    path, world = tmp_path / "j.db", World()

    def model(question: str) -> Reply:
        if not world.calls:
            world.calls.append(("model", question))
            raise KeyboardInterrupt
        return Reply("hi", usage=IN_OUT)

    with opened(path, world) as journal:
        with pytest.raises(KeyboardInterrupt), journal.task("t") as task:
            task.ask(model, "q")
        with journal.task("t") as task:
            task.ask(model, "q")
    found = rows(path, "SELECT call, state, in_uncached FROM agent_model_call ORDER BY call")
    assert found == [
        {"call": 1, "state": "unknown", "in_uncached": None},
        {"call": 2, "state": "exact", "in_uncached": 100},
    ]


def test_a_response_that_two_calls_name_is_counted_once_and_the_second_call_says_why(tmp_path):
    path = tmp_path / "j.db"
    with opened(path, World()) as journal, journal.task("t") as task:
        for response_id in ("r1", "r1", "r2", None, None):
            task.ask(lambda q, r=response_id: Reply(q, usage=IN_OUT, model="m", response_id=r), "q")
    found = rows(path, "SELECT state, flags FROM agent_model_call ORDER BY step_index")
    assert [row["state"] for row in found] == ["exact", "partial", "exact", "exact", "exact"]
    assert found[1]["flags"] == "another call has the same response id"
