"""The credentials that this process resolved. They are refused in arguments, hidden in outputs, and never on disk."""

from __future__ import annotations

import json
import os
import re
import threading
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from journal import codec
from journal.errors import InvalidArguments
from journal.request import ref_in, split_refs

# Shorter values stand in ordinary text by chance; replacing them would only destroy an output.
_SHORTEST = 6

_PACKAGE = f"{Path(__file__).parent.parent}{os.sep}"


class Secrets:
    """The values of every reference that a request of this journal named. It forgets none."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.environ = os.environ if environ is None else environ
        self._mutex = threading.Lock()
        self._forms: dict[str, str] = {}

    def learn(self, names: Iterable[str]) -> None:
        """Remember what these variables hold now, in each form a text may carry it."""
        with self._mutex:
            for name in names:
                value = self.environ.get(name, "")
                if len(value) >= _SHORTEST:
                    self._forms.update(dict.fromkeys(_forms(value), name))

    def refuse(self, text: str, what: str) -> None:
        """Raise InvalidArguments when the text holds a credential; the message names the variable, not the value."""
        name = self.name_in(text)
        if name is not None:
            held = f'env("{name}") as text' if ref_in(text) == name else f"the value of {name}"
            raise InvalidArguments(
                f"{self.hide(what)}: the arguments hold {held}.",
                path="$",
                hint=f'Leave it out and use env("{name}") in the Request. Nothing was written.',
            )

    def name_in(self, text: str) -> str | None:
        """The variable whose value the text holds, or a reference to it that only this process understands."""
        return next((name for form, name in self._ordered() if form in text), None) or ref_in(text)

    def hide(self, text: str) -> str:
        """The text with every known credential, and every reference to one, shown as `${NAME}`."""
        if ref_in(text) is not None:
            text, _ = split_refs(text)
        for form, name in self._ordered():
            if form in text:
                text = text.replace(form, f"${{{name}}}")
        return text

    def hide_json(self, text: str) -> str:
        """`hide` for a JSON text: the result is JSON again, even where a number spells a credential."""
        if self.hide(text) == text:
            return text
        return codec.dumps(self.hide_value(codec.loads(text)), what="output")

    def hide_value(self, value: Any) -> Any:
        """`hide` for a JSON value, names and numbers included."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, list):
            return [self.hide_value(item) for item in value]
        if isinstance(value, dict):
            return {self.hide(name): self.hide_value(item) for name, item in value.items()}
        hidden = self.hide(json.dumps(value))
        return value if hidden == json.dumps(value) else hidden

    def stored(self, value: object) -> tuple[str, bool]:
        """An output's text as it may reach the disk, and whether it is complete. Never raises for the value."""
        text, complete = codec.dumps_output(value, hide=self.hide)
        return self.hide_json(text), complete

    def traceback(self, error: BaseException) -> str:
        """The error's traceback as a log may show it."""
        return self.hide("".join(traceback.format_exception(error)))

    def cause(self, error: BaseException) -> BaseException | None:
        """The error, to be chained to another one; None where its traceback would show a credential."""
        first = error.__traceback__
        while first is not None and first.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            first = first.tb_next
        if first is not None:
            # What a person reads begins with their own code, not with the runtime's.
            error = error.with_traceback(first)
        shown = "".join(traceback.format_exception(error))
        return error if self.hide(shown) == shown else None

    def _ordered(self) -> list[tuple[str, str]]:
        # The longest value first: a shorter one that is part of it would leave the rest.
        with self._mutex:
            return sorted(self._forms.items(), key=lambda pair: -len(pair[0]))


def _forms(value: str) -> list[str]:
    """The forms of the value in a text: as it is, or escaped by JSON, by Python's `repr`, by UTF-8 or in a URL."""
    escaped = codec.escaped(value)
    quoted = [quote(escaped), quote(escaped, safe=""), quote_plus(escaped)]
    return [
        value,
        escaped,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        *quoted,
        *(re.sub("%..", lambda found: found[0].lower(), text) for text in quoted),
    ]
