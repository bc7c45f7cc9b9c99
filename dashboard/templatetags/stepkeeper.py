"""Filters and tags for templates: signals, effects, times, hashes, sizes. No page logic."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.fleet.summaries import TaskLine
from agents.money import Money, known_sum
from dashboard.header import Header, build_header
from dashboard.timeline.status import describe_waiting_task
from dashboard.ui.empty_states import EmptyState, find_empty_state
from dashboard.ui.format import (
    format_age,
    format_clock,
    format_cost,
    format_count,
    format_duration,
    format_number,
    format_size,
    name_signal,
    to_local_time,
)
from dashboard.ui.safe_text import mark_attribute, mark_block, mark_line
from journal import clock
from journal.models import WaitReason

register = template.Library()

HASH_SHOWN = 8
TOOL_ON_HOVER = 400  # characters: a list has hundreds of names, and each may be as long as a cell
_SHAPES = {
    "applied": "committed",
    "completed": "committed",
    "done": "committed",
    "ok": "committed",
    "working": "running",
    "idle": "not_sent",
    "stopped": "not_sent",
    "queued": "waiting",
    "in_progress": "running",
    "in_flight": "running",
    "no_effect": "not_sent",
    "absent": "not_sent",
    "unresolved": "unknown",
    "foreign": "unknown",
    "hung": "crashed",
    "slow": "running",
    "unread": "not_sent",
    "waiting_agent": "waiting",
    "refused": "failed",
    "expired": "abandoned",
    "cancelled": "abandoned",
    "critical": "warn",
    "warning": "warn",
}
_COLOURS = {
    "working": "running",
    "slow": "running",
    "idle": "not_sent",
    "stopped": "not_sent",
    "unread": "not_sent",
    "in_flight": "running",
    "unresolved": "unknown",
    "foreign": "unknown",
    "warning": "warn",
}


@register.simple_tag
def signal(state: str, word: str | None = None) -> SafeString:
    """Shape, word and colour of a state; the word alone would do, the colour never does."""
    return format_html(
        '<span class="signal signal-{}"><svg aria-hidden="true"><use href="#signal-{}"/></svg><span>{}</span></span>',
        _COLOURS.get(state, state),
        _SHAPES.get(state, state),
        mark_line(name_signal(state) if word is None else word),
    )


@register.simple_tag
def tool(effect: str | None, name: str) -> SafeString:
    """A tool's name behind its effect's glyph, everywhere the same; more of a long name on hover."""
    known = effect if effect in ("read_only", "mutating", "model") else "unknown"
    word = {"unknown": "effect not recorded"}.get(known, known.replace("_", " "))
    rest = len(name) - TOOL_ON_HOVER
    return format_html(
        '<span class="tool"><svg class="effect" role="img" aria-label="{0}"><title>{0}</title>'
        '<use href="#effect-{1}"/></svg><bdi title="{3}">{2}</bdi></span>',
        word,
        known,
        mark_line(name, 120),
        mark_attribute(name[:TOOL_ON_HOVER]) + (f"… {format_count(rest, 'more character')}" if rest > 0 else ""),
    )


@register.simple_tag
def when(moment: datetime | None) -> SafeString:
    """A time as its age in words; the zone and the exact time on hover."""
    if moment is None:
        return format_html('<span class="soft">{}</span>', "time not recorded")
    return _time(moment, format_age(moment, clock.wall()), "age")


@register.simple_tag
def key_window(text: str, until: datetime | None) -> SafeString:
    """A key's window in words. The page itself counts the remaining time down."""
    return mark_line(text, 200) if until is None else _time(until, text, "key")


@register.simple_tag
def at(moment: datetime | None) -> SafeString:
    """A time as the clock shows it, with the date where it is not today's."""
    if moment is None:
        return format_html('<span class="soft">{}</span>', "time not recorded")
    return _time(moment, format_clock(moment, clock.wall()))


def _time(moment: datetime, text: str, moves: str = "") -> SafeString:
    """`moves` names what static/ages.js keeps true of it while the page stands."""
    local = to_local_time(moment)
    exact = local.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + local.strftime(" %Z (UTC%z)")
    moving = format_html(' data-moves="{}"', moves) if moves else ""
    return format_html('<time datetime="{}" title="{}"{}>{}</time>', clock.text(moment), exact, moving, text)


@register.filter
def timestamp(moment: datetime) -> str:
    """A time as a machine reads it."""
    return clock.text(moment)


@register.simple_tag
def hash(value: str | None, name: str = "hash") -> SafeString:
    """A hash or key: its first eight characters, the whole on hover and on copy."""
    if not value:
        return format_html('<span class="soft">{}</span>', "none")
    return format_html(
        '<span class="hash"><code title="{0}">{1}</code>'
        '<button class="copy" type="button" data-copy="{0}" aria-label="copy the {2}">copy</button></span>',
        value,
        mark_line(value[:HASH_SHOWN]),
        name,
    )


@register.inclusion_tag("_empty.html")
def empty_state(page: str) -> dict[str, EmptyState]:
    """The text of an empty page."""
    return {"empty": find_empty_state(page)}


@register.filter
def line(value: object, limit: int | None = None) -> SafeString:
    """Text on one line, controls visible."""
    return mark_line("" if value is None else str(value), limit)


@register.filter
def block(value: object) -> SafeString:
    """Text in a <pre>, controls visible."""
    return mark_block("" if value is None else str(value))


@register.filter
def typed(value: object, limit: int | None = None) -> SafeString:
    """A person's text, or a text of several lines: its line breaks stay. For an element of class `typed`."""
    return mark_block("" if value is None else str(value).replace("\r\n", "\n"), limit)


@register.filter
def size(value: int | None) -> str:
    return format_size(value)


@register.filter
def number(value: int | None) -> str:
    return format_number(value)


@register.filter
def duration(value: float | None) -> str:
    return format_duration(value)


@register.filter
def money(value: Money | None) -> str:
    """A sum of money; what could not be priced is said, never counted as $0."""
    return format_cost(value)


@register.filter
def count(value: int, word: str) -> str:
    """`3|count:"step"` → `3 steps`; a plural of its own after a comma: `"reply,replies"`."""
    one, _, many = word.partition(",")
    return format_count(value, one, many or None)


@register.filter
def spaced(value: object) -> str:
    """A stored word as people write it: `in_progress` → `in progress`."""
    return str(value).replace("_", " ")


@register.simple_tag(takes_context=True)
def desk(context: template.Context) -> Header:
    """The header of every page."""
    request = context.get("request")
    return build_header(request) if request is not None else Header()


@register.filter
def shape(state: str) -> str:
    """The sprite symbol that stands for a state, for a bar's end cap."""
    return f"#signal-{_SHAPES.get(state, state)}"


@register.simple_tag
def task_state(state: str, wait: WaitReason | None, task_id: str) -> SafeString:
    """A task's signal; one that waits for a person is held, in the words of its hold reason."""
    if state != "waiting":
        return signal(state)
    found = describe_waiting_task(wait, task_id)
    return signal(found.state, found.word)


@register.filter
def tokens(line: TaskLine) -> int | None:
    """Input and output together; None where neither was reported."""
    return known_sum(line.tokens_in, line.tokens_out)
