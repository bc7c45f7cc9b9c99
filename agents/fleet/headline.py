"""The fleet's state said in one sentence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta


def overview_sentence(
    states: Mapping[str, int], *, held: int, since: datetime | None, bad: int, known: int, now: datetime
) -> str:
    """What an operator has to know, worst first; short when nothing is wrong."""
    if not known:
        return "No journal was found yet."
    parts = []
    if states.get("crashed"):
        parts.append(f"{_agents(states['crashed'])} crashed")
    if states.get("hung"):
        parts.append(f"{_agents(states['hung'])} hung")
    if held:
        waits = "1 intent waits" if held == 1 else f"{held:,} intents wait"
        parts.append(f"{waits} for you" + (f" since {duration_words(now - since)}" if since else ""))
    working, idle = states.get("working", 0), states.get("idle", 0)
    if working:
        parts.append(f"{_agents(working)} working")
    if idle:
        parts.append(f"{_agents(idle)} with nothing to do")
    if bad:
        parts.append("1 journal cannot be read" if bad == 1 else f"{bad:,} journals cannot be read")
    if not parts:
        return "No agent is running."
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _agents(count: int) -> str:
    return "1 agent" if count == 1 else f"{count:,} agents"


def duration_words(age: timedelta) -> str:
    """A length of time in words."""
    seconds = max(int(age.total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < 2 * 86400:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{seconds // 86400} days"
