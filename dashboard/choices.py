"""The decisions that a page offers for a pending step, and why the others are not offered."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.urls import reverse

from agents.decisions.allowed import Offer, StepFacts, offer_for
from agents.fleet.summaries import IntentLine
from agents.models.job import QUERY_STATUS
from journal.models import DecisionKind, Step


@dataclass(frozen=True, slots=True)
class Choice:
    """A verb offered for one step."""

    verb: Verb
    href: str


@dataclass(frozen=True, slots=True)
class Offered:
    """One step's buttons, safest first. `notes` say what is missing, and why.

    The question is not among them where nobody can be asked, and where somebody is asked already.
    """

    choices: tuple[Choice, ...]
    notes: tuple[str, ...]


def offer_step_choices(journal_id: int, step: Step, offer: Offer, *, state: str, asked: bool) -> Offered | None:
    """What a pending step offers now; nothing while an attempt of the running boot is in flight.

    `asked`: a question about its status is open, so that it is not offered again.
    """
    if not step.replayable or state == "running":
        return None
    return _build_offered(offer, (journal_id, step.task_id, step.step_index), step.effect, asked=asked)


def offer_line_choices(line: IntentLine) -> Offered | None:
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
    return _build_offered(offer_for(place), (line.journal_id, line.task_id, line.step_index), line.effect, asked=asked)


def explain_no_decision(step: Step, dialect: str, offer: Offer, kind: str) -> str:
    """Why nobody can decide this about the step, as a sentence; empty where somebody can."""
    if why := _explain_settled_or_foreign(step, dialect):
        return why
    if kind in offer.kinds:
        return ""
    # Of an intent each kind is offered unless something forbids it; of a start, "mark" is there for none.
    if offer.no_replay and (kind == "replay" or step.effect == "mutating" or not offer.kinds):
        return offer.no_replay
    if not step.effect:
        return "This journal does not say whether the step changes anything outside: there is nothing to decide."
    return f"A {str(step.effect).replace('_', ' ')} step changes nothing outside: there is nothing of this to decide."


def explain_no_query(step: Step, dialect: str, offer: Offer) -> str:
    """Why nobody can be asked about the step; empty where somebody can."""
    return _explain_settled_or_foreign(step, dialect) or offer.no_query


def _explain_settled_or_foreign(step: Step, dialect: str) -> str:
    if dialect != "stepkeeper":
        return "The journal was made by others: nothing that writes it takes decisions."
    if step.status != "pending":
        return f"The step is not pending: it is {step.status}."
    return ""


def _build_offered(offer: Offer, place: tuple[int, str, int], effect: str | None, *, asked: bool) -> Offered | None:
    if not offer.kinds:
        return None
    kinds = [kind for kind in VERBS if kind in offer.kinds]
    choices = [Choice(choose_verb(kind, effect), reverse("decide", args=[*place, kind])) for kind in kinds]
    if not (offer.no_query or asked):
        choices.insert(0, Choice(_QUERY, reverse("query", args=place)))
    return Offered(tuple(choices), tuple(filter(None, (offer.no_replay, offer.no_query))))


@dataclass(frozen=True, slots=True)
class Verb:
    """Its texts: the button, its consequence in one line, what it does, and what happens if the person is wrong.

    A question has no `kind`.
    """

    kind: DecisionKind | None
    button: str
    line: str
    does: str
    wrong: str


_UNDER_KEY = ", under the stored key."

# Safest first: a page offers them in this order, each with its line.
VERBS: dict[str, Verb] = {
    str(verb.kind): verb
    for verb in (
        Verb(
            "mark_not_applied",
            "It did not happen",
            "Nothing is sent. The step stays held: sending it needs an approval of its own.",
            "Records that no attempt took effect; nothing is sent. The step stays held until a replay is approved "
            "separately.",
            "If one of the attempts did arrive, a later replay may make a second effect.",
        ),
        Verb(
            "mark_committed",
            "It happened",
            "Nothing is sent. The task goes on with the output you give.",
            "Ends the step as done with the output you give; nothing is sent. The handler gets that output.",
            "If the effect never happened, it never will: the task goes on as if it had.",
        ),
        Verb(
            "abandon",
            "Abandon",
            "Nothing is sent. The step ends without an output, and the task's code is told so.",
            "Ends the step without an output; nothing is sent. The handler sees StepAbandoned with your reason.",
            "If the effect did happen, the journal will not know of it.",
        ),
        Verb(
            "replay",
            "Approve replay",
            "Sends the stored bytes again. If they arrived before, the effect may happen a second time.",
            f"Sends the stored bytes again{_UNDER_KEY} Where the provider can be asked, it is asked first: "
            "if the effect exists, it is adopted and nothing is sent.",
            "If the first dispatch did arrive and the provider does not recognise the key any more, "
            "the effect happens a second time.",
        ),
    )
}

_QUERY = Verb(
    None,
    "Query status now",
    "Asks the provider whether the effect exists. Recovery goes on by the answer.",
    "Asks whether the effect exists, under the stored key. The question changes nothing, and its answer is kept as "
    "evidence.",
    "Recovery goes on by the answer: an effect that exists ends the step with that output. Where there is surely none, "
    "or a key protects it, and the profile leaves that to machines, the stored bytes are sent again.",
)
_QUERY_ENDED = replace(
    _QUERY,
    wrong="Its task is over: the answer is kept as evidence; nothing goes on by it and nothing is sent. Mark or "
    "abandon the step by what it says.",
)
_AGAIN_READ = replace(
    VERBS["replay"],
    line="Starts the step again. It changes nothing outside.",
    does="Starts the step again when its task runs, with its starts counted anew. It only reads: it changes nothing "
    "outside.",
    wrong="If it ends its process again, the agent's other work stops with it until the step is put aside once more.",
)
_AGAIN_MODEL = replace(
    VERBS["replay"],
    line="Asks the model again. It costs tokens again and changes nothing outside.",
    does="Asks the model again when its task runs, with its starts counted anew. It changes nothing outside; it costs "
    "tokens again.",
    wrong="If it ends its process again, the tokens of that call are lost. The agent's other work stops with it until "
    "the step is put aside once more.",
)
_NO_KEY = "The provider takes no key, so nothing tells it that this is the same request again."
_NO_EFFECT = replace(VERBS["abandon"], wrong="The task goes on, or fails, without what the step would have brought.")


def choose_verb(kind: str, effect: str | None, *, keyed: bool = True, ended: bool = False) -> Verb:
    """The words for a step of this effect; `keyed`: its provider is given the step's key; `ended`: its task is over."""
    if kind == QUERY_STATUS:
        return _QUERY_ENDED if ended else _QUERY
    if effect not in ("read_only", "model"):
        return _say_unkeyed(VERBS[kind]) if kind == "replay" and not keyed else VERBS[kind]
    again = _AGAIN_MODEL if effect == "model" else _AGAIN_READ
    return {"replay": again, "abandon": _NO_EFFECT}.get(kind, VERBS[kind])


def _say_unkeyed(replay: Verb) -> Verb:
    return replace(
        replay,
        does=f"{replay.does.replace(_UNDER_KEY, '.')} {_NO_KEY}",
        wrong="If the first dispatch did arrive, the effect happens a second time.",
    )
