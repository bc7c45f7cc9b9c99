"""Frozen requests: the bytes that every attempt sends. Credentials are put in when the request is sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from journal import codec
from journal.errors import InvalidArguments, TaskStop, UsageError
from journal.models import FrozenRequest
from journal.providers.profile import Profile
from journal.request import (
    Request,
    check_header_value,
    check_url,
    split_refs,
    split_refs_bytes,
)

# Frozen with the request, so that an upgrade between two attempts changes no byte.
_USER_AGENT = "stepkeeper"

# 12 bits show 4095 of 4096 changes. They do not help to guess a secret value: one value of 4096 has the same mark.
_MARK_CHARACTERS = 3

Ref = tuple[str, int, int, str, str, str]


class MissingReference(TaskStop):
    """This process lacks a credential that the request names, so nothing was sent."""

    hold_reason = "missing_reference"

    def __init__(self, message: str, *, names: tuple[str, ...], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.names = names


class ChangedReference(MissingReference):
    """A variable in the address or body no longer has the value of the newest attempt, so nothing was sent."""

    hold_reason = "reference_changed"


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request with its credentials in place. Never stored, never shown: `repr` leaves the values out."""

    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)


def freeze_request(request: Request, *, profile: Profile, key: str, environ: Mapping[str, str]) -> FrozenRequest:
    """The request as it will be sent, key header included; the same input gives the same bytes.

    Raises InvalidArguments where the request already carries the profile's key header.
    """
    headers = list(request.headers)
    names = {name.lower() for name, _ in headers}
    if profile.key_placement == "header":
        if profile.key_name.lower() in names:
            raise InvalidArguments(
                f"Request header {profile.key_name!r}: belongs to the profile {profile.name!r}.",
                path="$",
                hint="Leave it out; the journal puts the key there.",
            )
        headers.append((profile.key_name, profile.key_text(key)))
    if "user-agent" not in names:
        headers.append(("User-Agent", _USER_AGENT))
    url, url_spans = split_refs(request.url)
    body, body_spans = split_refs_bytes(request.body)
    refs: list[Ref] = [("url", *span, "raw", _mark(span[2], environ)) for span in url_spans]
    texts = []
    for number, (name, value) in enumerate(headers):
        text, spans = split_refs(value)
        texts.append((name, text))
        refs += [(f"header:{number}", *span, "raw", "") for span in spans]
    quoting = "json" if request.is_json else "raw"
    refs += [("body", *span, quoting, _mark(span[2], environ)) for span in body_spans]
    parts = (request.method, url, tuple(texts), body, tuple(refs))
    return FrozenRequest(*parts, sha256=digest_request(*parts))


def digest_request(method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes, refs: Iterable[Ref]) -> str:
    """The payload's SHA-256 in hex: over everything an attempt sends, credentials by name."""
    # References in headers have no mark, so their hash has none.
    head = json.dumps([method, url, [list(pair) for pair in headers], [ref if ref[5] else ref[:5] for ref in refs]])
    return hashlib.sha256(head.encode() + b"\n" + body).hexdigest()


def list_references(frozen: FrozenRequest) -> tuple[str, ...]:
    """The names of the environment variables the request needs, each once."""
    return tuple(dict.fromkeys(ref[3] for ref in frozen.refs))


def new_marks(frozen: FrozenRequest, environ: Mapping[str, str]) -> dict[str, str]:
    """The new marks of the variables in address and body whose values no longer fit the marks of the request."""
    return _new_marks(frozen.refs, environ)


def as_sent(frozen: FrozenRequest, marks: Mapping[str, str] | None) -> FrozenRequest:
    """The request marked with what an attempt was sent with: `marks` where those are new, else as it was made.

    Without any attempt that may have arrived, `marks` is None: then no value is another than an earlier one.
    """
    if marks is None:
        return replace(frozen, refs=tuple((*ref[:5], "") for ref in frozen.refs))
    return replace(frozen, refs=tuple((*ref[:5], ref[5] and marks.get(ref[3], ref[5])) for ref in frozen.refs))


def require_unchanged(frozen: FrozenRequest, environ: Mapping[str, str]) -> None:
    """Raise ChangedReference if a replay would have another address or body than the request `as_sent`.

    Credentials in headers may change: they are no part of the proof.
    """
    _require_same(frozen.refs, environ)


def _require_same(refs: Iterable[Ref], environ: Mapping[str, str]) -> None:
    changed = _new_marks(refs, environ)
    if changed:
        raise ChangedReference(
            f"Environment variable {', '.join(changed)}: its value has changed since this request was last sent.",
            names=tuple(changed),
            hint="Give it the earlier value and start the agent again, or look at the provider and decide.",
        )


def _new_marks(refs: Iterable[Ref], environ: Mapping[str, str]) -> dict[str, str]:
    return {ref[3]: mark for ref in refs if ref[5] and ref[5] != (mark := _mark(ref[3], environ))}


def _mark(name: str, environ: Mapping[str, str]) -> str:
    # Every request gets the same mark for one value, so that the marks of many requests reveal no further bits.
    text = f"{name}\n{codec.escaped(environ.get(name, ''))}"
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK_CHARACTERS]


def resolve_request(frozen: FrozenRequest, environ: Mapping[str, str]) -> Resolved:
    """The request with each reference replaced by its value.

    Raises MissingReference naming every variable that is not set, is empty, or does not fit where it stands.
    """
    require_values(list_references(frozen), environ)
    url = _fill(frozen.url, _of(frozen, "url"), environ)
    headers = tuple(
        (name, _fill(text, _of(frozen, f"header:{number}"), environ))
        for number, (name, text) in enumerate(frozen.headers)
    )
    body = _fill_body(frozen.body, _of(frozen, "body"), environ)
    try:
        check_url(url)
        for name, value in headers:
            check_header_value(name, value)
    except UsageError as error:
        # The cause shows the value, so it is not chained.
        names = list_references(frozen)
        raise MissingReference(
            f"References {', '.join(names)}: a value does not fit where the request uses it.",
            names=names,
            hint="Correct the environment variable and start the agent again.",
        ) from (None if names else error)
    return Resolved(frozen.method, url, headers, body)


def resolve_origin(frozen: FrozenRequest, environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The scheme, host and port of the intent's address, and the references in that part of it.

    Raises MissingReference, and ChangedReference where that is no longer where it went.
    """
    url, refs = frozen.url, sorted(ref for ref in frozen.refs if ref[0] == "url")
    start = url.find("://") + 3
    end = next((place for place in range(start, len(url)) if url[place] in "/?#"), len(url))
    if refs and refs[0][1] == 0:
        start, end = 0, refs[0][2]
    inside = [ref for ref in refs if ref[1] < end]
    names = tuple(ref[3] for ref in inside)
    require_values(names, environ)
    _require_same(inside, environ)
    text = url[:end]
    for _, first, last, name, *_ in reversed(inside):
        text = text[:first] + environ[name] + text[last:]
    scheme, _, rest = text.partition("://")
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    return f"{scheme}://{rest}", names


def require_values(names: Iterable[str], environ: Mapping[str, str]) -> None:
    """Raise MissingReference unless every name has a value."""
    missing = tuple(name for name in names if not environ.get(name))
    if missing:
        raise MissingReference(
            f"Environment variable {', '.join(missing)}: not set in this process.",
            names=missing,
            hint="Set it where the agent is started, then start it again.",
        )


def _of(frozen: FrozenRequest, part: str) -> list[Ref]:
    return sorted((ref for ref in frozen.refs if ref[0] == part), key=lambda ref: -ref[1])


def _fill(text: str, refs: list[Ref], environ: Mapping[str, str]) -> str:
    for _, start, end, name, *_ in refs:
        text = text[:start] + environ[name] + text[end:]
    return text


def _fill_body(body: bytes, refs: list[Ref], environ: Mapping[str, str]) -> bytes:
    for _, start, end, name, quoting, _ in refs:
        value = json.dumps(environ[name], ensure_ascii=False)[1:-1] if quoting == "json" else environ[name]
        body = body[:start] + value.encode("utf-8", "surrogateescape") + body[end:]
    return body
