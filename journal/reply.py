"""What a model call returns to the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer: `content` as the handler uses it, `usage` as the provider reported it (raw).

    `calls` are the tool calls the model asks for, for `Task.act`: mappings with `name` (or `tool`) and `arguments`
    (an object, or JSON text of one). `model` and `service_tier` are the response's own, `request_model` what was
    asked for. On resume the same Reply comes from the journal and costs nothing.
    """

    content: Any
    usage: Any = None
    model: str | None = None
    response_id: str | None = None
    calls: Sequence[Any] = ()
    request_model: str | None = None
    service_tier: str | None = None
