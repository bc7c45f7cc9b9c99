"""Every environment variable of the dashboard in one table: name, default, meaning, what is accepted."""

from __future__ import annotations

import difflib
import os
import re
import zoneinfo
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from django.core.exceptions import ImproperlyConfigured

T_co = TypeVar("T_co", covariant=True)

CHECKOUT = Path(__file__).resolve().parent.parent
PREFIX = "STEPKEEPER_"

_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]*[a-z0-9])?|\[[0-9a-f:.]+\]")


@dataclass(frozen=True, slots=True)
class Setting(Generic[T_co]):
    """One variable. `parse` turns its text into a value and raises ValueError naming the accepted ones."""

    name: str
    default: str
    meaning: str
    parse: Callable[[str], T_co]

    def read(self, environ: Mapping[str, str] | None = None) -> T_co:
        """The variable's value; an unset or empty one has its default. Raises ImproperlyConfigured."""
        text = (os.environ if environ is None else environ).get(self.name, "").strip() or self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise ImproperlyConfigured(f"{self.name} is {text!r}: {error}.") from None


def parse_whole_number(lowest: int, highest: int) -> Callable[[str], int]:
    """A parser of whole numbers from `lowest` to `highest`, both included."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not lowest <= int(text) <= highest:
            raise ValueError(f"accepted is a whole number from {lowest} to {highest}")
        return int(text)

    return parse


def parse_switch(text: str) -> bool:
    """On or off, in the words people use for it."""
    if text.lower() in {"1", "true", "yes", "on"}:
        return True
    if text.lower() in {"0", "false", "no", "off"}:
        return False
    raise ValueError("accepted are 1, true, yes, on and 0, false, no, off")


def parse_folder(text: str) -> Path:
    """A folder's absolute path; relative ones count from where the program was started."""
    path = Path(text).expanduser().absolute()
    if path.exists() and not path.is_dir():
        raise ValueError("accepted is a folder; this is a file")
    return path


def parse_globs(text: str) -> tuple[str, ...]:
    """Path patterns separated by `:`, made absolute."""
    return tuple(os.path.abspath(os.path.expanduser(part)) for part in text.split(":") if part.strip())


def parse_hosts(text: str) -> tuple[str, ...]:
    """Exact host names separated by commas, lower case, without ports."""
    names = tuple(name.strip().lower() for name in text.split(",") if name.strip())
    for name in names:
        if not _HOST.fullmatch(name):
            raise ValueError(
                f"{name!r} is no exact host; accepted are names like localhost, desk.example.org, 127.0.0.1 or [::1], "
                "separated by commas, without port and without *"
            )
    if not names:
        raise ValueError("accepted is at least one exact host")
    return names


def parse_time_zone(text: str) -> str:
    """The name of a time zone this machine knows."""
    try:
        zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("accepted are names like UTC, Europe/Berlin, America/New_York") from None
    return text


DATA = Setting(
    "STEPKEEPER_DATA",
    str(CHECKOUT / "data"),
    "Folder of the dashboard's own database, secret key and collected static files. Made when missing, 0700.",
    parse_folder,
)
JOURNALS = Setting(
    "STEPKEEPER_JOURNALS",
    "",
    "Path patterns of the agents' journals, separated by `:`. Nothing outside them can be opened.",
    parse_globs,
)
HOSTS = Setting(
    "STEPKEEPER_HOSTS",
    "127.0.0.1,localhost",
    "Exact hosts the dashboard answers to, separated by commas. Every other Host gets 400, on every address.",
    parse_hosts,
)
PORT = Setting("PORT", "8000", "Port of the dashboard on 127.0.0.1.", parse_whole_number(1, 65535))
SIGN_IN_TTL = Setting(
    "STEPKEEPER_SIGN_IN_TTL",
    "900",
    "Seconds a one-time sign-in link may be used after it was made.",
    parse_whole_number(10, 604_800),
)
DECISION_TTL = Setting(
    "STEPKEEPER_DECISION_TTL",
    "900",
    "Seconds after which an operator's decision that no writer has applied expires.",
    parse_whole_number(10, 86_400),
)
TIME_ZONE = Setting("STEPKEEPER_TIME_ZONE", "UTC", "Time zone the pages show times in.", parse_time_zone)
DISK_WARN = Setting(
    "STEPKEEPER_DISK_WARN", "80", "Percent of a volume in use that raises a warning.", parse_whole_number(1, 99)
)
DISK_CRITICAL = Setting(
    "STEPKEEPER_DISK_CRITICAL",
    "90",
    "Percent of a volume in use that raises a critical alert.",
    parse_whole_number(2, 100),
)
INTENT_ALERT = Setting(
    "STEPKEEPER_INTENT_ALERT",
    "600",
    "Seconds an intent may stay pending before an alert is opened.",
    parse_whole_number(10, 604_800),
)
DEMO = Setting(
    "STEPKEEPER_DEMO", "0", "Whether the demo's agents, its page parts and its kill button are shown.", parse_switch
)
DEBUG = Setting(
    "STEPKEEPER_DEBUG",
    "0",
    "Development only: tracebacks in the browser, the style guide page, static files straight from the checkout.",
    parse_switch,
)

SETTINGS: tuple[Setting[object], ...] = (
    DATA,
    JOURNALS,
    HOSTS,
    PORT,
    SIGN_IN_TTL,
    DECISION_TTL,
    TIME_ZONE,
    DISK_WARN,
    DISK_CRITICAL,
    INTENT_ALERT,
    DEMO,
    DEBUG,
)

# Read by the runtime, in the dashboard's processes too.
RUNTIME_NAMES = ("STEPKEEPER_TEST_CLOCK",)


def refuse_unknown(environ: Mapping[str, str] | None = None) -> None:
    """Raises ImproperlyConfigured when the environment holds a STEPKEEPER_* variable that nothing reads.

    A misspelt setting would otherwise be its default in silence.
    """
    known = {name.removeprefix(PREFIX): name for name in (*(one.name for one in SETTINGS), *RUNTIME_NAMES)}
    given = (name for name in (os.environ if environ is None else environ) if name.startswith(PREFIX))
    unknown = sorted(name for name in given if name not in known.values())
    if not unknown:
        return
    complaints = []
    for name in unknown:
        near = difflib.get_close_matches(name.removeprefix(PREFIX).upper(), known, n=1)
        complaints.append(f"{name} is no setting" + (f"; did you mean {known[near[0]]}?" if near else "."))
    raise ImproperlyConfigured(
        f"{' '.join(complaints)} The settings and their names are in docs/reference/settings.md."
    )
