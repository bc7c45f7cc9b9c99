"""The places of bars, restarts and reuse hatches on a task's timeline. Pure geometry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest

from dashboard.timeline.axis import Axis, Fold, Interval, Tick, format_percent
from dashboard.timeline.spans import Span
from journal.models import Boot, Evidence, Run, Step

_MIN_WIDTH = 0.45  # percent: a bar of any length can be seen and pointed at
_FLAG_WIDTH = 17.5  # of a flag's text: where two would overlap, the later takes another tier
_TIERS = 3
_TIER_HEIGHT = 14
_TICKS_HEIGHT = 24


@dataclass(frozen=True, slots=True)
class Segment:
    """One attempt (or the whole call): `state` names its verdict, `cap_x` where its end cap stands."""

    x: str
    width: str
    cap_x: str
    state: str
    title: str


@dataclass(frozen=True, slots=True)
class Question:
    """One status query: a mark where the provider was asked, `state` its answer."""

    x: str
    state: str
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A step's row on the axis; `served` steps carry the hatch over `x`, `width`."""

    x: str
    width: str
    segments: tuple[Segment, ...]
    served: bool = False
    questions: tuple[Question, ...] = ()


@dataclass(frozen=True, slots=True)
class Restart:
    """A vertical line through all rows, with a flag: how the daemon ended and who came after."""

    x: str
    down_width: str
    flag: str
    tier: int
    y: int  # where the flag's text stands in the axis row
    anchor: str  # SVG text-anchor
    text_x: int
    clean: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """What all rows share: axis, ticks, folded gaps, restarts, and the line of now."""

    axis: Axis
    ticks: tuple[Tick, ...]
    folds: tuple[Fold, ...]
    restarts: tuple[Restart, ...]
    now_x: str | None
    flags_height: int = 0  # the room the flags take above the ticks

    @property
    def height(self) -> int:
        return self.flags_height + _TICKS_HEIGHT

    @property
    def ticks_y(self) -> int:
        return self.height - 9

    @property
    def folds_y(self) -> int:
        return self.height - _TICKS_HEIGHT + 4

    @property
    def tick_top(self) -> int:
        return self.height - 5


def lay_out_frame(
    spans: Iterable[Span],
    boots: Sequence[Boot],
    *,
    since: float | None = None,
    marks: Iterable[datetime] = (),
    live: int | None,
    now: datetime,
    running: bool,
    open_: bool,
) -> Frame:
    """The axis over every span and mark, with the agent's restarts inside it.

    `open_` says the task is unfinished: then a death after its last step is shown too, at its true time. So is one
    before the first of these spans and after `since`, when the step before them ended.
    """
    intervals: list[Interval] = [(span.start, span.end) for span in spans]
    intervals += [(mark.timestamp(), mark.timestamp()) for mark in marks]
    if running:
        intervals.append((now.timestamp(), now.timestamp()))
    if not intervals:
        return Frame(Axis(()), (), (), (), None)
    first, last = min(start for start, _ in intervals), max(end for _, end in intervals)
    begin = first if since is None else min(first, since)
    deaths = _find_deaths(boots, begin, max(last, now.timestamp()) if open_ else last, live)
    # Two instants, not a stretch: time without an agent folds like any other idle time.
    intervals += [(at, at) for death in deaths for at in (death.at, death.back) if at is not None]
    axis = Axis.over(intervals)
    now_x = format_percent(axis.place(now.timestamp())) if running else None
    restarts = _lay_out_restarts(axis, deaths)
    flags = _TIER_HEIGHT * (max((restart.tier for restart in restarts), default=-1) + 1)
    ticks = axis.ticks(lines=[axis.place(death.at) for death in deaths]) or axis.ticks()
    return Frame(axis, ticks, axis.folds, restarts, now_x, flags)


@dataclass(frozen=True, slots=True)
class _Death:
    at: float
    back: float | None
    flag: str
    clean: bool


def _find_deaths(boots: Sequence[Boot], first: float, last: float, live: int | None) -> list[_Death]:
    agents = sorted((boot for boot in boots if boot.role == "agent"), key=lambda boot: boot.boot)
    deaths: list[_Death] = []
    for boot, successor in zip_longest(agents, agents[1:]):
        if successor is None and (boot.ended is None or boot.boot == live):
            continue
        back = successor.started_at.timestamp() if successor and successor.started_at else None
        at = boot.ended_at.timestamp() if boot.ended_at else back
        if at is None or at < first or at > last:
            continue
        if back is not None:
            at = min(at, back)
        after = "restarted" if successor else "not restarted"
        deaths.append(_Death(at, back, f"{boot.ended or 'ended unseen'} · {after}", boot.ended == "clean"))
    return deaths


def _lay_out_restarts(axis: Axis, deaths: Sequence[_Death]) -> tuple[Restart, ...]:
    placed: list[Restart] = []
    taken: list[float] = [-100.0] * _TIERS
    for death in deaths:
        x = axis.place(death.at)
        down = axis.place(death.back) - x if death.back is not None else 0.0
        anchor = "end" if x > 75 else "start"
        left = x - _FLAG_WIDTH if anchor == "end" else x
        tier = next((tier for tier in range(_TIERS) if left >= taken[tier]), _TIERS - 1)
        taken[tier] = left + _FLAG_WIDTH
        placed.append(
            Restart(
                format_percent(x),
                format_percent(max(0.0, down)),
                death.flag,
                tier,
                0,
                anchor,
                -5 if x > 75 else 5,
                death.clean,
            )
        )
    top = max((restart.tier for restart in placed), default=0)
    # The first tier stands lowest, next to the rows.
    return tuple(replace(restart, y=11 + _TIER_HEIGHT * (top - restart.tier)) for restart in placed)


def lay_out_bar(
    spans: Sequence[Span], axis: Axis, *, served: bool = False, evidence: Sequence[Evidence] = ()
) -> Bar | None:
    """One step's bar on the axis, with the status queries; None where nothing says when it happened."""
    if not spans:
        return None
    segments = []
    for span in spans:
        x = axis.place(span.start)
        width = max(axis.place(span.end) - x, _MIN_WIDTH)
        segments.append(
            Segment(format_percent(x), format_percent(width), format_percent(x + width), span.state, span.title)
        )
    left, right = axis.place(spans[0].start), axis.place(max(span.end for span in spans))
    questions = tuple(
        Question(
            format_percent(axis.place(each.asked_at.timestamp())),
            each.answer,
            f"status query after attempt {each.attempt}: {each.answer.replace('_', ' ')}",
        )
        for each in evidence
        if each.asked_at
    )
    return Bar(format_percent(left), format_percent(max(right - left, _MIN_WIDTH)), tuple(segments), served, questions)


def count_reuses(step: Step, runs: Sequence[Run]) -> int:
    """How many later runs took this step's output from the journal instead of paying for it again."""
    if step.status != "committed":
        return 0
    paid = step.committed_boot if step.committed_boot is not None else step.boot
    return sum(
        1
        for run in runs
        if run.served_through >= step.step_index
        and (paid is None or run.boot >= paid)
        and (run.started_at is None or step.updated_at is None or run.started_at > step.updated_at)
    )
