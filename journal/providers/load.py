"""Profiles from a TOML file, one table per provider."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources

from journal.errors import ProfileError
from journal.providers.parse import parse_profile
from journal.providers.profile import Profile


def load_profiles(source: str | os.PathLike[str] | Mapping[str, object] | None) -> dict[str, Profile]:
    """The profiles of a file or mapping by name, `generic_none` always among them.

    Raises ProfileError for a file that cannot be read and for every unknown field or bad value.
    """
    tables = _parse(resources.files(__package__).joinpath("generic.toml").read_text("utf-8"), "generic.toml")
    own = source if isinstance(source, Mapping) else {} if source is None else _read(source)
    if clash := sorted(set(own) & set(tables)):
        raise ProfileError(f"Profile {clash[0]}: this name is taken by a built-in.", hint="Choose another name.")
    return {name: _profile(name, table) for name, table in {**tables, **own}.items()}


def _profile(name: str, table: object) -> Profile:
    if not isinstance(table, Mapping):
        raise ProfileError(f"Profile {name}: not a table.", hint=f"Begin the provider with [{name}].")
    profile = parse_profile(name, table)
    if profile.key_placement == "argument" or (profile.status and profile.status.by_tool):
        raise ProfileError(
            f"Profile {name}: describes a Python tool.",
            hint="Python tools declare keyed= and status= at @tool; a profile is for HTTP tools.",
        )
    return profile


def _read(path: str | os.PathLike[str]) -> Mapping[str, object]:
    try:
        with open(path, encoding="utf-8") as file:
            return _parse(file.read(), os.fspath(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(
            f"Providers file {os.fspath(path)}: cannot be read: {error}.", hint="Check the path."
        ) from error


def _parse(text: str, path: str) -> Mapping[str, object]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"Providers file {path}: not TOML: {error}.", hint="Correct that line.") from error
    except RecursionError:
        raise ProfileError(f"Providers file {path}: nested too deeply.", hint="No field nests so deep.") from None
