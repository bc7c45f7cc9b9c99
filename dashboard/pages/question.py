"""What a status query asks, as it goes out: method, address with the key in it, headers; credentials by name."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.pages import payload
from journal.models import FrozenRequest, Step
from journal.providers.profile import Profile, StatusQuery
from journal.providers.status_answer import fill_url


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a step's key. `method` is empty where its agent asks the tool's own `status=`."""

    method: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    canary: str = ""  # asked too, where the answer is that there is no effect
    refs: tuple[str, ...] = ()
    origin: str = ""  # the part of the address that a reference stands in, where one does

    @property
    def whom(self) -> str:
        """Who is asked, for a button."""
        return payload.host(self.url) if self.method else "its agent"


def of_step(step: Step, profile: Profile | None, request: FrozenRequest | None) -> Question | None:
    """What would be asked now; None where nobody can be asked."""
    if profile is None or profile.status is None:
        return None
    if request is None or profile.status.by_tool:
        return Question()
    return _over_http(profile.status, request, step.idempotency_key or "")


def _over_http(query: StatusQuery, request: FrozenRequest, key: str) -> Question:
    origin, names = _origin(request)
    headers = [(one.name, one.text + (f"${{{one.env}}}" if one.env else "")) for one in query.headers]
    if not any(name.lower() == "user-agent" for name, _ in headers):
        headers.append(("User-Agent", "stepkeeper"))
    method, _, path = query.visible.partition(" ")
    return Question(
        method=query.method,
        url=fill_url(query.url, origin=origin, key=key),
        headers=tuple(headers),
        canary=f"{method} {fill_url(path.strip(), origin=origin, key=key)}" if query.visible else "",
        # Whoever asks resolves those of the request's own address too, wherever the question goes.
        refs=tuple(dict.fromkeys([*names, *(one.env for one in query.headers if one.env)])),
        origin=origin if names and query.url.startswith("/") else "",
    )


def _origin(request: FrozenRequest) -> tuple[str, tuple[str, ...]]:
    """Scheme, host and port as they are stored, and the references in them; a leading one stands for all three."""
    url, refs = request.url, sorted((ref for ref in request.refs if ref[0] == "url"), key=lambda ref: ref[1])
    if refs and refs[0][1] == 0:
        return url[: refs[0][2]], (refs[0][3],)
    start = url.find("://") + 3
    end = next((place for place in range(start, len(url)) if url[place] in "/?#"), len(url))
    return url[:end], tuple(ref[3] for ref in refs if ref[1] < end)
