"""Where a handler's code differs from a stored step, as far as everybody may see it."""

from __future__ import annotations

import re

_PARAMETER = re.compile(r"\$(?:\.[^.\[]*)?")


def parameter(place: str) -> str:
    """A stored place down to the parameter's name. What stands below it is keys of the payload."""
    found = _PARAMETER.match(place)
    return found[0] if found else place.partition(".")[0]
