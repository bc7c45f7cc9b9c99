"""`Request`: the return value of an HTTP tool, with references in the place of credentials."""

from __future__ import annotations

import json as _json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import AnyStr, Final

from journal.errors import InvalidArguments, UsageError

# A reference is told from ordinary text by this nonce: text that comes from a model can never become one.
_NONCE: Final = os.urandom(16).hex()
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Only characters that JSON and URL quoting leave alone.
_PLACEHOLDER: Final = re.compile(rf"ref\.{_NONCE}\.([A-Za-z_][A-Za-z0-9_]*)\.end")
_PLACEHOLDER_BYTES: Final = re.compile(_PLACEHOLDER.pattern.encode())
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# The transport writes these from the frozen bytes; a second source would let two attempts differ.
_TRANSPORT_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "te", "upgrade"})


class _Unset:
    def __repr__(self) -> str:
        return "not given"


_UNSET: Final = _Unset()

Span = tuple[int, int, str]


class Ref:
    """The value of an environment variable, by name: resolved when a request is sent, never journaled.

    Formats (f-string, `str`, `+`, inside `json=`) into a placeholder that only this process understands.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(f"env({name!r}): not the name of an environment variable.", hint="Use letters, digits, _.")
        self.name = name

    def __str__(self) -> str:
        return f"ref.{_NONCE}.{self.name}.end"

    def __format__(self, spec: str) -> str:
        if spec:
            raise UsageError(f"env({self.name!r}): a reference takes no format {spec!r}.", hint="Use it as it is.")
        return str(self)

    def __add__(self, other: object) -> str:
        return str(self) + str(other) if isinstance(other, str | Ref) else NotImplemented

    def __radd__(self, other: object) -> str:
        return other + str(self) if isinstance(other, str) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and other.name == self.name

    def __hash__(self) -> int:
        return hash(("Ref", self.name))

    def __repr__(self) -> str:
        return f"env({self.name!r})"


def env(name: str) -> Ref:
    """A reference to the environment variable `name`. Raises UsageError for what cannot be such a name."""
    return Ref(name)


def ref_in(text: str) -> str | None:
    """The variable of the first reference that the text holds, if any."""
    found = _PLACEHOLDER.search(text) if _NONCE in text else None
    return None if found is None else found[1]


def split_refs(text: str) -> tuple[str, list[Span]]:
    """The text with each reference shown as `${NAME}`, and where they stand: (start, end, name) in characters."""
    return _split(text, _PLACEHOLDER, "${%s}")


def split_refs_bytes(body: bytes) -> tuple[bytes, list[Span]]:
    """`split_refs` for a body: start and end count bytes."""
    return _split(body, _PLACEHOLDER_BYTES, b"${%s}")


def _split(text: AnyStr, pattern: re.Pattern[AnyStr], shown: AnyStr) -> tuple[AnyStr, list[Span]]:
    clean = text[:0]
    spans: list[Span] = []
    end = 0
    for match in pattern.finditer(text):
        clean += text[end : match.start()]
        start = len(clean)
        clean += shown % match.group(1)
        name = match.group(1)
        spans.append((start, len(clean), name if isinstance(name, str) else name.decode("ascii")))
        end = match.end()
    return clean + text[end:], spans


@dataclass(frozen=True, slots=True, init=False)
class Request:
    """One HTTP request, made by a tool from its arguments alone; `env()` may stand in its URL, headers and body.

    `json` becomes compact UTF-8 JSON once, here; `data` is sent as it is (text as UTF-8). Give one of them or neither.
    Raises InvalidArguments for what could not be sent twice alike: see `docs/guides/providers.md`.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_json: bool

    def __init__(
        self,
        method: str,
        url: str | Ref,
        *,
        headers: Mapping[str, str | Ref] | None = None,
        json: object = _UNSET,
        data: bytes | str | None = None,
        content_type: str | None = None,
    ) -> None:
        is_json = json is not _UNSET
        try:
            if is_json and data is not None:
                raise UsageError("Request: both json and data were given.", hint="Give the body once.")
            body = _json_body(json) if is_json else data.encode() if isinstance(data, str) else bytes(data or b"")
            object.__setattr__(self, "method", _method(method))
            object.__setattr__(self, "url", check_url(str(url)))
            object.__setattr__(self, "headers", _headers(headers or {}, content_type, is_json))
        except UsageError as error:
            # A tool makes its request of its arguments alone: what cannot be sent was in them.
            raise InvalidArguments(error.message, path="$", hint=error.hint) from error.__cause__
        object.__setattr__(self, "body", body)
        object.__setattr__(self, "is_json", is_json)


def _method(method: str) -> str:
    if method.upper() not in _METHODS:
        raise UsageError(f"Request method {method!r}: not supported.", hint=f"Use one of {', '.join(_METHODS)}.")
    return method.upper()


def check_url(url: str) -> str:
    """The URL as it was given, if it can be sent byte for byte. Raises UsageError; a leading reference passes."""
    clean, spans = split_refs(url)
    if any(not 0x20 < ord(character) < 0x7F for character in clean):
        raise UsageError(
            f"Request URL {clean!r}: holds blanks, control or non-ASCII characters.",
            hint="Percent-encode it, for example with urllib.parse.quote.",
        )
    if spans and spans[0][0] == 0:
        return url
    scheme, mark, rest = clean.partition("://")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if not mark or scheme.lower() not in ("http", "https") or not host:
        raise UsageError(f"Request URL {clean!r}: not an absolute http or https URL.", hint="Write https://host/path.")
    if "@" in host:
        raise UsageError("Request URL: holds credentials.", hint='Send them as a header with env("NAME").')
    if "#" in rest:
        raise UsageError(f"Request URL {clean!r}: has a fragment, which is never sent.", hint="Leave the # part out.")
    return url


def _json_body(value: object) -> bytes:
    try:
        text = _json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_reference)
        return text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"Request json: cannot be written as JSON: {error}.", hint="Use plain JSON values.") from error


def _reference(value: object) -> str:
    if isinstance(value, Ref):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _headers(given: Mapping[str, str | Ref], content_type: str | None, is_json: bool) -> tuple[tuple[str, str], ...]:
    headers = [(check_header_name(name), check_header_value(name, str(value))) for name, value in given.items()]
    names = [name.lower() for name, _ in headers]
    if len(set(names)) != len(names):
        raise UsageError("Request headers: one name was given twice.", hint="Names differ by more than upper case.")
    if "content-type" in names:
        if content_type is not None:
            raise UsageError("Request: content_type and a Content-Type header were given.", hint="Give one of them.")
    elif content_type is not None or is_json:
        headers.append(("Content-Type", check_header_value("Content-Type", content_type or "application/json")))
    return tuple(headers)


def check_header_name(name: str) -> str:
    """The name, if it is a header of the sender's own. Raises UsageError."""
    if not _HEADER_NAME.fullmatch(name):
        raise UsageError(f"Request header {name!r}: not a header name.", hint="Use letters, digits and -.")
    if name.lower() in _TRANSPORT_HEADERS:
        raise UsageError(f"Request header {name!r}: written by the transport.", hint="Leave it out.")
    return name


def check_header_value(name: str, value: str) -> str:
    """The value, if it is one line that can be sent. Raises UsageError, without showing the value."""
    if any(character != "\t" and (ord(character) < 0x20 or ord(character) == 0x7F) for character in value):
        raise UsageError(f"Request header {name!r}: its value holds a control character.", hint="Use one line.")
    if any(ord(character) > 0xFF for character in value):
        raise UsageError(f"Request header {name!r}: its value is not Latin-1.", hint="Encode it first.")
    if value != value.strip():
        raise UsageError(f"Request header {name!r}: its value begins or ends with a blank.", hint="Strip it.")
    return value
