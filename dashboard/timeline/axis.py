"""A true time axis in percent of its width; long idle gaps fold to a marked notch. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from dashboard.ui.format import format_duration, to_local_time

Interval = tuple[float, float]

LEFT, RIGHT = 1.0, 98.0  # margins, so that caps and flags at the ends stay inside
NOTCH = 4.5  # width of one folded gap
MAX_FOLDS = 6  # more notches than this read worse than the gaps they hide
_FOLD_OVER_BUSY = 0.6  # a gap folds once it is longer than this share of all busy time
_MIN_TICK_DISTANCE = 12.0
_LAST_LABEL = 94.0  # a label in the middle of a later tick would stand over the next column
_CLEAR_OF_NOTCH = 8.0  # a notch carries its own label
_CLEAR_OF_LINE = 4.5  # half a label
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND = 253_402_300_799  # of the year 9999; a float may round past it
_LONG_STEPS = (3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the axis: seconds `start`–`end` drawn from `left` to `right` percent."""

    start: float
    end: float
    left: float
    right: float
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Fold:
    """A folded gap: where its notch stands and how long nothing happened."""

    x: str
    width: str
    middle: str
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    """One labelled place on the axis. `crowded`: on a narrow one its label gives way to a notch's."""

    x: str
    label: str
    anchor: str = "middle"  # SVG text-anchor
    crowded: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps times to percent. Times outside are drawn at the nearest end."""

    pieces: tuple[Piece, ...]

    @classmethod
    def over(cls, intervals: Iterable[Interval]) -> Axis:
        """The axis that shows all of `intervals` (seconds since the epoch)."""
        merged = _merge_intervals(intervals)
        if not merged:
            return cls(pieces=())
        gaps = [(before[1], after[0]) for before, after in pairwise(merged)]
        folded = _choose_folds(merged, gaps)
        return cls(pieces=_lay_out(merged[0][0], merged[-1][1], folded))

    def place(self, seconds: float) -> float:
        """The percent at which a time is drawn."""
        if not self.pieces:
            return LEFT
        for piece in self.pieces:
            if seconds <= piece.end:
                length = piece.end - piece.start
                share = 0.0 if length <= 0 else max(0.0, (seconds - piece.start) / length)
                return piece.left + share * (piece.right - piece.left)
        return self.pieces[-1].right

    @property
    def folds(self) -> tuple[Fold, ...]:
        pieces = [piece for piece in self.pieces if piece.folded]
        middles = [(piece.left + piece.right) / 2 for piece in pieces]
        found: list[Fold] = []
        for piece, middle in zip(pieces, middles, strict=True):
            length = format_duration(piece.end - piece.start)
            is_crowded = sum(abs(middle - other) < _CLEAR_OF_NOTCH for other in middles) > 1
            label = " ".join(length.split()[:2]) if is_crowded else length
            found.append(
                Fold(
                    format_percent(piece.left),
                    format_percent(piece.right - piece.left),
                    format_percent(middle),
                    label,
                    length,
                )
            )
        return tuple(found)

    def ticks(self, *, lines: Sequence[float] = ()) -> tuple[Tick, ...]:
        """Round times inside the unfolded pieces, never closer than their labels are wide, nor under one of `lines`."""
        notches = [(piece.left + piece.right) / 2 for piece in self.pieces if piece.folded]
        ticks: list[tuple[float, str]] = []
        for piece in self.pieces:
            if not piece.folded:
                for seconds, step in _round_times(piece):
                    place = self.place(seconds)
                    room = _MIN_TICK_DISTANCE * (1.5 if place > _LAST_LABEL else 1)
                    far = not ticks or place - ticks[-1][0] >= room
                    clear = all(abs(place - notch) >= _CLEAR_OF_NOTCH for notch in notches)
                    if far and clear and all(abs(place - line) >= _CLEAR_OF_LINE for line in lines):
                        ticks.append((place, _clock_text(seconds, step)))
        return tuple(
            Tick(
                format_percent(place),
                label,
                "end" if place > _LAST_LABEL else "middle",
                crowded=any(abs(place - notch) < 2 * _CLEAR_OF_NOTCH for notch in notches),
            )
            for place, label in ticks
        )


def format_percent(value: float) -> str:
    """A percentage as an SVG attribute, independent of any locale."""
    return f"{value:.3f}%"


def _merge_intervals(intervals: Iterable[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted((start, max(start, end)) for start, end in intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _choose_folds(merged: Sequence[Interval], gaps: Sequence[Interval]) -> list[Interval]:
    busy = sum(end - start for start, end in merged)
    rest = merged[-1][1] - merged[0][0]
    folded: list[Interval] = []
    for gap in sorted(gaps, key=lambda gap: gap[0] - gap[1])[:MAX_FOLDS]:
        length = gap[1] - gap[0]
        # If no step has a length (a table without attempts), only a gap longer than all the rest folds.
        if length > (busy * _FOLD_OVER_BUSY if busy > 0 else max(rest - length, 0.0)):
            folded.append(gap)
            rest -= length
    return sorted(folded)


def _lay_out(start: float, end: float, folded: Sequence[Interval]) -> tuple[Piece, ...]:
    room = RIGHT - LEFT - NOTCH * len(folded)
    shown = (end - start) - sum(gap[1] - gap[0] for gap in folded)
    # All at one instant between the notches: give each stretch the same room.
    even = room / (len(folded) + 1)
    pieces: list[Piece] = []
    left, cursor = LEFT, start
    for gap in [*folded, (end, end)]:
        width = room * (gap[0] - cursor) / shown if shown > 0 else even
        pieces.append(Piece(cursor, gap[0], left, left + width))
        left += width
        if gap[1] > gap[0]:
            pieces.append(Piece(gap[0], gap[1], left, left + NOTCH, folded=True))
            left += NOTCH
        cursor = gap[1]
    return tuple(pieces)


def _round_times(piece: Piece) -> list[tuple[float, float]]:
    length, width = piece.end - piece.start, piece.right - piece.left
    if length <= 0 or width < 1:
        return [(piece.start, 1.0)]
    wanted = length * _MIN_TICK_DISTANCE / width
    # Beyond weeks (a made-up time among true ones) any length will do, so long as the labels have room.
    step = next((step for step in (*_STEPS, *_LONG_STEPS) if step >= wanted), wanted)
    first = -(-piece.start // step) * step
    times = [(first + step * n, float(step)) for n in range(int((piece.end - first) / step) + 1)]
    return [time for time in times if time[0] <= piece.end] or [(piece.start, float(step))]


def _clock_text(seconds: float, step: float) -> str:
    moment = to_local_time(_EPOCH + timedelta(seconds=min(seconds, _LAST_SECOND)))
    if step > _LONG_STEPS[-1]:
        return moment.strftime("%b %Y")
    if step >= 86400:
        return moment.strftime("%d %b")
    if step >= 60:
        return moment.strftime("%H:%M")
    if step >= 1:
        return moment.strftime("%H:%M:%S")
    return moment.strftime("%H:%M:%S.") + f"{moment.microsecond // 1000:03d}"
