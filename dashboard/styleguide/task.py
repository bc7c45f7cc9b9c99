"""The style guide's task: every kind of row, bar and mark a timeline can show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agents.models import JournalFile
from dashboard.journal_page import Opened
from dashboard.tasks.branches import Group
from dashboard.tasks.rows import build_rows, measure_step_spans
from dashboard.tasks.task import TaskPage
from dashboard.tasks.usage import sum_usage
from dashboard.tasks.words import Failure
from dashboard.timeline.layout import lay_out_frame
from journal.models import Attempt, Boot, Decision, ModelCall, Run, Step, TaskRow
from journal.reader import Reader
from journal.reader.snapshot import TaskSteps

NOW = datetime(2026, 11, 29, 10, 20, tzinfo=UTC)
HOSTILE = "<div hx-post=/x hx-trigger=load>\u202egpj.exe\u2066 ${env} {{ 7*7 }}</div>\x00\x1b[31m"
RIGHT_TO_LEFT = "إرسال الفاتورة رقم 42 إلى العميل"
LONG = "a_tool_with_a_name_that_nobody_should_ever_have_typed_" * 4


def build_specimen_task() -> TaskPage:
    """Its page, at a time that stands still."""
    opened = Opened(JournalFile(pk=1, agent="specimen"), Reader("specimen"), None, NOW, boots=_BOOTS, live=3)
    content = _make_content()
    spans = [span for step in content.steps for span in measure_step_spans(step, content, opened)]
    frame = lay_out_frame(spans, _BOOTS, live=3, now=NOW, running=True, open_=True)
    used = sum_usage(call for made in content.calls.values() for call in made)
    task = TaskRow("specimen", "running", created_at=_after(0), updated_at=_after(990))
    child = TaskRow(f"specimen/{RIGHT_TO_LEFT}", "completed", parent_id="specimen")
    made = build_rows(content, opened, frame.axis, reveal=True)
    groups = (
        Group(task, "#", 0, "running", made, 11, used.tokens, used.cost),
        Group(child, "#", 1, "completed", made[:2], 3, used.tokens, used.cost, more=1),
    )
    return TaskPage(
        journal_id=1,
        agent="specimen",
        task=task,
        state="running",
        href="#",
        sentence="Step 7 needs your decision.",
        failure=Failure("ValueError", HOSTILE, hidden=False),
        frame=frame,
        groups=groups,
        changed_at=_after(961),
        parent_href="",
        next_href="#",
        first_href="",
        current_href="",
        last_href="#",
        cancel_href="#",
        retry_href="#",
        own=used.cost,
        children=used.cost,
        tokens=used.tokens,
        served=4,
        version="",
        polls=False,
        more_children=3,
        now=NOW,
    )


def _after(seconds: float) -> datetime:
    return NOW - timedelta(minutes=20) + timedelta(seconds=seconds)


def _make_step(index: int, tool: str, effect: str, status: str, start: float, length: float, **more: object) -> Step:
    made, changed = _after(start), _after(start + length)
    values = {"duration": length, "boot": 1, "committed_boot": 1} | more
    return Step("specimen", index, tool, status, effect, "k" * 64, None, None, made, changed, **values)  # type: ignore[arg-type]


def _make_attempt(index: int, number: int, boot: int, start: float, end: float | None, verdict: str | None) -> Attempt:
    ended = _after(end) if end is not None else None
    return Attempt("specimen", index, number, boot, _after(start), start, "os", ended, verdict)  # type: ignore[arg-type]


def _make_call(index: int, boot: int, start: float, end: float, model: str = "gpt-5-mini") -> ModelCall:
    return ModelCall(
        "specimen",
        index,
        1,
        boot,
        _after(start),
        _after(end),
        "exact",
        model=model,
        in_uncached=812,
        in_cache_read=0,
        in_cache_write=None,
        out_visible=120,
        out_reasoning=64,
    )


_BOOTS = (
    Boot(1, "agent", 4711, "desk", "os", _after(-5), _after(21), "SIGKILL"),
    Boot(2, "agent", 4712, "desk", "os", _after(24), _after(46), "out of memory"),
    Boot(3, "agent", 4713, "desk", "os", _after(960), None, None),
)


def _make_steps() -> tuple[Step, ...]:
    return (
        _make_step(0, "read_issue", "read_only", "committed", 0, 2),
        _make_step(1, "call_model", "model", "committed", 2, 9),
        _make_step(2, "open_pull_request", "mutating", "committed", 11, 20, committed_boot=2),
        _make_step(3, RIGHT_TO_LEFT, "mutating", "failed", 32, 2),
        _make_step(4, HOSTILE, "read_only", "committed", 34, 1, committed_boot=2),
        _make_step(5, "charge_card", "mutating", "abandoned", 36, 2),
        _make_step(6, LONG, "model", "committed", 38, 7, committed_boot=2),
        _make_step(7, "send_invoice", "mutating", "pending", 962, 0, hold_reason="key_window_closed", boot=3),
        _make_step(8, "notify", "mutating", "pending", 970, 0, boot=3),
        _make_step(9, "post_message", "mutating", "pending", 980, 0, boot=2),
        _make_step(10, "index_page", "mutating", "pending", 990, 0, boot=3, next_attempt_at=NOW + timedelta(minutes=5)),
    )


def _make_content() -> TaskSteps:
    attempts = {
        2: [_make_attempt(2, 1, 1, 11, None, None), _make_attempt(2, 2, 2, 26, 31, "applied")],
        3: [_make_attempt(3, 1, 2, 32, 34, "no_effect")],
        5: [_make_attempt(5, 1, 2, 36, 38, "unknown")],
        7: [_make_attempt(7, 1, 3, 962, 966, "unknown"), _make_attempt(7, 2, 3, 967, 969, "unknown")],
        8: [_make_attempt(8, 1, 3, 970, None, None)],
        9: [_make_attempt(9, 1, 3, 980, 983, "unknown")],
        10: [_make_attempt(10, 1, 3, 990, 991, "not_sent")],
    }
    calls = {1: [_make_call(1, 1, 2, 11)], 6: [_make_call(6, 2, 38, 45, "a-model-nobody-priced")]}
    said = Decision(
        "m",
        "specimen",
        5,
        "abandon",
        "ann",
        "The customer paid by other means.",
        "k",
        "p",
        1,
        None,
        None,
        _after(44),
        "applied",
    )
    runs = (Run("specimen", 1, 1, _after(0), _after(21), -1, None), Run("specimen", 2, 3, _after(961), None, 6, None))
    return TaskSteps(_make_steps(), attempts, calls, {5: [said]}, runs=runs)
