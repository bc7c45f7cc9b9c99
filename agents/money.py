"""Exact sums of money: picodollars in tables, Decimal dollars everywhere else."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

# 1e-12 dollar: the price of one token of the cheapest model is tens of thousands of these, so sums in SQL stay exact
# in 64-bit integers up to nine million dollars a row.
_PICO = Decimal(10) ** 12


def to_pico(amount: Decimal) -> int:
    """Dollars as whole picodollars; what lies below is rounded half to even."""
    return int((amount * _PICO).to_integral_value(rounding=ROUND_HALF_EVEN))


def to_dollars(pico: int) -> Decimal:
    """Picodollars as dollars, exact, without trailing zeros."""
    amount = (Decimal(pico) / _PICO).normalize()
    return amount if amount.as_tuple().exponent not in range(1, 30) else amount.quantize(Decimal(1))


def known_sum(*counts: int | None) -> int | None:
    """The sum of the reported values; None, not 0, if no value was reported."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Money:
    """A sum over model calls. `amount` None: there were calls and none could be priced; that is not $0."""

    amount: Decimal | None
    unpriced_calls: int = 0

    @property
    def at_least(self) -> bool:
        """Whether the true sum is higher: some calls are not in it."""
        return self.amount is not None and self.unpriced_calls > 0

    @classmethod
    def of(cls, pico: int | None, *, unpriced_calls: int) -> Money:
        """From a sum of picodollars; NULL with nothing unpriced is a true zero: there was no call."""
        if pico is None:
            return cls(None if unpriced_calls else Decimal(0), unpriced_calls)
        return cls(to_dollars(pico), unpriced_calls)
