"""What the outcome of one attempt looked like, in one word."""

from __future__ import annotations

from typing import Literal

# What an attempt's outcome looked like; `providers.md` part 3's rows in words. Recovery decides on these, never on
# free text.
Kind = Literal[
    "no_outcome",  # row 2: a mark and nothing after it
    "dns",  # row 3
    "not_connected",  # row 4
    "stale",  # law 6: boot or age re-check failed before the first byte
    "tls",  # row 5
    "lost_answer",  # row 8
    "accepted",  # row 13: 2xx, or the Python tool returned
    "replayed",  # row 14: 2xx with the replay marker
    "unmarked",  # row 15: 2xx on a re-dispatch, marker promised but missing
    "rejected",  # row 22
    "rate_limited",  # row 36
    "gateway",  # row 40
    "raised",  # a Python tool raised: it may have acted before
    "settled",  # an operator said: not applied
    "other",  # every row not listed: held
]
