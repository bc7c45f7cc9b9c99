"""`Journal`: one agent's journal, opened by the one process that writes it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from journal import codec, exit_codes
from journal.errors import UsageError
from journal.hold_reasons import describe_doubt
from journal.ids import check_task_id
from journal.inbox import mailbox
from journal.models import TaskRow
from journal.providers.load import load_profiles
from journal.providers.profile import Profile
from journal.runtime.context import JournalContext
from journal.runtime.serve import Server
from journal.runtime.task import Task, open_task
from journal.settle.recovery import RecoveryReport
from journal.store.sql import boots, tasks
from journal.store.writer import Store
from journal.tools import index_tools, refuse_generator
from journal.writer_lock import WAIT_SECONDS, refuse_special

_log = logging.getLogger("journal")

MAX_WAIT_SECONDS = 60.0


class Journal:
    """An agent's journal. Whoever opens it is its only writer until it is closed.

    `tools`, `handlers` and `providers` are optional. `providers` is a TOML file or a mapping of profile tables.
    Raises JournalBusy naming the writer's pid, ProfileError, JournalUnreadable. Use it with `with`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        agent: str,
        tools: Iterable[Callable[..., Any]] = (),
        handlers: Mapping[str, Callable[..., Any]] | None = None,
        providers: str | Path | Mapping[str, Any] | None = None,
        wait: float = WAIT_SECONDS,
        max_wait: float = MAX_WAIT_SECONDS,
        keep_prompt: bool = False,
    ) -> None:
        self.agent = agent
        self.tools = index_tools(tools)
        self.handlers = dict(handlers or {})
        for handler in self.handlers.values():
            refuse_generator(handler)
        self.profiles: Mapping[str, Profile] = load_profiles(providers)
        self._check_profiles()
        exit_codes.install_exit_hooks()
        self.store = Store(Path(path), agent=agent, role="agent", wait=wait)
        self.path = self.store.path
        try:
            self.context = JournalContext(
                self.store,
                agent=agent,
                tools=self.tools,
                handlers=self.handlers,
                profiles=self.profiles,
                max_wait=timedelta(seconds=max_wait),
                keep_prompt=keep_prompt,
            )
            doubt = self.store.read(boots.find_doubt)
        except BaseException as error:
            # The caller never receives this object, so it could not close it. A second try would find the journal busy.
            self.store.close(ended=f"exception: {type(error).__name__}")
            raise

        if doubt is not None:
            _log.warning(
                "journal %s: %s Nothing is sent until a person accepts it: see `python -m journal accept`.",
                self.path.name,
                describe_doubt(doubt[0]),
            )

    def submit(self, handler: str, /, *, task_id: str, **input: Any) -> TaskRow:
        """Queue a task; it is on disk when this returns. The same id with the same input is the same task.

        Raises TaskConflict for another handler or other input, InvalidArguments for input that JSON cannot hold,
        UsageError for an unknown handler or input that its parameters do not take.
        """
        function = self.handlers.get(handler)
        if function is None:
            known = ", ".join(sorted(self.handlers)) or "none"
            raise UsageError(f"Handler {handler!r}: unknown; this journal's handlers are: {known}.")
        check_task_id(task_id)
        try:
            inspect.signature(function).bind(None, **input)
        except TypeError as error:
            raise UsageError(f"Handler {handler}: {error}.", hint="Submit what its parameters take.") from error
        text = codec.dumps(input, what="input")
        self.context.secrets.refuse(f"{task_id}\n{text}", f"Task {task_id}")
        row: TaskRow = self.store.write(lambda tx: tasks.submit_task(tx, task_id, handler, text, self.agent), sync=True)
        return row

    def task(self, task_id: str) -> Task:
        """Open a task for a script: `with journal.task("triage-42") as task: …`. Raises UsageError if it is open."""
        return open_task(self.context, task_id)

    def recover(self) -> RecoveryReport:
        """Apply the messages that wait and settle every intent an older boot left. Makes no model call."""
        return self.context.recover()

    def serve(self, concurrency: int = 4) -> None:
        """Recover, then run every unfinished task that is queued, crashed, due or decided, until SIGTERM or SIGINT."""
        Server(self.context, concurrency).run()

    def close(self) -> None:
        """End the boot and free the lock. Harmless when closed."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.store.close(ended="clean" if error is None else f"exception: {type(error).__name__}")

    def _check_profiles(self) -> None:
        for tool in self.tools.values():
            if tool.provider is not None and tool.provider not in self.profiles:
                # Less automatic, never more: every unknown outcome of this tool will be held.
                _log.warning(
                    "tool %s: provider %r is not in the profiles given (%s); generic_none is used",
                    tool.name,
                    tool.provider,
                    ", ".join(sorted(self.profiles)),
                )


def post_submit(path: str | Path, handler: str, /, *, task_id: str, **input: Any) -> str:
    """Submit a task to a journal another process owns: one synced message. Returns the message's id.

    A conflict (same id, other input) is recorded on the task by its writer. Raises InvalidArguments for input that
    JSON cannot hold.
    """
    check_task_id(task_id)
    refuse_special(Path(path))
    stored = codec.loads(codec.dumps(input, what="input"))
    return mailbox.post_message(Path(path), {"kind": "submit", "handler": handler, "task_id": task_id, "input": stored})
