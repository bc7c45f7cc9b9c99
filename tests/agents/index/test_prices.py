"""What a model call cost, to the last digit, or that nobody can say."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from agents.index.prices import VERSION, Tokens, price_call, price_usage
from agents.money import Money, to_dollars, to_pico
from journal.models import ModelCall

NOW = datetime(2026, 11, 29, tzinfo=UTC)
GPT5 = Tokens(in_uncached=200, in_cache_read=800, out_visible=200, out_reasoning=300)


def test_cached_and_reasoning_tokens_have_their_own_rates():
    found = price_usage(GPT5, model="gpt-5", tier=None, at=NOW)
    assert found.amount == Decimal("0.00535")
    assert (found.model, found.tier, found.version) == ("openai/gpt-5", "standard", VERSION)


def test_two_calls_are_priced_each_by_its_own_size():
    one = price_usage(Tokens(in_uncached=150_000, out_visible=10), model="gemini-2.5-pro", tier=None, at=NOW)
    both = price_usage(Tokens(in_uncached=300_000, out_visible=20), model="gemini-2.5-pro", tier=None, at=NOW)
    assert one.amount is not None
    assert one.amount * 2 == Decimal("0.3752")
    assert both.amount == Decimal("0.7503"), "priced as one sum it would cost more"


@pytest.mark.parametrize(
    ("tokens", "cost"), [((200_000, 1_000), "0.26"), ((250_000, 1_000), "0.64")], ids=["below", "above"]
)
def test_a_call_above_the_threshold_takes_the_higher_rate_for_all_its_tokens(tokens, cost):
    found = price_usage(Tokens(in_uncached=tokens[0], out_visible=tokens[1]), model="gemini-2.5-pro", tier=None, at=NOW)
    assert found.amount == Decimal(cost)


def test_a_tier_is_priced_as_that_tier_and_an_unknown_one_not_at_all():
    tokens = Tokens(in_uncached=1_000_000, out_visible=0)
    assert price_usage(tokens, model="o3", tier="flex", at=NOW).amount == Decimal(1)
    misspelt = price_usage(tokens, model="o3", tier="flexx", at=NOW)
    assert misspelt.amount is None
    assert "flexx" in misspelt.why


def test_a_tier_before_its_first_price_is_unpriced():
    found = price_usage(
        Tokens(in_uncached=1_000, out_visible=0), model="o3", tier="flex", at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert found.amount is None


def test_an_unknown_model_is_unpriced_never_zero():
    found = price_usage(GPT5, model="scripted-1", tier=None, at=NOW)
    assert found.amount is None
    assert "scripted-1" in found.why


@pytest.mark.parametrize(
    "tokens",
    [
        Tokens(),
        Tokens(in_uncached=5),
        Tokens(out_visible=5),
        Tokens(in_uncached=-1, in_cache_read=5, out_visible=1),
    ],
    ids=["nothing", "no output", "no input", "negative"],
)
def test_usage_that_is_missing_or_impossible_is_unpriced(tokens):
    assert price_usage(tokens, model="gpt-5", tier=None, at=NOW).amount is None


def test_a_call_without_a_model_is_unpriced():
    assert price_usage(GPT5, model=None, tier=None, at=NOW).why == "The response named no model."


def test_money_stays_exact_through_the_table():
    amount = Decimal("0.02395325")
    assert to_dollars(to_pico(amount)) == amount
    assert str(to_dollars(to_pico(Decimal(100)))) == "100"


def test_no_call_is_a_true_zero_and_no_price_is_not():
    assert Money.of(None, unpriced_calls=0).amount == 0
    assert Money.of(None, unpriced_calls=2).amount is None
    assert Money.of(5, unpriced_calls=2).at_least
    assert not Money.of(5, unpriced_calls=0).at_least


@pytest.mark.parametrize("model", ["gpt-oss-20b", "deepseek-r1", "llama-3.3-70b-instruct", "Qwen3-32B"])
def test_a_model_that_anybody_may_serve_is_unpriced(model):
    found = price_usage(GPT5, model=model, tier=None, at=NOW)
    assert (found.amount, bool(found.why)) == (None, True)


@pytest.mark.parametrize(
    "model", ["gpt-5", "gpt-5-2025-08-07", "claude-sonnet-4-20250514", "mistral-large-latest", "grok-4", "gpt-4o"]
)
def test_a_dated_or_shortened_name_is_the_model_it_names(model):
    assert price_usage(Tokens(in_uncached=10, out_visible=1), model=model, tier=None, at=NOW).amount


def test_cached_tokens_without_a_rate_of_their_own_are_unpriced():
    tokens = Tokens(in_uncached=1_000, in_cache_write=3_000, out_visible=100)
    found = price_usage(tokens, model="gpt-5-mini", tier=None, at=NOW)
    assert found.amount is None
    assert "cached tokens" in found.why
    assert price_usage(tokens, model="gpt-5.6", tier=None, at=NOW).amount


@pytest.mark.parametrize(
    ("state", "flags", "why"),
    [
        ("unknown", "", "The provider reported no usage."),
        ("unknown", "unrecognised usage fields", "What this call used is not known: unrecognised usage fields."),
        ("unknown", "the call failed", "What this call used is not known: the call failed."),
        (
            "partial",
            "cost is not understood",
            "The provider's usage is not complete, or contradicts itself: cost is not",
        ),
    ],
)
def test_the_reason_of_an_unpriced_call_is_what_its_journal_says(state, flags, why):
    call = ModelCall("t", 0, 1, 1, NOW, NOW, state, model="gpt-5", in_uncached=1, out_visible=1, flags=flags)
    assert price_call(call)[1].why.startswith(why)
