"""The demo's parts of two product pages: their templates have a slot for each, which stays empty without the demo."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from django import template
from django.conf import settings
from django.template import Context
from django.urls import reverse

from agents.access.roles import can_decide, can_see_payloads
from agents.catalog import discovery
from agents.models import JournalFile

if TYPE_CHECKING:
    from agents.demo.story import Sentence

register = template.Library()
_LEDGER_LINES = 5


@dataclass(frozen=True, slots=True)
class StoryLine:
    """The demo's sentence about one agent, linked to the page that shows it."""

    agent: str
    text: str
    href: str
    waits: bool


@register.inclusion_tag("demo/_story.html")
def demo_story() -> dict[str, object]:
    """One sentence for each kill of the demo."""
    if not settings.STEPKEEPER_DEMO:
        return {}
    # The demo's modules are loaded only where the demo runs.
    from agents.demo import story

    told = story.sentences()
    story.note_visitor()
    known = dict(JournalFile.objects.filter(path__in={one.journal_path for one in told}).values_list("path", "pk"))
    return {"lines": [StoryLine(one.agent, one.text, _href(one, known), one.waits) for one in told]}


@register.inclusion_tag("demo/_kill.html", takes_context=True)
def demo_kill(context: Context, agent: str) -> dict[str, object]:
    """The button that kills one of the demo's agents, for people who may decide."""
    from agents.demo import story

    shown = settings.STEPKEEPER_DEMO and agent in story.agents() and can_decide(context["request"].user)
    return {"agent": agent if shown else "", "csrf_token": context.get("csrf_token")}


@register.inclusion_tag("demo/_ledger.html", takes_context=True)
def demo_ledger(context: Context, journal_id: int, agent: str, task_id: str) -> dict[str, object]:
    """The forge's own book beside a task of the agent that opens pull requests: this task's lines, then the newest.

    A title is a payload: it stays empty for people who may not see payloads.
    """
    if not settings.STEPKEEPER_DEMO:
        return {}
    from agents.demo import story
    from agents.demo.paths import PULLS

    if agent != PULLS:
        return {}
    reader = discovery.reader_for(JournalFile.objects.get(pk=journal_id))
    keys = {step.idempotency_key for step in reader.steps(task_id) if step.idempotency_key}
    reveal = can_see_payloads(context["request"].user)
    lines = [asdict(line) | {"ours": line.key in keys} for line in story.ledger(first=keys, limit=_LEDGER_LINES)]
    return {"lines": [line if reveal else line | {"title": ""} for line in lines]}


def _href(sentence: Sentence, known: dict[str, int]) -> str:
    journal_id = known.get(sentence.journal_path)
    if journal_id is None or sentence.task_id is None:
        return ""
    if sentence.step_index is not None and sentence.waits:
        return reverse("step", args=[journal_id, sentence.task_id, sentence.step_index])
    return reverse("task", args=[journal_id, sentence.task_id])
