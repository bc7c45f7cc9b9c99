"""A provider's promises as one value: where the key goes, how long it is kept, how to check the status."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from journal.models import Answer
from journal.providers.duration import FOREVER

__all__ = ["FOREVER", "Profile", "RateLimit", "Rule", "StatusHeader", "StatusQuery"]

Absence = Literal["never", "eventual", "authoritative"]

# The values of a profile that does not say otherwise.
TIMEOUT = timedelta(seconds=30)
HORIZON = timedelta(minutes=15)
MAX_ATTEMPTS = 6
MAX_AGE = timedelta(hours=24)
# The answers of a gateway that gave up while the provider may go on.
AMBIGUOUS = (502, 503, 504, *range(520, 530))
# Where a provider asks to wait longer than this, a person decides.
RATE_LIMIT_CAP = timedelta(minutes=15)
LAG = timedelta(seconds=60)
PROBES = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of `status.interpret`: these HTTP statuses (and this value at this path) mean this answer."""

    statuses: tuple[int, ...]
    answer: Answer
    path: str = ""
    values: tuple[str | int | bool | None, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusHeader:
    """A header of the status query: literal text, or `prefix` and the value of an environment variable."""

    name: str
    text: str = ""
    env: str = ""


@dataclass(frozen=True, slots=True)
class StatusQuery:
    """The status check of a provider. `by_tool`: a Python function of the tool makes it."""

    method: str = ""
    url: str = ""
    headers: tuple[StatusHeader, ...] = ()
    rules: tuple[Rule, ...] = ()
    kind: str = "by_key"
    absence: Absence = "never"
    lag: timedelta = LAG
    probes: int = PROBES
    output: str = ""
    visible: str = ""

    @property
    def by_tool(self) -> bool:
        return self.kind == "tool"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The statuses that limit, whether the limit comes before execution, and the longest wait that is obeyed."""

    statuses: tuple[int, ...] = (429,)
    pre_execution: bool = False
    cap: timedelta = RATE_LIMIT_CAP


@dataclass(frozen=True, slots=True)
class Profile:
    """A provider's profile. Each default is the strict one, so a short profile leaves more to a person.

    `window` is how long a machine may replay after the first dispatch, margin already taken off; None = never.
    `canonical` is the table it was made from, as canonical JSON: what is stored with each intent.
    """

    name: str
    version: str
    canonical: str
    key_placement: Literal["header", "none", "argument"] = "none"
    key_name: str = ""
    key_quote: Literal["none", "sf_string"] = "none"
    window: timedelta | None = None
    marker: tuple[str, str] | None = None
    marker_promised: bool = False
    status: StatusQuery | None = None
    on_absent: Literal["hold", "redispatch"] = "hold"
    duplicate_cost: str = "money"
    horizon: timedelta = HORIZON
    timeout: timedelta = TIMEOUT
    max_attempts: int = MAX_ATTEMPTS
    max_age: timedelta = MAX_AGE
    ambiguous: tuple[int, ...] = AMBIGUOUS
    rate_limit: RateLimit = RateLimit()
    adopt: str = ""

    @property
    def keyed(self) -> bool:
        """Whether the target takes the key. `window` says for how long that counts."""
        return self.key_placement != "none"

    @property
    def asks(self) -> bool:
        """Whether the status can be checked by the key."""
        return self.status is not None

    @property
    def references(self) -> tuple[str, ...]:
        """The names of the environment variables its status query needs."""
        return tuple(header.env for header in self.status.headers if header.env) if self.status is not None else ()

    def key_text(self, key: str) -> str:
        """The key as the header holds it. To a provider, a quoted key and a raw one are different keys."""
        return f'"{key}"' if self.key_quote == "sf_string" else key
