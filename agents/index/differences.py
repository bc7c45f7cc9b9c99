"""The first difference between a handler's code and a stored step, without the payload that a viewer may not see."""

from __future__ import annotations

import re

_PARAMETER = re.compile(r"\$(?:\.[^.\[]*)?")


def parameter(place: str) -> str:
    """A stored place down to the parameter's name. What stands below it is keys of the payload."""
    found = _PARAMETER.match(place)
    return found[0] if found else place.partition(".")[0]
