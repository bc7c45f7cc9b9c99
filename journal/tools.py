"""Tools: functions with a declared effect, which steps call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from journal import codec
from journal.errors import InvalidArguments, UsageError
from journal.request import Request

ToolEffect = Literal["read_only", "mutating"]
Drift = Literal["refuse", "stored"]
_EFFECTS = ("read_only", "mutating")


@dataclass(frozen=True, slots=True)
class Call:
    """The step, for a Python tool that takes `call` and for a `status=` function."""

    key: str
    task_id: str
    step_index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared tool. Call it like the function it wraps to run it outside the journal."""

    name: str
    effect: ToolEffect
    transport: Literal["python", "http"]
    function: Callable[..., Any]
    signature: inspect.Signature
    takes_call: bool
    provider: str | None = None
    status: Callable[..., Any] | None = None
    keyed: timedelta | None = None
    horizon: timedelta | None = None
    drift: Drift = "refuse"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by parameter name, defaults filled in. Raises InvalidArguments when they do not fit."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            is_method = next(iter(self.signature.parameters), "") in ("self", "cls")
            hint = f"It is a method: declare the bound one, tool(effect=…)(an_object.{self.name})." if is_method else ""
            raise InvalidArguments(
                f"Tool {self.name}: {error}.", path="$", hint=hint or "Nothing was written."
            ) from error
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        for parameter in self.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                more = arguments.pop(parameter.name)
                if twice := more.keys() & (arguments.keys() | ({"call"} if self.takes_call else set())):
                    raise InvalidArguments(f"Tool {self.name}: {min(twice)!r} is given twice.", path=f"$.{min(twice)}")
                arguments.update(more)
        return arguments

    def defaults(self) -> dict[str, Any]:
        """Parameters that have a default, with it."""
        return {
            name: parameter.default
            for name, parameter in self.signature.parameters.items()
            if parameter.default is not parameter.empty
        }

    def invoke(self, arguments: Mapping[str, Any], call: Call | None) -> Any:
        """Run the function with bound arguments."""
        rest = dict(arguments)
        first = [
            rest.pop(name)
            for name, parameter in self.signature.parameters.items()
            if parameter.kind is parameter.POSITIONAL_ONLY and name in rest
        ]
        if self.takes_call:
            rest["call"] = call
        return self.function(*first, **rest)

    def request(self, arguments: Mapping[str, Any]) -> Request:
        """The request an HTTP tool makes of its arguments. Raises UsageError when it makes something else."""
        request = self.invoke(arguments, None)
        if inspect.iscoroutine(request):
            request = _result_of(request, self.name)
        if not isinstance(request, Request):
            raise UsageError(
                f"Tool {self.name}: returned {type(request).__name__}, not a Request.",
                hint="An http_tool returns Request(method, url, …) and sends nothing itself.",
            )
        return request

    def ask_status(self, call: Call, arguments_json: str) -> Any:
        """Call the `status=` function: an output when the effect exists, None when it does not."""
        assert self.status is not None
        parameters = inspect.signature(self.status).parameters
        stored = codec.loads(arguments_json)
        extra = {name: stored[name] for name in parameters if name != "call" and name in stored}
        if "call" in parameters:
            extra["call"] = call
            return self.status(**extra)
        first = next(iter(parameters), None)
        if first is None or first in extra:
            return self.status(**extra)
        return self.status(call, **extra)


def tool(
    *bare: Callable[..., Any],
    effect: ToolEffect | None = None,
    name: str | None = None,
    status: Callable[..., Any] | None = None,
    keyed: timedelta | None = None,
    horizon: timedelta | None = None,
    drift: Drift = "refuse",
) -> Callable[[Callable[..., Any]], Tool]:
    """Declare a Python function as a tool, sync or async.

    A tool gets its arguments as the journal stored them (JSON values). `status` asks the world by
    `call.key`: it returns the tool's output when the effect exists, None when it does not, and raises when it cannot
    tell. `keyed` says for how long the target dedupes by `call.key`. `horizon` is how long a call that raised, or
    whose process died, may still take effect (default 15 minutes): before it has passed, "absent" proves nothing.
    A mutating tool that raises leaves its outcome unknown; raise `NoEffect` where surely nothing happened.
    """
    effect = _check_effect("tool", bare, effect)
    if effect == "read_only" and (status is not None or keyed is not None):
        raise UsageError(
            "tool: status= and keyed= are for mutating tools.", hint="A read_only tool is simply run again."
        )
    if keyed is not None and keyed <= timedelta(0):
        raise UsageError(f"tool: keyed={keyed} is not a positive time.")
    if status is not None:
        refuse_generator(status)

    def declare(function: Callable[..., Any]) -> Tool:
        signature, takes_call = signature_of(function)
        return Tool(
            name=_check_name(name or name_of(function)),
            effect=effect,
            transport="python",
            function=function,
            signature=signature,
            takes_call=takes_call,
            status=status,
            keyed=keyed,
            horizon=horizon,
            drift=_check_drift(drift),
        )

    return declare


def http_tool(
    *bare: Callable[..., Any],
    effect: ToolEffect | None = None,
    provider: str = "generic_none",
    name: str | None = None,
    drift: Drift = "refuse",
) -> Callable[[Callable[..., Any]], Tool]:
    """Declare a pure function from arguments to `Request` as a tool; the journal sends the returned request.

    `provider` names a profile: where the key goes, how long it is kept, how to ask. Replayable without this code.
    """
    effect = _check_effect("http_tool", bare, effect)

    def declare(function: Callable[..., Any]) -> Tool:
        signature, takes_call = signature_of(function)
        if takes_call:
            raise UsageError(f"http_tool {name_of(function)}: takes no `call`; the profile places the key.")
        return Tool(
            name=_check_name(name or name_of(function)),
            effect=effect,
            transport="http",
            function=function,
            signature=signature,
            takes_call=False,
            provider=provider,
            drift=_check_drift(drift),
        )

    return declare


def require_tool(candidate: object) -> Tool:
    """The candidate if it is a declared tool; else UsageError that says how to declare one."""
    if isinstance(candidate, Tool):
        return candidate
    shown = getattr(candidate, "__name__", repr(candidate))
    raise UsageError(
        f"{shown}: not a declared tool.",
        hint=f'Put @tool(effect="read_only") or @tool(effect="mutating") above `def {shown}`.',
    )


def index_tools(given: Iterable[Callable[..., Any]]) -> dict[str, Tool]:
    """The declared tools by name. Raises UsageError for an object that is no tool, and for two tools of one name."""
    found: dict[str, Tool] = {}
    for candidate in given:
        one = require_tool(candidate)
        if found.get(one.name, one) is not one:
            raise UsageError(f"Tool {one.name}: two tools have this name.", hint="Give one of them name=.")
        found[one.name] = one
    return found


def _result_of(coroutine: Coroutine[Any, Any, Any], name: str) -> Any:
    """The result of an async http_tool. The function is pure, so it has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise UsageError(f"http_tool {name}: awaits something.", hint="It only makes a Request of its arguments.")


def _check_name(name: str) -> str:
    if not name or codec.escaped(name) != name or "\x00" in name:
        raise UsageError(f"Tool name {name!r}: text without NUL or lone surrogates is wanted.")
    return name


def _check_effect(word: str, bare: tuple[object, ...], effect: ToolEffect | None) -> ToolEffect:
    if bare:
        shown = getattr(bare[0], "__name__", repr(bare[0]))
        raise UsageError(
            f"@{word} above {shown}: it does not say the effect.",
            hint=f'Write @{word}(effect="read_only") or @{word}(effect="mutating").',
        )
    if effect is None or effect not in _EFFECTS:
        raise UsageError(f"Tool effect {effect!r}: not one of {', '.join(_EFFECTS)}.")
    return effect


def name_of(function: Callable[..., Any]) -> str:
    """The function's own name. Raises UsageError for a partial or an object, which have none."""
    found = getattr(function, "__name__", None)
    if not isinstance(found, str):
        raise UsageError(f"Tool {function!r}: it has no name of its own.", hint='Give it one: tool(..., name="…").')
    return found


def _check_drift(drift: Drift) -> Drift:
    if drift not in ("refuse", "stored"):
        raise UsageError(f"Tool drift {drift!r}: not one of refuse, stored.")
    return drift


def signature_of(function: Callable[..., Any]) -> tuple[inspect.Signature, bool]:
    """The function's parameters without `call`, and whether it takes `call`. Raises UsageError if it is no tool."""
    refuse_generator(function)
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise UsageError(f"Tool {function!r}: its parameters are not known.", hint="Wrap it in a function.") from error
    kept = [parameter for name, parameter in signature.parameters.items() if name != "call"]
    for parameter in kept:
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise UsageError(
                f"Tool {name_of(function)}: *{parameter.name} has no names to store.", hint="Take a list instead."
            )
    call = signature.parameters.get("call")
    if call is not None and call.kind in (call.POSITIONAL_ONLY, call.VAR_KEYWORD):
        raise UsageError(f"Tool {name_of(function)}: `call` is given by name.", hint="Write it as a plain parameter.")
    return signature.replace(parameters=kept), call is not None


def refuse_generator(function: Callable[..., Any]) -> None:
    """Raise UsageError for a function whose call runs nothing of its body, so that its return proves nothing."""
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in (function, called)):
        raise UsageError(
            f"{getattr(function, '__name__', function)}: it yields, so a call of it runs nothing.",
            hint="Return the whole output instead, for example a list.",
        )
