"""Tokens and money of model calls as a page adds them up: per step, per task, never a roll-up of roll-ups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from agents.index import prices
from agents.money import Money, known_sum
from journal.models import ModelCall


@dataclass(frozen=True, slots=True)
class Usage:
    """A sum over provider responses; tokens None where no call reported any."""

    calls: int
    tokens_in: int | None
    tokens_out: int | None
    cost: Money

    @property
    def tokens(self) -> int | None:
        return known_sum(self.tokens_in, self.tokens_out)


def sum_usage(calls: Iterable[ModelCall]) -> Usage:
    """The usage and cost of these calls; a call that cannot be priced makes the sum "at least"."""
    amount, unpriced, priced, count = Decimal(0), 0, 0, 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    for call in calls:
        count += 1
        tokens, price = prices.price_call(call)
        tokens_in = known_sum(tokens_in, tokens.total_in)
        tokens_out = known_sum(tokens_out, tokens.total_out)
        cost = price.amount
        if cost is None:
            unpriced += 1
        else:
            amount, priced = amount + cost, priced + 1
    return Usage(count, tokens_in, tokens_out, Money(amount if priced or not unpriced else None, unpriced))
