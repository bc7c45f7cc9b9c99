"""What a tool's function looks like, and which functions cannot be one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from journal.errors import UsageError


def signature_of(function: Callable[..., Any]) -> tuple[inspect.Signature, bool]:
    """The function's parameters without `call`, and whether it takes that. Raises UsageError for what is no tool."""
    refuse_generator(function)
    signature = inspect.signature(function)
    kept = [parameter for name, parameter in signature.parameters.items() if name != "call"]
    for parameter in kept:
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise UsageError(
                f"Tool {function.__name__}: *{parameter.name} has no names to store.", hint="Take a list instead."
            )
    call = signature.parameters.get("call")
    if call is not None and call.kind in (call.POSITIONAL_ONLY, call.VAR_KEYWORD):
        raise UsageError(f"Tool {function.__name__}: `call` is given by name.", hint="Write it as a plain parameter.")
    return signature.replace(parameters=kept), call is not None


def refuse_generator(function: Callable[..., Any]) -> None:
    """Raise UsageError for a function whose call runs nothing of its body, so that its return proves nothing."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"{getattr(function, '__name__', function)}: it yields, so a call of it runs nothing.",
            hint="Return the whole output instead, for example a list.",
        )
