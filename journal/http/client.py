"""The HTTP client: it sends frozen requests and status checks, and is the only module that touches the network.

One fresh connection per exchange, HTTP/1.1, no redirects, no retries, no proxy of the environment, TLS always verified.
"""

from __future__ import annotations

import functools
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from journal import clock
from journal.errors import UsageError
from journal.http.frozen_request import (
    Resolved,
    list_references,
    require_values,
    resolve_origin,
    resolve_request,
)
from journal.http.secrets import Secrets
from journal.models import FrozenRequest
from journal.providers.classify import Outcome, classify
from journal.providers.profile import Profile, StatusQuery
from journal.providers.status_answer import StatusAnswer, fill_url, interpret_answer

if TYPE_CHECKING:
    import ssl

# An answer longer than this is cut: the effect is still certain, its output incomplete.
MAX_BODY = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its result: a status, or a failure word of `classify`."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str | None = None
    detail: str = ""
    truncated: bool = False


def send_request(
    frozen: FrozenRequest,
    *,
    profile: Profile,
    redispatch: bool,
    guard: Callable[[], str | None],
    secrets: Secrets,
    reads: bool = False,
) -> Outcome:
    """Dispatch the frozen bytes once and say what that proves. It blocks for the profile's timeout at most.

    `guard` is called when the connection stands, right before the first byte: a reason it returns stops the dispatch
    as not sent. Raises MissingReference before anything is opened. What is resolved here, `secrets` learns and hides.
    """
    resolved = resolve_request(frozen, secrets.environ)
    secrets.learn(list_references(frozen))
    exchange = _exchange(resolved, timeout=profile.timeout, guard=guard)
    outcome = classify(
        profile=profile,
        status=exchange.status,
        headers=exchange.headers,
        body=exchange.body,
        failure=exchange.failure,
        redispatch=redispatch,
        now=clock.moment(),
        detail=exchange.detail,
        truncated=exchange.truncated,
        reads=reads,
        hide=secrets.hide,
    )
    return replace(outcome, detail=secrets.hide(outcome.detail))


def ask_status(frozen: FrozenRequest, *, profile: Profile, key: str, secrets: Secrets) -> StatusAnswer:
    """Ask the profile's status query about the key; no answer at all is `unknown`.

    Raises MissingReference if this process lacks a credential of the query or of the intent's origin, or has another
    origin than the intent went to. Raises UsageError for a profile without an HTTP status check. `secrets` learns and
    hides the values that are resolved here.
    """
    query = profile.status
    if query is None or query.by_tool:
        raise UsageError(f"Profile {profile.name}: has no status query over HTTP.", hint="Ask the tool's own status=.")
    origin, names = resolve_origin(frozen, secrets.environ)
    names += profile.references
    require_values(names, secrets.environ)
    secrets.learn((*list_references(frozen), *names))
    answer = _answer(profile, query, origin=origin, key=key, secrets=secrets)
    return replace(answer, detail=secrets.hide(answer.detail))


def _answer(profile: Profile, query: StatusQuery, *, origin: str, key: str, secrets: Secrets) -> StatusAnswer:
    asked = _question(profile, query, query.method, query.url, origin=origin, key=key, environ=secrets.environ)
    if asked.failure is not None or asked.status is None:
        return StatusAnswer("unknown", None, f"No answer ({asked.failure}): {asked.detail}")
    answer = interpret_answer(
        profile,
        status=asked.status,
        headers=asked.headers,
        body=asked.body,
        key=key,
        truncated=asked.truncated,
        hide=secrets.hide,
    )
    if answer.answer != "absent" or not query.visible:
        return answer
    # "Not found" counts only where the canary is visible: a hidden container answers the same.
    method, _, url = query.visible.partition(" ")
    canary = _question(profile, query, method, url.strip(), origin=origin, key=key, environ=secrets.environ)
    if canary.failure is None and canary.status is not None and 200 <= canary.status < 300:
        return answer
    said = f"absent, but the canary {query.visible} is not visible"
    return StatusAnswer("unknown", canary.status, f"{said}: {canary.detail}" if canary.detail else said)


def _question(
    profile: Profile, query: StatusQuery, method: str, url: str, *, origin: str, key: str, environ: Mapping[str, str]
) -> Exchange:
    headers = [(one.name, one.text + environ[one.env] if one.env else one.text) for one in query.headers]
    if not any(name.lower() == "user-agent" for name, _ in headers):
        headers.append(("User-Agent", "stepkeeper"))
    asked = Resolved(method, fill_url(url, origin=origin, key=key), tuple(headers), b"")
    return _exchange(asked, timeout=profile.timeout, guard=lambda: None)


class _Stale(Exception):
    """The guard stopped the dispatch before its first byte."""


class _Progress:
    """How far an exchange came, reported by the transport. It decides between not sent and unknown."""

    def __init__(self, deadline: Deadline, guard: Callable[[], str | None]) -> None:
        self.stage = "connecting"  # then "sending", "sent"
        self._deadline = deadline
        self._guard = guard

    def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self._deadline.watch(info["return_value"].get_extra_info("socket"))
        elif event == "http11.send_request_headers.started":
            reason = "the total time was used up before the request was written" if self._deadline.expired else None
            if reason := reason or self._guard():
                raise _Stale(reason)
            self.stage = "sending"
        elif event == "http11.send_request_headers.complete":
            self.stage = "sent"


def _exchange(request: Resolved, *, timeout: timedelta, guard: Callable[[], str | None]) -> Exchange:
    try:
        deadline = Deadline(timeout)
    except RuntimeError as error:  # no thread is left for it: there will be one again
        return Exchange(failure="not_connected", detail=str(error))
    progress = _Progress(deadline, guard)
    try:
        return _transfer(request, timeout, progress)
    except _Stale as error:
        return Exchange(failure="stale", detail=str(error))
    except Exception as error:  # for any error the stage says whether bytes may have left
        late = f"no complete answer within {timeout.total_seconds():g} s" if deadline.expired else ""
        words = late or f"{type(error).__name__}: {error}".rstrip(": ")
        return Exchange(failure=_failure(error, progress.stage), detail=words)
    finally:
        deadline.stop()


def _transfer(request: Resolved, timeout: timedelta, progress: _Progress) -> Exchange:
    import httpx2

    url = httpx2.URL(request.url)
    outgoing = httpx2.Request(
        request.method,
        url,
        headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers],
        content=request.body,
        extensions={
            "timeout": httpx2.Timeout(timeout.total_seconds()).as_dict(),
            "trace": progress,
            "target": _target(request.url),  # the frozen text, not the library's idea of it
        },
    )
    transport = httpx2.HTTPTransport(
        verify=_trust(url.scheme == "https"), trust_env=False, http1=True, http2=False, retries=0
    )
    # A client would follow redirects, decode the body, log, and add headers of its own. The transport does not.
    with transport:
        response = transport.handle_request(outgoing)
        try:
            body, truncated = _read(response)
        finally:
            response.close()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Exchange(response.status_code, headers, body, truncated=truncated)


def _read(response: Any) -> tuple[bytes, bool]:
    body = bytearray()
    for part in response.iter_bytes():
        body += part
        if len(body) > MAX_BODY:
            return bytes(body[:MAX_BODY]), True
    return bytes(body), False


def _target(url: str) -> bytes:
    rest = url.partition("://")[2]
    target = rest[next((number for number, character in enumerate(rest) if character in "/?"), len(rest)) :]
    return (target if target.startswith("/") else f"/{target}").encode("ascii")


@functools.cache
def _trust(https: bool) -> ssl.SSLContext:
    import ssl

    import httpx2

    # Plain HTTP gets a context without certificates: reading the certificate store costs more than the request.
    return httpx2.create_ssl_context(trust_env=False) if https else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _failure(error: BaseException, stage: str) -> str:
    import ssl

    import httpx2

    if stage == "sent":
        return "lost_answer"
    if stage == "sending":
        # The library refused the request and wrote none of it.
        return "local" if isinstance(error, httpx2.LocalProtocolError) else "lost_answer"
    causes = list(_chain(error))
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "dns"
    if any(isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError) for cause in causes):
        return "tls"
    return "not_connected" if isinstance(error, httpx2.NetworkError | httpx2.TimeoutException) else "local"


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


class Deadline:
    """Ends an exchange when its time is up, however slowly the other side drips.

    It holds a duplicate of the socket, so that no reused descriptor is hit.
    """

    def __init__(self, timeout: timedelta) -> None:
        self._until = time.monotonic() + timeout.total_seconds()
        self._mutex = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(timeout.total_seconds(), self._expire)
        self._timer.daemon = True
        self._timer.start()

    @property
    def expired(self) -> bool:
        # By the clock: on a busy machine the timer's thread may be late.
        return time.monotonic() >= self._until

    def watch(self, connection: socket.socket) -> None:
        with self._mutex:
            self._socket = connection.dup()
            if self.expired:
                self._shut(self._socket)

    def stop(self) -> None:
        self._timer.cancel()
        with self._mutex:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    def _expire(self) -> None:
        with self._mutex:
            if self._socket is not None:
                self._shut(self._socket)

    @staticmethod
    def _shut(connection: socket.socket) -> None:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other side was faster
