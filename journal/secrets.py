"""Credentials this process resolved: refused in arguments, hidden in outputs, never on disk."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from journal import codec
from journal.errors import InvalidArguments
from journal.freeze import secrets_of


class Secrets:
    """The values behind every reference any request of this journal named. Grows; never forgets."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.environ = os.environ if environ is None else environ
        self._mutex = threading.Lock()
        self._forms: dict[str, str] = {}

    def learn(self, names: Iterable[str]) -> None:
        """Remember what these variables hold now, in each form a text may carry it."""
        known = [name for name in names if self.environ.get(name)]
        with self._mutex:
            for name, value in secrets_of(known, self.environ):
                for form in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value)):
                    self._forms[form] = name

    def refuse(self, text: str, what: str) -> None:
        """Raise InvalidArguments when the text holds a credential; the message names the variable, not the value."""
        for form, name in self._ordered():
            if form in text:
                raise InvalidArguments(
                    f"{what}: the arguments hold the value of {name}.",
                    path="$",
                    hint=f'Leave it out and use env("{name}") in the Request. Nothing was written.',
                )

    def hide(self, text: str) -> str:
        """The text with every known credential shown as `${NAME}`."""
        for form, name in self._ordered():
            if form in text:
                text = text.replace(form, f"${{{name}}}")
        return text

    def hide_json(self, text: str) -> str:
        """`hide` for a JSON text: the result is JSON again, even where a number spells a credential."""
        if self.hide(text) == text:
            return text
        return codec.dumps(self._hide_value(codec.loads(text)), what="output")

    def _hide_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, list):
            return [self._hide_value(item) for item in value]
        if isinstance(value, dict):
            return {self.hide(name): self._hide_value(item) for name, item in value.items()}
        hidden = self.hide(json.dumps(value))
        return value if hidden == json.dumps(value) else hidden

    def _ordered(self) -> list[tuple[str, str]]:
        with self._mutex:
            return sorted(self._forms.items(), key=lambda pair: -len(pair[0]))
