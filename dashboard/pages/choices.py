"""What a page offers about a pending step: the decisions that work, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from agents.decisions.allowed import Offer, StepFacts, offer_for
from agents.fleet.summaries import IntentLine
from dashboard.pages.verbs import Verb, verb_of
from journal.models import Step


@dataclass(frozen=True, slots=True)
class Choice:
    """A verb offered for one step."""

    verb: Verb
    href: str


@dataclass(frozen=True, slots=True)
class Offered:
    """One step's buttons. `notes` say what is missing, and why.

    `query_href` is empty where nobody can be asked, and where somebody is asked already.
    """

    choices: tuple[Choice, ...]
    query_href: str
    notes: tuple[str, ...]


def of_step(journal_id: int, step: Step, offer: Offer, *, state: str, asked: bool) -> Offered | None:
    """What a pending step offers now; nothing while an attempt of the running boot is in flight.

    `asked`: a question about its status is open, so that it is not offered again.
    """
    if not step.replayable or state == "running":
        return None
    return _offered(offer, (journal_id, step.task_id, step.step_index), step.effect, asked=asked)


def of_line(line: IntentLine) -> Offered | None:
    """What the fleet index offers for one intent; the step's own page looks again."""
    if not line.key or line.state == "in_flight":
        return None
    place = StepFacts(
        effect=line.effect,
        transport=line.transport,
        provider=line.provider,
        hold_reason=line.hold_reason or "",
        task_status=line.task_status,
        asks=line.asks,
    )
    asked = line.question_uuid is not None
    return _offered(offer_for(place), (line.journal_id, line.task_id, line.step_index), line.effect, asked=asked)


def nothing_to_decide(step: Step, dialect: str, offer: Offer, kind: str) -> str:
    """Why nobody can decide this about the step, as a sentence; empty where somebody can."""
    if why := _settled_or_foreign(step, dialect):
        return why
    if kind in offer.kinds:
        return ""
    # Of an intent each kind is offered unless something forbids it; of a start, "mark" is there for none.
    if offer.no_replay and (kind == "replay" or step.effect == "mutating" or not offer.kinds):
        return offer.no_replay
    if not step.effect:
        return "This journal does not say whether the step changes anything outside: there is nothing to decide."
    return f"A {str(step.effect).replace('_', ' ')} step changes nothing outside: there is nothing of this to decide."


def nothing_to_ask(step: Step, dialect: str, offer: Offer) -> str:
    """Why nobody can be asked about the step; empty where somebody can."""
    return _settled_or_foreign(step, dialect) or offer.no_query


def _settled_or_foreign(step: Step, dialect: str) -> str:
    if dialect != "stepkeeper":
        return "The journal was made by others: nothing that writes it takes decisions."
    if step.status != "pending":
        return f"The step is not pending: it is {step.status}."
    return ""


def _offered(offer: Offer, place: tuple[int, str, int], effect: str | None, *, asked: bool) -> Offered | None:
    if not offer.kinds:
        return None
    choices = tuple(Choice(verb_of(kind, effect), reverse("decide", args=[*place, kind])) for kind in offer.kinds)
    query_href = "" if offer.no_query or asked else reverse("query", args=place)
    return Offered(choices, query_href, tuple(filter(None, (offer.no_replay, offer.no_query))))
