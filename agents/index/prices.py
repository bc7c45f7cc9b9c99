"""What a model call cost: the one module that knows the price table.

Prices come from the table inside `genai-prices`, never from the network. They change when the operator upgrades the
package. Each priced row names the version of the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import genai_prices
from genai_prices.types import ModelInfo, ModelPrice

from journal import clock
from journal.models import ModelCall

VERSION = f"genai-prices {genai_prices.__version__}"

# Tiers at the standard rate. Every other tier must stand in the table, which falls back to standard in silence.
_STANDARD_TIERS = frozenset({"", "default", "standard", "auto"})
# No response has so many tokens in one bucket. A larger number is no count and would break every sum.
_MOST_TOKENS = 10**8
_UNSURE = {
    "open": "The call has not come back, or was cut off by a crash: it may have been billed",
    "partial": "The provider's usage is not complete, or contradicts itself",
    "unknown": "What this call used is not known",
}
# Anybody may serve these models, at any price or for nothing: the name does not say who was paid.
_OPEN_WEIGHTS = (
    "gpt-oss",
    "llama",
    "qwen",
    "gemma",
    "phi-",
    "deepseek-r",
    "deepseek-v",
    "mixtral",
    "kimi",
    "glm",
    "olmo",
)
_DATED = re.compile(r"[-@](latest|\d{8}|\d{4}-\d{2}-\d{2})$")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Disjoint buckets of one provider response; None is "not reported", which is not 0."""

    in_uncached: int | None = None
    in_cache_read: int | None = None
    in_cache_write: int | None = None
    out_visible: int | None = None
    out_reasoning: int | None = None

    @property
    def total_in(self) -> int | None:
        return _sum(self.in_uncached, self.in_cache_read, self.in_cache_write)

    @property
    def total_out(self) -> int | None:
        return _sum(self.out_visible, self.out_reasoning)


@dataclass(frozen=True, slots=True)
class Price:
    """A cost in dollars, exact, and how it was found; `amount` None is unpriced and `why` says so, never $0."""

    amount: Decimal | None
    why: str = ""
    model: str = ""
    tier: str = ""
    version: str = ""


def price_call(call: ModelCall) -> tuple[Tokens, Price]:
    """The usage of one stored response, without impossible counts, and its price at the time of the call."""
    reported = (call.in_uncached, call.in_cache_read, call.in_cache_write, call.out_visible, call.out_reasoning)
    possible = [count if count is None or abs(count) <= _MOST_TOKENS else None for count in reported]
    tokens = Tokens(*possible)
    if tuple(possible) != reported:
        return tokens, Price(None, "The reported usage is impossible: a count is over a hundred million tokens.")
    if call.state != "exact":
        return tokens, Price(None, _unsure(call))
    model, at = call.model or call.request_model, call.started_at or clock.wall()
    return tokens, price_usage(tokens, model=model, tier=call.service_tier, at=at)


def _unsure(call: ModelCall) -> str:
    if call.state == "unknown" and not call.flags:
        return "The provider reported no usage."
    why = _UNSURE.get(call.state, "What this call used is not known")
    return f"{why}: {call.flags}." if call.flags else f"{why}."


def price_usage(tokens: Tokens, *, model: str | None, tier: str | None, at: datetime) -> Price:
    """The cost of one provider response. Never of a sum: rates depend on the size of the single call.

    What cannot be priced for certain is unpriced: an unknown model or tier, missing or impossible counts.
    """
    if not model:
        return Price(None, "The response named no model.")
    if tokens.in_uncached is None or tokens.out_visible is None:
        return Price(None, "The provider reported no complete usage.")
    if any(count is not None and count < 0 for count in _counts(tokens)):
        return Price(None, "The reported usage contradicts itself: a part is larger than its whole.")
    tier = (tier or "").strip()
    context = None if tier.lower() in _STANDARD_TIERS else {"service_tier": tier}
    try:
        found = genai_prices.calc_price(_usage(tokens), model, genai_request_timestamp=at, price_context=context)
    except LookupError:
        return Price(None, f"The price table ({VERSION}) does not know the model “{model}”.")
    except ValueError as error:
        return Price(None, f"The price table ({VERSION}) refuses the usage: {error}.")
    doubt = (
        _elsewhere(model, found.model)
        or _doubt(found.model, found.model_price, tokens, tier if context else "", at)
        or _negative(found.total_price)
    )
    if doubt:
        return Price(None, doubt, found.model.id, "", VERSION)
    return Price(found.total_price, "", f"{found.provider.id}/{found.model.id}", tier or "standard", VERSION)


def _usage(tokens: Tokens) -> genai_prices.Usage:
    # The package's input_tokens and output_tokens contain their parts.
    return genai_prices.Usage(
        input_tokens=tokens.total_in,
        cache_read_tokens=tokens.in_cache_read,
        cache_write_tokens=tokens.in_cache_write,
        output_tokens=tokens.total_out,
        output_reasoning_tokens=tokens.out_reasoning,
    )


def _doubt(info: ModelInfo, rates: ModelPrice, tokens: Tokens, tier: str, at: datetime) -> str:
    """Why a price of the package may be wrong; empty if it is not in doubt."""
    if tier and not any(
        variant.when == {"service_tier": tier} and (variant.constraint is None or variant.constraint.active(at))
        for variant in info.price_variants or ()
    ):
        return f"The price table ({VERSION}) does not know the tier “{tier}” of {info.id} at that time."
    for count, rate in ((tokens.in_cache_read, "cache_read_mtok"), (tokens.in_cache_write, "cache_write_mtok")):
        if count and getattr(rates, rate, None) is None:
            return f"The price table ({VERSION}) has no rate for cached tokens of {info.id}."
    if tokens.total_in and getattr(rates, "input_mtok", None) is None:
        return f"The price table ({VERSION}) has no input rate for {info.id}."
    if tokens.total_out and getattr(rates, "output_mtok", None) is None:
        return f"The price table ({VERSION}) has no output rate for {info.id}."
    return ""


def _elsewhere(named: str, info: ModelInfo) -> str:
    """Why the named model may not be the one of the table that was found for its name; empty if it is."""
    name, found = _DATED.sub("", named.lower()), info.id.lower()
    if name.startswith(_OPEN_WEIGHTS):
        return f"Many providers serve “{named}”, at different prices; the call does not say which one did."
    if not (found.startswith(name) or name.startswith(_DATED.sub("", found))):
        return f"The price table ({VERSION}) takes “{named}” for {info.id}, which may be another model."
    return ""


def _negative(amount: Decimal) -> str:
    # Routers that choose the model themselves stand in the table at -1.
    return f"The price table ({VERSION}) has no fixed rate for this model." if amount < 0 else ""


def _counts(tokens: Tokens) -> tuple[int | None, ...]:
    return (
        tokens.in_uncached,
        tokens.in_cache_read,
        tokens.in_cache_write,
        tokens.out_visible,
        tokens.out_reasoning,
    )


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
