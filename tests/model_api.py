"""A model provider on 127.0.0.1 that speaks two APIs, and refuses what the real ones refuse.

Each conversation goes the same way: read a report (and call a tool that does not exist), file an entry, say so.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Call = tuple[str, dict[str, Any]]
_FIRST: list[Call] = [("read_report", {"number": 7}), ("paint_door", {"colour": "red"})]


class ModelApi:
    """The provider. `bodies` are the requests that were answered with 200, oldest first. Use it with `with`.

    `failures` requests are answered with 500 before any other; request number `hold_at` of the rest waits for
    `release`, and `held` says that it has arrived.
    """

    def __init__(self, *, failures: int = 0, hold_at: int = 0) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.failed = 0
        self.refusals: list[str] = []
        self.held = threading.Event()
        self.release = threading.Event()
        self._failures = failures
        self._hold_at = hold_at
        self._mutex = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and JSON of one request."""
        openai = path.endswith("/chat/completions")
        with self._mutex:
            if self.failed < self._failures:
                self.failed += 1
                return 500, {"error": {"message": "overloaded"}}
            missing = _unanswered(body["messages"], openai=openai)
            if missing:
                self.refusals.append(missing)
                return 400, {"error": {"message": missing}}
            self.bodies.append(body)
            number = len(self.bodies)
        if number == self._hold_at:
            self.held.set()
            self.release.wait(30)
        calls, text = _said(body, number, openai=openai)
        return 200, _chat_completion(number, calls, text) if openai else _message(number, calls, text)


def _said(body: dict[str, Any], number: int, *, openai: bool) -> tuple[list[Call], str]:
    turns = sum(message["role"] == "assistant" for message in body["messages"])
    if "tools" not in body or turns == 2:
        return [], f"Answer {number}: done."
    return (_FIRST, "") if turns == 0 else ([("file_entry", {"text": f"Draft {number}: mend the door."})], "")


def _unanswered(messages: list[dict[str, Any]], *, openai: bool) -> str:
    """What a real provider refuses: a tool call whose result does not follow."""
    for place, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        if openai:
            wanted = [call["id"] for call in message.get("tool_calls") or []]
            found = [one.get("tool_call_id") for one in messages[place + 1 : place + 1 + len(wanted)]]
        else:
            wanted = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
            following = messages[place + 1]["content"] if place + 1 < len(messages) else []
            found = [block.get("tool_use_id") for block in following if isinstance(block, dict)]
        if wanted != found:
            return f"message {place}: tool calls {wanted} are followed by results of {found}"
    return ""


def _chat_completion(number: int, calls: list[Call], text: str) -> dict[str, Any]:
    asked = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": None if asked else text, **({"tool_calls": asked} if asked else {})}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5-mini-2025-08-07",
        "choices": [{"index": 0, "finish_reason": "tool_calls" if asked else "stop", "message": message}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59},
    }


def _message(number: int, calls: list[Call], text: str) -> dict[str, Any]:
    asked = [
        {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name, "input": arguments}
        for place, (name, arguments) in enumerate(calls)
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": asked or [{"type": "text", "text": text}],
        "stop_reason": "tool_use" if asked else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 50, "output_tokens": 9, "cache_read_input_tokens": 0},
    }


def _handler(api: ModelApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = api.answer(self.path, body)
            data = json.dumps(answer).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # who asked was killed meanwhile

        def log_message(self, *_: object) -> None:
            pass

    return Handler
