"""Token usage of a model's answer as disjoint buckets. No prices here.

A bucket is None where the answer did not report it: not reported is not zero. Sources of the rules: the field table
of OpenAI's chat completions (cached tokens are inside `prompt_tokens`, reasoning tokens inside `completion_tokens`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

# Fields that are read into a bucket, or are parts of one that cost the same. Times and sums cost nothing.
_UNDERSTOOD: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"}
        | {"queue_time", "prompt_time", "completion_time", "total_time"}
    ),
    "prompt_tokens_details": frozenset({"cached_tokens", "cache_write_tokens", "text_tokens"}),
    "completion_tokens_details": frozenset(
        {"reasoning_tokens", "text_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens"}
    ),
}
_FIELD_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,60}")


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one provider response.

    `state` is "exact" when every field was understood and every number adds up. It is "partial" when numbers are
    missing, contradict each other, or stand beside fields that may cost more; `flags` says which. It is "unknown" when
    nothing was reported.
    """

    state: str
    api: str | None = None
    in_uncached: int | None = None
    in_cache_read: int | None = None
    in_cache_write: int | None = None
    out_visible: int | None = None
    out_reasoning: int | None = None
    flags: str = ""


def normalise_usage(raw: object) -> TokenUsage:
    """The buckets of a raw usage object; unknown shapes are kept raw by the caller and counted as unknown here.

    Never raises: the answer was paid, also if its usage is odd.
    """
    try:
        fields = _mapping(raw)
        if fields is None or "prompt_tokens" not in fields:
            return TokenUsage(state="unknown", flags="" if raw is None else "unrecognised usage fields")
        return _openai_chat(fields)
    except Exception as error:  # any error that an SDK's object raises when it is read
        return TokenUsage(state="unknown", flags=f"reading the usage raised {type(error).__name__}")


def _openai_chat(fields: Mapping[str, Any]) -> TokenUsage:
    flags: list[str] = []
    prompt = _count(fields.get("prompt_tokens"), "prompt_tokens", flags)
    completion = _count(fields.get("completion_tokens"), "completion_tokens", flags)
    details = _mapping(fields.get("prompt_tokens_details")) or {}
    cached = _count(details.get("cached_tokens"), "cached_tokens", flags)
    written = _count(details.get("cache_write_tokens"), "cache_write_tokens", flags)
    output = _mapping(fields.get("completion_tokens_details")) or {}
    reasoning = _count(output.get("reasoning_tokens"), "reasoning_tokens", flags)
    uncached = _less(prompt, (cached or 0) + (written or 0), "cached tokens exceed prompt_tokens", flags)
    visible = _less(completion, reasoning or 0, "reasoning tokens exceed completion_tokens", flags)
    for where, part in (("", fields), ("prompt_tokens_details", details), ("completion_tokens_details", output)):
        _flag_others(where, part, flags)
    total = fields.get("total_tokens")
    if prompt is not None and completion is not None and isinstance(total, int) and total != prompt + completion:
        flags.append("total_tokens is not prompt + completion")
    state = "exact" if prompt is not None and completion is not None and not flags else "partial"
    return TokenUsage(state, "openai_chat", uncached, cached, written, visible, reasoning, "; ".join(flags))


def _flag_others(where: str, fields: Mapping[str, Any], flags: list[str]) -> None:
    """Flag each field that says something and is not understood: audio, images, searches, a cache of another kind."""
    for name, value in fields.items():
        if name not in _UNDERSTOOD[where] and _says_something(value):
            shown = name if _FIELD_NAME.fullmatch(str(name)) else "a field of an odd name"
            flags.append(f"{where}{'.' if where else ''}{shown} is not understood")


def _says_something(value: object) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else None
    return bool(value) if inner is None else any(_says_something(one) for one in inner)


def _count(value: object, name: str, flags: list[str]) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value >= 2**63:
        # Only numbers are shown, and whole: a part of a credential would not be recognised.
        shown = str(value) if isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**64) else ""
        flags.append(f"{name} is {shown or type(value).__name__}")
        return None
    return value


def _less(whole: int | None, part: int, complaint: str, flags: list[str]) -> int | None:
    if whole is None:
        return None
    if part > whole:
        # Flagged, never clamped: a negative bucket is bad data, and guessing would hide it.
        flags.append(complaint)
        return None
    return whole - part


def _mapping(value: object) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    dumped = dump() if callable(dump) else None
    return dumped if isinstance(dumped, Mapping) else None
