"""`Journal`: one agent's journal, opened by the one process that writes it."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from journal import codec, exit_codes
from journal.effects import drive
from journal.errors import StepkeeperError, UsageError
from journal.hold_reasons import describe_doubt
from journal.http.secrets import Secrets
from journal.ids import check_task_id
from journal.inbox import mailbox
from journal.inbox.apply import Applied
from journal.models import TaskRow
from journal.providers.load import load_profiles
from journal.providers.profile import Profile
from journal.runtime.task import Task
from journal.settle.context import SettleContext, load_intent
from journal.settle.recovery import RecoveryReport, apply_messages, recover_steps
from journal.settle.status_check import query_status
from journal.steps.task_run import TaskRun
from journal.store.sql import boots, intents, requests, steps, tasks
from journal.store.writer import Store
from journal.tools import index_tools
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
        self.profiles: Mapping[str, Profile] = load_profiles(providers)
        self.stopping = False
        self._check_profiles()
        self._keep_prompt = keep_prompt
        self.max_wait = timedelta(seconds=max_wait)
        self._secrets = Secrets()
        self._epoch = 0
        self._open: dict[str, Task] = {}
        self._mutex = threading.Lock()
        self._suspect = threading.Lock()
        exit_codes.install_exit_hooks()
        self.store = Store(Path(path), agent=agent, role="agent", wait=wait)
        self.path = self.store.path
        try:
            self._secrets.learn(self.store.read(requests.list_references))
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
        self._secrets.refuse(f"{task_id}\n{text}", f"Task {task_id}")
        row: TaskRow = self.store.write(lambda tx: tasks.submit_task(tx, task_id, handler, text, self.agent), sync=True)
        return row

    def task(self, task_id: str) -> Task:
        """Open a task for a script: `with journal.task("triage-42") as task: …`. Raises UsageError if it is open."""
        return self.open_task(task_id)

    def recover(self) -> RecoveryReport:
        """Apply the messages that wait and settle every intent an older boot left. Makes no model call."""
        report = RecoveryReport()
        told = [step for applied in self.take_messages(report) for step in self._asked(applied)]
        # Each step once, also one that messages are about: the report counts steps.
        wanted = dict.fromkeys([*told, *self.store.read(intents.list_unresolved)])
        recover_steps(self.context("recover"), list(wanted), report, skip=self._is_no_more)
        return report

    def serve(self, concurrency: int = 4) -> None:
        """Recover, then run every unfinished task that is queued, crashed, due or decided, until SIGTERM or SIGINT."""
        from journal.runtime.serve import Server

        Server(self, concurrency).run()

    def close(self) -> None:
        """End the boot and free the lock. Harmless when closed."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.store.close(ended="clean" if error is None else f"exception: {type(error).__name__}")

    def recover_task(self, task_id: str) -> RecoveryReport:
        """`recover` for one task and its branches."""
        report = RecoveryReport()
        wanted = self.store.read(lambda tx: intents.list_unresolved_below(tx, task_id))
        recover_steps(self.context("recover"), wanted, report, skip=self._is_no_more)
        for line in report.lines:
            _log.info("recovered: %s", line)
        return report

    # For the task, the server and the tests of this package; not for handlers.

    def apply_inbox(self, report: RecoveryReport | None = None) -> RecoveryReport:
        """Apply every waiting message; then do its work in this process."""
        report = report or RecoveryReport()
        for applied in self.take_messages(report):
            self.follow(applied, report)
        return report

    def take_messages(self, report: RecoveryReport | None = None) -> list[Applied]:
        """Apply every message that waits; returns those about a step, which `follow` may have to wait for."""
        found = apply_messages(self.store, agent=self.agent, secrets=self._secrets, report=report or RecoveryReport())
        self._epoch += len(found)
        return [applied for applied in found if applied.step_index is not None]

    def follow(self, applied: Applied, report: RecoveryReport) -> None:
        """Ask the provider where the message says so, and settle a step that no handler's run will come by."""
        recover_steps(self.context("recover"), self._asked(applied), report, skip=self._is_no_more)

    def open_task(self, task_id: str, *, parent_id: str | None = None) -> Task:
        """Open a task or a branch: one opening at a time in this process."""
        check_task_id(task_id)
        with self._mutex:
            if task_id in self._open:
                raise UsageError(f"Task {task_id}: it is open in this process already.", hint="Open a task once.")
            run, stored = self.store.write(
                lambda tx: (
                    tasks.start_task(tx, task_id, agent=self.agent, parent_id=parent_id),
                    steps.count_steps(tx, task_id),
                ),
                sync=False,
            )
            task_run = TaskRun(
                context=self.context("task"),
                task_id=task_id,
                number=run,
                stored=stored,
                profiles=self.profiles,
                keep_prompt=self._keep_prompt,
            )
            task = Task(self, task_id, task_run)
            self._open[task_id] = task
            return task

    def forget_task(self, task_id: str) -> None:
        """The task was left."""
        with self._mutex:
            self._open.pop(task_id, None)

    def is_open(self, task_id: str) -> bool:
        """Whether this process has the task open: then its own run settles its steps."""
        return task_id in self._open

    def context(self, mode: Any) -> SettleContext:
        """The context of settling, in this mode."""
        return SettleContext(
            store=self.store,
            tools=self.tools,
            secrets=self._secrets,
            epoch=lambda: self._epoch,
            stopping=lambda: self.stopping,
            mode=mode,
            max_wait=self.max_wait,
            suspect=self._suspect,
        )

    def _asked(self, applied: Applied) -> list[tuple[str, int]]:
        """Ask the provider where the message says so. Returns its step, unless a handler's run settles that."""
        if applied.task_id is None or applied.step_index is None:
            return []
        if applied.ask:
            self._ask(applied.task_id, applied.step_index)
        return [] if self.runs_by_itself(applied.task_id) else [(applied.task_id, applied.step_index)]

    def _ask(self, task_id: str, index: int) -> None:
        seen = self.store.read(lambda tx: load_intent(tx, task_id, index))
        if seen.step.status != "pending" or not seen.intent.profile.asks:
            return
        try:
            with boots.in_recovery():
                drive(query_status(self.context("recover"), seen))
        except StepkeeperError:
            return  # its hold names the missing part
        self.store.write(lambda tx: tasks.requeue_task(tx, task_id), sync=False)

    def _is_no_more(self, task_id: str) -> bool:
        # Not recovery's any more: its own run settles it, or the next boot.
        return self.stopping or self.is_open(task_id)

    def runs_by_itself(self, task_id: str) -> bool:
        """Whether a handler of this agent runs the task or its root."""
        root = self.store.read(lambda tx: tasks.find_root(tx, task_id))
        return root is not None and root.handler in self.handlers and root.handler is not None

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
