"""A local model server in OpenAI's chat-completions format with usage. Its scripted answer differs on every call."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass

from agents.demo.ledger import Received
from agents.demo.server import DemoServer, run
from agents.demo.wire import Answer

MODEL = "gpt-5-mini"
_VERBS = ("Fix", "Repair", "Correct", "Mend", "Resolve")
_TONES = ("carefully", "in one small change", "with a test", "without touching callers", "as the report asks")
# Providers cache prompts in blocks of this many tokens.
_CACHE_BLOCK = 128


@dataclass(frozen=True, slots=True)
class ModelUse:
    """One answered call: the tokens its usage stated."""

    call: int
    model: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class ModelServer(DemoServer):
    """POST /v1/chat/completions answers a JSON object with title, branch, path and text about the last message.

    The n-th call of one server always says the same, and no two calls say the same.
    """

    guarded = False
    think_seconds: float = 0.0  # before each answer, as a model does

    def answer(self, received: Received) -> Answer | None:
        match received.method, received.path.split("/")[1:]:
            case "POST", ["v1", "chat", "completions"]:
                return self.faulty("effect", received, lambda: self._complete(received))
            case "GET", ["calls"]:
                calls = self.calls()
                return Answer(200, {"calls": len(calls), "tokens": sum(call.total_tokens for call in calls)})
            case "POST", ["control"]:
                return self.control(received)
        return Answer(404, {"error": {"message": "no such page"}})

    def calls(self) -> list[ModelUse]:
        """Every call answered so far, oldest first: what resuming costs is counted here."""
        return [_use(effect.id, json.loads(effect.body)) for effect in self.effects()]

    def tokens(self) -> int:
        """The tokens of all calls so far."""
        return sum(call.total_tokens for call in self.calls())

    def _complete(self, received: Received) -> Answer:
        try:
            prompt = json.loads(received.body)
            subject = str(prompt["messages"][-1]["content"])
        except (ValueError, KeyError, TypeError, IndexError):
            return Answer(400, {"error": {"message": "messages are missing"}})
        time.sleep(self.think_seconds)
        effect = self.ledger.apply(received)
        use = _use(effect.id, prompt)
        return Answer(
            200,
            {
                "id": f"chatcmpl-demo-{effect.id}",
                "object": "chat.completion",
                "created": int(effect.applied_at.timestamp()),
                "model": use.model,
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": json.dumps(_say(subject, effect.id))},
                    }
                ],
                "usage": {
                    "prompt_tokens": use.prompt_tokens,
                    "completion_tokens": use.completion_tokens,
                    "total_tokens": use.total_tokens,
                    "prompt_tokens_details": {"cached_tokens": use.cached_tokens, "audio_tokens": 0},
                    "completion_tokens_details": {"reasoning_tokens": use.reasoning_tokens, "audio_tokens": 0},
                },
            },
        )


def _say(subject: str, call: int) -> dict[str, str]:
    topic = " ".join(subject.split())[:60]
    verb, tone = _VERBS[call % len(_VERBS)], _TONES[call % len(_TONES)]
    slug = re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-")[:32] or "change"
    return {
        "title": f"{verb} {topic}",
        "branch": f"{slug}-{call}",
        "path": f"notes/{slug}.md",
        "text": f"{verb} {topic} {tone}. (draft {call})",
    }


def _use(call: int, prompt: dict[str, object]) -> ModelUse:
    """About four characters a token; whatever a long prompt begins with counts as cached from the second call on."""
    messages = prompt["messages"]
    assert isinstance(messages, list)
    prompt_tokens = 8 + len(json.dumps(messages)) // 4
    said = len(json.dumps(_say(str(messages[-1]["content"]), call))) // 4
    reasoning = 64 * (1 + call % 3)
    cached = 0 if call == 1 else (prompt_tokens // 2 // _CACHE_BLOCK) * _CACHE_BLOCK
    return ModelUse(call, str(prompt.get("model") or MODEL), prompt_tokens, said + reasoning, cached, reasoning)


if __name__ == "__main__":
    run(ModelServer)
