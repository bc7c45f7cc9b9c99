"""The demo agents' work: an endless supply of small reports."""

from __future__ import annotations

import time

_REPORTS = (
    "the door squeaks when it is opened slowly",
    "the lift stops half a step too high on floor 3",
    "search finds nothing for names with an umlaut",
    "the receipt prints the date of yesterday",
    "the login page forgets where one came from",
    "the map shows the harbour on the wrong side",
    "two reminders arrive for one appointment",
    "the export leaves out the last row",
    "the thermostat reads Fahrenheit as Celsius",
    "the night train is missing from the timetable",
    "the stock count drops below zero on returns",
    "the photo upload turns portraits on their side",
)


def text(number: int) -> str:
    """The report of that number; the number stands in front, so whatever comes of it can be told by it."""
    return f"#{number} {_REPORTS[number % len(_REPORTS)]}"


def read(number: int) -> dict[str, object]:
    """Fetch one report, as slowly as a tracker across the network would."""
    time.sleep(0.4)
    return {"number": number, "text": text(number)}
