"""The decisions offered for a pending step, and why the others are not offered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from journal.models import DecisionKind, Step

if TYPE_CHECKING:
    from journal.providers.profile import Profile
    from journal.reader.snapshot import StepSnapshot

ENDED = ("completed", "failed", "cancelled")
_OF_AN_INTENT: tuple[DecisionKind, ...] = ("replay", "mark_committed", "mark_not_applied", "abandon")
_OF_A_START: tuple[DecisionKind, ...] = ("replay", "abandon")


@dataclass(frozen=True, slots=True)
class Offer:
    """The decisions that work now. `no_replay` and `no_query` say why those two do not; empty where they do."""

    kinds: tuple[DecisionKind, ...] = ()
    no_replay: str = ""
    no_query: str = ""


@dataclass(frozen=True, slots=True)
class StepFacts:
    """The facts that an offer depends on, from the journal or from the index."""

    effect: str
    transport: str
    provider: str
    hold_reason: str
    task_status: str
    asks: bool


def offer_for(place: StepFacts) -> Offer:
    """The decisions that work for a pending step of our own journals. Pure."""
    if place.hold_reason == "diverged" and place.task_status not in ENDED:
        why = "the handler's code asks for another step than the journal holds."
        return Offer(no_replay=f"Nothing to approve: {why}", no_query=f"Nothing to ask: {why}")
    if place.effect == "mutating":
        kinds = _OF_AN_INTENT
    elif place.effect and place.hold_reason:
        kinds = _OF_A_START
    else:
        return Offer(no_query=_no_query(place))
    no_replay = ""
    if place.task_status in ENDED:
        no_replay = f"No replay: its task is {place.task_status}, so nothing of it is sent or started any more."
        kinds = tuple(kind for kind in kinds if kind != "replay")
    elif place.hold_reason == "key_seen_before":
        no_replay = "No replay: the provider knew the key before anything was sent, and would answer with that effect."
        kinds = tuple(kind for kind in kinds if kind not in ("replay", "mark_not_applied"))
    return Offer(kinds, no_replay, _no_query(place))


def offer_for_step(step: Step, found: StepSnapshot) -> Offer:
    """The decisions that work for a step as its journal stands now."""
    return offer_for(
        StepFacts(
            effect=step.effect or "",
            transport=step.transport,
            provider=step.provider or "",
            hold_reason=step.hold_reason or "",
            task_status=found.task.status if found.task else "",
            asks=can_be_asked(read_profile(step, found.profile_json)),
        )
    )


def read_profile(step: Step, profile_json: str | None) -> Profile | None:
    """The profile stored with a step, from its text; None where it cannot be read."""
    from journal.providers.parse import read_stored_profile

    profile, unreadable = read_stored_profile(step.provider, profile_json)
    return None if unreadable else profile


def can_be_asked(profile: Profile | None) -> bool:
    """Whether somebody can be asked about the step's key: a provider, or the tool's own status function."""
    return profile is not None and profile.asks


def _no_query(place: StepFacts) -> str:
    if not place.effect:
        return "Nobody to ask: this journal does not say whether the step changes anything outside."
    if place.effect != "mutating":
        return "Nobody to ask: the step changes nothing outside."
    if place.asks:
        return ""
    if place.transport == "http":
        profile = place.provider or "of its provider"
        return f"Nobody to ask: the profile {profile} has no status query. Look there yourself."
    return "Nobody to ask: the tool has no status= function. Look there yourself."
