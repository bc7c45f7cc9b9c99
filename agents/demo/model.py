"""The demo agents' model call: one POST in OpenAI's chat-completions format, with urllib alone."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from agents.demo.model_server import MODEL
from journal import Reply

_SYSTEM = """You work through a list of small reports, one at a time, for a team that reads everything you produce.
Answer with one JSON object and nothing else. It has four fields: "title", a headline of at most ten words in the
imperative; "branch", a name of lower-case letters, digits and dashes; "path", the file to be written, below notes/;
"text", two sentences that say what is wrong and what you propose. Name the report by its number. Do not repeat a
report you have already answered, do not promise dates, do not mention people by name, and do not invent numbers.
Where the report leaves something open, say in one clause what you took for granted. Keep to plain words."""


def call_model(question: str) -> Reply:
    """The model's answer as a dict, with its usage."""
    messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": question}]
    request = urllib.request.Request(
        f"{os.environ['DEMO_MODEL_URL']}/v1/chat/completions",
        data=json.dumps({"model": MODEL, "messages": messages}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        answer: dict[str, Any] = json.load(response)
    content = json.loads(answer["choices"][0]["message"]["content"])
    return Reply(content, usage=answer["usage"], model=answer["model"], response_id=answer["id"])
