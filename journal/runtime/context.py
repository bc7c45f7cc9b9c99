"""What the journal, its tasks and the server share: the open store, the registry, and the settling of steps."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from journal.effects import drive
from journal.errors import StepkeeperError, TaskStop, UsageError
from journal.http.secrets import Secrets
from journal.ids import check_task_id
from journal.inbox.apply import Applied
from journal.providers.profile import Profile
from journal.settle.context import Mode, SettleContext, load_intent
from journal.settle.recovery import RecoveryReport, apply_messages, recover_steps
from journal.settle.status_check import query_status
from journal.steps.task_run import TaskRun
from journal.store.sql import boots, intents, requests, steps, tasks
from journal.store.writer import Store
from journal.tools import Tool

_log = logging.getLogger("journal")


class JournalContext:
    """One open journal, as the objects that users hold work with it; not for handlers."""

    def __init__(
        self,
        store: Store,
        *,
        agent: str,
        tools: Mapping[str, Tool],
        handlers: Mapping[str, Callable[..., Any]],
        profiles: Mapping[str, Profile],
        max_wait: timedelta,
        keep_prompt: bool,
    ) -> None:
        self.store = store
        self.agent = agent
        self.tools = tools
        self.handlers = handlers
        self.profiles = profiles
        self.max_wait = max_wait
        self.stopping = False
        self.secrets = Secrets()
        self.epoch = 0
        self.suspect = threading.Lock()
        self._keep_prompt = keep_prompt
        self._open: dict[str, str] = {}  # each open task or branch, with the task it is a branch of
        self._mutex = threading.Lock()
        self.secrets.learn(store.read(requests.list_references))

    def recover(self) -> RecoveryReport:
        """Apply the messages that wait and settle every intent an older boot left. Makes no model call."""
        report = RecoveryReport()
        told = [step for applied in self.take_messages(report) for step in self._find_step_to_settle(applied)]
        # Each step once, also one that messages are about: the report counts steps.
        self._settle_steps(list(dict.fromkeys([*told, *self.store.read(intents.list_unresolved)])), report)
        return report

    def recover_task(self, task_id: str) -> RecoveryReport:
        """`recover` for one task and its branches."""
        report = RecoveryReport()
        self._settle_steps(self.store.read(lambda tx: intents.list_unresolved_below(tx, task_id)), report)
        for line in report.lines:
            _log.info("recovered: %s", line)
        return report

    def finish_intents(self, task_id: str) -> None:
        """Settle the intents that a failed handler left in its branches, with the tools of this agent too."""
        report = RecoveryReport()
        recover_steps(
            self.settle_context("task"),
            self.store.read(lambda tx: intents.list_unresolved_below(tx, task_id)),
            report,
            skip=lambda branch: self.stopping or (branch != task_id and self.is_open(branch)),
        )
        for line in report.lines:
            _log.info("finished: %s", line)

    def apply_inbox(self, report: RecoveryReport | None = None) -> RecoveryReport:
        """Apply every message that waits; then do what it asks of this process."""
        report = report or RecoveryReport()
        for applied in self.take_messages(report):
            self.follow_message(applied, report)
        return report

    def take_messages(self, report: RecoveryReport | None = None) -> list[Applied]:
        """Apply every message that waits; returns those about a step, which `follow_message` may have to wait for."""
        found = apply_messages(self.store, agent=self.agent, secrets=self.secrets, report=report or RecoveryReport())
        self.epoch += len(found)
        return [applied for applied in found if applied.step_index is not None]

    def follow_message(self, applied: Applied, report: RecoveryReport) -> None:
        """Ask the provider where the message says so, and settle a step that no run of a handler will settle."""
        self._settle_steps(self._find_step_to_settle(applied), report)

    def begin_run(self, task_id: str, *, parent_id: str | None = None) -> TaskRun:
        """Open a run of a task or a branch: one at a time in this process. Raises UsageError if it is open."""
        check_task_id(task_id)
        with self._mutex:
            if task_id in self._open:
                raise UsageError(f"Task {task_id}: it is open in this process already.", hint="Open a task once.")
            number, stored = self.store.write(
                lambda tx: (
                    tasks.start_task(tx, task_id, agent=self.agent, parent_id=parent_id),
                    steps.count_steps(tx, task_id),
                ),
                sync=False,
            )
            self._open[task_id] = task_id if parent_id is None else self._open.get(parent_id, parent_id)
        return TaskRun(
            context=self.settle_context("task"),
            task_id=task_id,
            number=number,
            stored=stored,
            profiles=self.profiles,
            keep_prompt=self._keep_prompt,
        )

    def forget_run(self, task_id: str) -> None:
        """The run of the task is over: the task may be opened again."""
        with self._mutex:
            self._open.pop(task_id, None)

    def is_open(self, task_id: str) -> bool:
        """Whether this process has the task open: then its own run settles its steps."""
        return task_id in self._open

    def has_open_branch(self, task_id: str) -> bool:
        """Whether a branch of the task, a thread's perhaps, is still open: the task is not run beside it."""
        with self._mutex:
            return task_id in self._open.values()

    def settle_context(self, mode: Mode) -> SettleContext:
        """What settling works with, in this mode."""
        return SettleContext(
            store=self.store,
            tools=self.tools,
            secrets=self.secrets,
            epoch=lambda: self.epoch,
            stopping=lambda: self.stopping,
            mode=mode,
            max_wait=self.max_wait,
            suspect=self.suspect,
        )

    def runs_by_itself(self, task_id: str) -> bool:
        """Whether a handler of this agent runs the task, or the task it is a branch of."""
        root = self.store.read(lambda tx: tasks.find_root(tx, task_id))
        return root is not None and root.handler in self.handlers and root.handler is not None

    def _settle_steps(self, wanted: list[tuple[str, int]], report: RecoveryReport) -> None:
        # A step of a task that was opened meanwhile is settled by that task's run; at a stop, by the next boot.
        recover_steps(
            self.settle_context("recover"), wanted, report, skip=lambda task_id: self.stopping or self.is_open(task_id)
        )

    def _find_step_to_settle(self, applied: Applied) -> list[tuple[str, int]]:
        """Ask the provider where the message says so. Returns the step, unless a handler's run settles it."""
        if applied.task_id is None or applied.step_index is None:
            return []
        if applied.ask:
            self._ask_status(applied.task_id, applied.step_index)
        return [] if self.runs_by_itself(applied.task_id) else [(applied.task_id, applied.step_index)]

    def _ask_status(self, task_id: str, index: int) -> None:
        seen = self.store.read(lambda tx: load_intent(tx, task_id, index))
        if seen.step.status != "pending" or not seen.intent.profile.asks:
            return
        try:
            with boots.in_recovery():
                drive(query_status(self.settle_context("recover"), seen))
        except (StepkeeperError, TaskStop):
            return  # the hold that was written says what is missing
        self.store.write(lambda tx: tasks.requeue_task(tx, task_id), sync=False)
