"""The errors of the runtime. Each says what failed, why, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def leaves(error: BaseException | None) -> list[BaseException]:
    """The error itself; of a group every error in it, however deep; nothing of None."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for member in error.exceptions for leaf in leaves(member)]
    return [] if error is None else [error]


def _rebuild(kind: type[BaseException], args: tuple[object, ...], state: dict[str, object]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class _Sentence(BaseException):
    """The text is a sentence; `hint`, where there is one, says what to do next."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message} {hint}" if hint else message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Pickle and copy rebuild an error from its state: the constructors have keyword-only parameters.
        return _rebuild, (type(self), self.args, self.__dict__)


class StepkeeperError(_Sentence, Exception):
    """Base of every error that a handler may treat."""


class TaskStop(_Sentence):
    """Base of what stops a task in this process.

    A handler cannot mend it, and a model must not be told of it as a failed tool. So it is no Exception: code and
    frameworks that catch Exception do not see it. Whoever catches it all the same gets no further step.
    """


class UsageError(StepkeeperError):
    """The runtime was called in a way it cannot honour; nothing was written."""


class InvalidArguments(UsageError):
    """A value cannot be stored as strict JSON; refused before the intent was written."""

    def __init__(self, message: str, *, path: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path


class ProfileError(UsageError):
    """The loader refuses a provider profile."""


class JournalBusy(StepkeeperError):
    """Another process is the journal's writer."""

    def __init__(self, message: str, *, pid: int | None, role: str | None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.pid = pid
        self.role = role


class JournalFailed(StepkeeperError):
    """The journal could not be written; this process starts no further step."""


class JournalUnreadable(StepkeeperError):
    """The file cannot be read as a journal; `kind` names the reason in one word."""

    def __init__(self, message: str, *, kind: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind


class ForkedTask(UsageError):
    """A forked child used a journal that belongs to its parent."""


class UnorderedStep(TaskStop):
    """A step was asked for from a thread or asyncio task that did not open the task."""


class TaskClosed(TaskStop):
    """The task gives out no further index in this process."""


class StepDropped(TaskStop):
    """A handler ended without a step it had asked for: an awaitable that nobody awaited, or a branch left open."""


class TaskConflict(UsageError):
    """The same task id was submitted with another handler or other input."""


class TaskCancelled(TaskStop):
    """An operator cancelled the task; it takes no further step."""


class Diverged(TaskStop):
    """The code asks for another step than the journal holds at this index; nothing was sent."""


class StepHeld(TaskStop):
    """A pending step waits for a person; `reason` is the stored hold reason."""

    def __init__(self, message: str, *, task_id: str, step_index: int, reason: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.task_id = task_id
        self.step_index = step_index
        self.reason = reason


class OutcomeUnknown(StepHeld):
    """A held step whose effect may or may not have happened."""


class StepWaiting(TaskStop):
    """A pending step is due later; `until` is on disk."""

    def __init__(self, message: str, *, task_id: str, step_index: int, until: datetime, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.task_id = task_id
        self.step_index = step_index
        self.until = until


class StepUnwritten(TaskStop):
    """The journal could not be written before a call, so the call was not made; the task is tried again soon."""


class StepFailed(StepkeeperError):
    """The tool failed; the failure is stored and a resume raises it again.

    `type` is the exception's qualified name, `chain` the texts of its causes, outermost first.
    """

    def __init__(self, message: str, *, type: str, chain: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.type = type
        self.chain = chain


class StepAbandoned(StepkeeperError):
    """An operator ended the step; `reason` is theirs."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class NoEffect(StepkeeperError):
    """Raise it from a mutating tool where surely nothing happened: the step fails instead of being held."""
