"""Models as JSON documents: times in their stored form, fields by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from journal import clock
from journal.models import Step, TaskRow


def plain(value: object) -> Any:
    """A model, or anything made of models, as JSON values."""
    if isinstance(value, datetime):
        return clock.text(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    return value


def a_task(task: TaskRow) -> dict[str, Any]:
    """A task; `steps` is for the caller to fill."""
    document: dict[str, Any] = plain(task)
    document["steps"] = []
    return document


def a_step(step: Step) -> dict[str, Any]:
    """A step; where it can never be replayed, `reason` says why."""
    document: dict[str, Any] = plain(step)
    reason = document.pop("replayable_reason")
    if not step.replayable:
        document["reason"] = reason
    return document
