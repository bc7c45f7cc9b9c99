"""One table of a profile, read strictly: each field is taken once, and a field that is left over is an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from journal.errors import ProfileError
from journal.providers.duration import ACCEPTED, FOREVER, parse_duration


class StrictTable:
    """The fields of one table. Raises ProfileError that names the table, the field and the accepted values."""

    def __init__(self, where: str, table: object, accepted: Iterable[str]) -> None:
        self.where = where
        self.accepted = tuple(accepted)
        if not isinstance(table, Mapping):
            raise ProfileError(f"Profile {where}: not a table.", hint=f"Write it with {', '.join(self.accepted)}.")
        self.table = table
        for name in table:
            if name not in self.accepted:
                raise ProfileError(
                    f"Profile {where}: unknown field {name!r}.", hint=f"Accepted here: {', '.join(self.accepted)}."
                )

    def wrong(self, field: str, accepted: str) -> ProfileError:
        """The error for a bad value of `field`."""
        value = self.table.get(field)
        return ProfileError(f"Profile {self.where}: {field} = {value!r} is not accepted.", hint=f"Write {accepted}.")

    def sub(self, field: str, accepted: Iterable[str]) -> StrictTable:
        """The table at `field`; empty if there is none."""
        return StrictTable(f"{self.where}.{field}", self.table.get(field, {}), accepted)

    def text(self, field: str, default: str = "") -> str:
        value = self.table.get(field, default)
        if not isinstance(value, str) or (field in self.table and not value.strip()):
            raise self.wrong(field, "a text")
        return value

    def word(self, field: str, words: tuple[str, ...], default: str) -> str:
        value = self.table.get(field, default)
        if not isinstance(value, str) or value not in words:
            raise self.wrong(field, f"one of {', '.join(words)}")
        return value

    def flag(self, field: str, default: bool) -> bool:
        value = self.table.get(field, default)
        if not isinstance(value, bool):
            raise self.wrong(field, "true or false")
        return value

    def count(self, field: str, default: int) -> int:
        value = self.table.get(field, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1000:
            raise self.wrong(field, "a whole number from 1 to 1000")
        return value

    def duration(self, field: str, default: timedelta) -> timedelta:
        """A finite duration."""
        if field not in self.table:
            return default
        try:
            value = parse_duration(self.table[field])
        except ValueError:
            raise self.wrong(field, ACCEPTED) from None
        if value == FOREVER:
            raise self.wrong(field, ACCEPTED)
        return value

    def statuses(self, field: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """HTTP statuses: one, or a list of them."""
        value = self.table.get(field, list(default))
        found = value if isinstance(value, list) else [value]
        if not all(isinstance(one, int) and not isinstance(one, bool) and 100 <= one <= 599 for one in found):
            raise self.wrong(field, "an HTTP status or a list of them")
        return tuple(found)

    def texts(self, field: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self.table.get(field, list(default))
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.wrong(field, "a list of texts")
        return tuple(value)
