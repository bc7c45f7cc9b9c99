"""The decisions about a pending step, and the question about it, in words that name their effect."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.models.job import QUERY_STATUS
from journal.models import DecisionKind


@dataclass(frozen=True, slots=True)
class Verb:
    """Its texts: the button, what it does, and what happens if the person is wrong. A question has no `kind`."""

    kind: DecisionKind | None
    button: str
    does: str
    wrong: str


_UNDER_KEY = ", under the stored key."

VERBS: dict[str, Verb] = {
    str(verb.kind): verb
    for verb in (
        Verb(
            "replay",
            "Approve replay",
            f"Sends the stored bytes again{_UNDER_KEY} Where the provider can be asked, it is asked first: "
            "if the effect exists, it is adopted and nothing is sent.",
            "If the first dispatch did arrive and the provider does not recognise the key any more, "
            "the effect happens a second time.",
        ),
        Verb(
            "mark_committed",
            "Mark committed",
            "Ends the step as done with the output you give; nothing is sent. The handler gets that output.",
            "If the effect never happened, it never will: the task goes on as if it had.",
        ),
        Verb(
            "mark_not_applied",
            "Mark not applied",
            "Settles every unknown attempt as “no effect”; nothing is sent. The step stays pending until a replay is "
            "approved separately.",
            "If one of the attempts did arrive, a later replay may make a second effect.",
        ),
        Verb(
            "abandon",
            "Abandon",
            "Ends the step without an output; nothing is sent. The handler sees StepAbandoned with your reason.",
            "If the effect did happen, the journal will not know of it.",
        ),
    )
}

_QUERY = Verb(
    None,
    "Query status now",
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
    does="Starts the step again when its task runs, with its starts counted anew. It only reads: it changes nothing "
    "outside.",
    wrong="If it ends its process again, the agent's other work stops with it until the step is put aside once more.",
)
_AGAIN_MODEL = replace(
    VERBS["replay"],
    does="Asks the model again when its task runs, with its starts counted anew. It changes nothing outside; it costs "
    "tokens again.",
    wrong="If it ends its process again, the tokens of that call are spent for nothing, and the agent's other work "
    "stops with it until the step is put aside once more.",
)
_NO_KEY = "The provider takes no key, so nothing tells it that this is the same request again."
_NO_EFFECT = replace(VERBS["abandon"], wrong="The task goes on, or fails, without what the step would have brought.")


def verb_of(kind: str, effect: str | None, *, keyed: bool = True, ended: bool = False) -> Verb:
    """The words for a step of this effect; `keyed`: its provider is given the step's key; `ended`: its task is over."""
    if kind == QUERY_STATUS:
        return _QUERY_ENDED if ended else _QUERY
    if effect not in ("read_only", "model"):
        return _unkeyed(VERBS[kind]) if kind == "replay" and not keyed else VERBS[kind]
    again = _AGAIN_MODEL if effect == "model" else _AGAIN_READ
    return {"replay": again, "abandon": _NO_EFFECT}.get(kind, VERBS[kind])


def _unkeyed(replay: Verb) -> Verb:
    return replace(
        replay,
        does=f"{replay.does.replace(_UNDER_KEY, '.')} {_NO_KEY}",
        wrong="If the first dispatch did arrive, the effect happens a second time.",
    )
