"""Stored bytes with their proof: length, recomputed SHA-256, and whether the stored key fits."""

from __future__ import annotations

import json
from dataclasses import dataclass

from agents.access import audit
from agents.access.roles import Person
from dashboard.journal_page import Opened
from dashboard.ui.format import format_count
from journal import ids
from journal.http import frozen_request
from journal.models import FrozenRequest, Step
from journal.reader import payloads as stored_bytes

GATE = 8_000  # characters a page shows at first; the rest behind "show all", above READ behind a download
REQUEST = 16_000_000  # a frozen request's body is read whole up to here: its proof needs every byte
_TOO_LONG = "not computed: longer than a page reads"
READ = 1_000_000  # the reader's cap: longer cells come as a preview


@dataclass(frozen=True, slots=True)
class ShownPayload:
    """One stored text. `shown` is the printed part; it is empty for people who may not see payloads."""

    name: str
    title: str
    bytes: int
    sha256: str
    shown: str
    cut: int
    whole: bool
    note: str = ""

    @property
    def is_handed_out(self) -> bool:
        """Whether a download gives it."""
        return self.bytes <= stored_bytes.MOST_HANDED_OUT

    @property
    def label(self) -> str:
        """Its exact length: a proof does not round."""
        return format_count(self.bytes, "byte")


@dataclass(frozen=True, slots=True)
class Equality:
    """A stored proof beside the one recomputed from the bytes above. `equal` None: it cannot be recomputed."""

    stored: str
    equal: bool | None
    word: str


@dataclass(frozen=True, slots=True)
class SentRequest:
    """The frozen request; headers and body empty for people who may not see payloads."""

    method: str
    host: str
    url: str
    headers: tuple[tuple[str, str], ...]
    refs: tuple[str, ...]
    body: ShownPayload
    proof: Equality

    @property
    def bytes(self) -> int:
        return self.body.bytes


def build_payload(
    name: str, title: str, text: str | None, length: int | None, *, reveal: bool, all_: bool, odd: bool = False
) -> ShownPayload | None:
    """The stored text `name`; None where the journal has none. `odd`: the cell's bytes are not what `text` says."""
    if text is None and not length:
        return None
    raw = encode_text(text or "")
    whole = not odd and (length is None or length <= len(raw))
    limit = READ if all_ else GATE
    shown = (text or "")[:limit] if reveal else ""
    return ShownPayload(
        name=name,
        title=title,
        bytes=len(raw) if whole else length or 0,
        sha256=ids.sha256_hex(raw) if whole else "",
        shown=shown,
        cut=max(0, (len(raw) if whole else length or 0) - len(encode_text(shown))) if reveal else 0,
        whole=whole,
        note="" if whole else "not computed: the cell is not valid text" if odd else _TOO_LONG,
    )


def encode_text(text: str) -> bytes:
    """The bytes a text was read from; bytes that are not UTF-8 come back unchanged."""
    return text.encode("utf-8", "surrogateescape")


def prove_key(step: Step, arguments: ShownPayload | None) -> Equality:
    """The stored key against the one recomputed from task, step and payload."""
    stored = step.idempotency_key or ""
    if not stored:
        return Equality("", None, "the journal holds no key")
    if arguments is None or not arguments.whole or step.arguments_json is None:
        return Equality(stored, None, "checksum not computed: the payload is not here as a whole")
    try:
        made = ids.step_key(step.task_id, step.step_index, step.arguments_json, generation=step.key_generation)
    except UnicodeEncodeError:
        return Equality(stored, None, "checksum not computed: the stored text is not UTF-8")
    return Equality(stored, made == stored, "checksum matches" if made == stored else "checksum DIFFERS")


def prove_payload(step: Step, arguments: ShownPayload | None, request: FrozenRequest | None) -> Equality:
    """The stored payload hash against the bytes: of the frozen request, else of the arguments."""
    stored = step.payload_sha256 or ""
    if not stored:
        return Equality("", None, "the journal holds no payload hash")
    if request is not None and (request.body_bytes or 0) > len(request.body):
        return Equality(stored, None, "checksum not computed: longer than a page reads")
    if request is not None:
        made = frozen_request.digest_request(request.method, request.url, request.headers, request.body, request.refs)
    elif step.transport == "http":
        return Equality(stored, None, "checksum not computed: the frozen request is not here")
    elif arguments is None or not arguments.whole:
        return Equality(stored, None, "checksum not computed: the payload is not here as a whole")
    else:
        made = arguments.sha256
    return Equality(stored, made == stored, "checksum matches" if made == stored else "checksum DIFFERS")


def build_sent_request(request: FrozenRequest, proof: Equality, *, reveal: bool, all_: bool) -> SentRequest:
    """The frozen request as it goes out, credentials by name."""
    text = request.body.decode("utf-8", "surrogateescape")
    body = build_payload("body", "Body", text, request.body_bytes, reveal=reveal, all_=all_)
    return SentRequest(
        method=request.method,
        host=find_url_host(request.url),
        url=request.url if reveal else "",
        headers=tuple(request.headers) if reveal else (),
        refs=tuple(dict.fromkeys(ref[3] for ref in request.refs)),
        body=body or ShownPayload("body", "Body", 0, ids.sha256_hex(b""), "", 0, whole=True),
        proof=proof,
    )


def find_url_host(url: str) -> str:
    """The destination's host of a stored URL; a reference stays a reference."""
    rest = url.partition("://")[2] if "://" in url else url
    return rest.partition("/")[0].partition("?")[0][:200]


def shorten_error(text: str | None) -> str:
    """A JSON object's `message` or its text, for one line; never raises."""
    if not text:
        return ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text[:400]
    if isinstance(value, dict):
        words = [str(value[name]) for name in ("type", "message", "reason") if value.get(name)]
        return ": ".join(words)[:400] or text[:400]
    return str(value)[:400]


def audit_shown_payloads(person: Person, opened: Opened, step: Step, *shown: ShownPayload | SentRequest | None) -> None:
    """Write down who saw which payloads of a step, like a download. Nobody sees what cannot be written down."""
    payloads = [one.body if isinstance(one, SentRequest) else one for one in shown]
    if names := [one.name for one in payloads if one and one.bytes]:
        audit.record_once(
            "payload.view",
            actor=person,
            allowed=True,
            detail=", ".join(names),
            journal=opened.file,
            task_id=step.task_id,
            step_index=step.step_index,
        )
