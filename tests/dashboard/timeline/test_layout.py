"""The timeline's geometry: a true axis, folded gaps, restarts, reuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.timeline.axis import LEFT, MAX_FOLDS, RIGHT, Axis
from dashboard.timeline.layout import count_reuses, lay_out_bar, lay_out_frame
from dashboard.timeline.spans import Span, measure_duration, measure_spans
from journal.models import Attempt, Boot, Run, Step

START = datetime(2026, 11, 1, 10, tzinfo=UTC)
interval = st.tuples(st.floats(0, 10**7), st.floats(0, 10**5)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def percent(text: str) -> float:
    return float(text.rstrip("%"))


@given(st.lists(interval, min_size=1, max_size=30), st.lists(st.floats(-10, 10**7 + 10**5), max_size=10))
def test_later_is_never_further_left_and_nothing_leaves_the_axis(intervals, moments):
    axis = Axis.over(intervals)
    places = [axis.place(moment) for moment in sorted(moments)]
    assert places == sorted(places)
    assert all(LEFT - 0.001 <= place <= RIGHT + 0.001 for place in places)
    assert len(axis.folds) <= MAX_FOLDS


def test_equal_times_are_drawn_equally_long():
    axis = Axis.over([(0, 10), (10, 20), (20, 40)])
    assert axis.place(10) - axis.place(0) == pytest.approx(axis.place(20) - axis.place(10))
    assert axis.place(40) - axis.place(20) == pytest.approx(2 * (axis.place(10) - axis.place(0)))


def test_a_long_idle_gap_folds_to_a_notch_that_says_how_long():
    axis = Axis.over([(0, 10), (11530, 11540)])
    assert [fold.label for fold in axis.folds] == ["3 h 12 m"]
    assert axis.place(11540) - axis.place(11530) == pytest.approx(axis.place(10) - axis.place(0))


def test_instants_without_length_are_spread_and_not_folded_away():
    assert not Axis.over([(0, 0), (10, 10), (20, 20)]).folds
    assert [fold.label for fold in Axis.over([(0, 0), (10, 10), (20, 20), (90000, 90000)]).folds] == ["24 h 59 m"]


def test_labels_of_notches_side_by_side_have_one_unit_and_the_whole_length_on_hover():
    first, second = Axis.over([(0, 10), (918, 918), (1132, 1132.1)]).folds
    assert (first.label, first.title, second.label, second.title) == ("15 m", "15 m 8 s", "3 m", "3 m 34 s")


def test_no_time_at_all_draws_nothing():
    frame = lay_out_frame([], [], live=None, now=START, running=False, open_=False)
    assert frame.axis.place(0) == LEFT
    assert lay_out_bar([], frame.axis) is None


def boot(number: int, start: float, end: float | None, ended: str | None, role: str = "agent") -> Boot:
    return Boot(number, role, 1, "here", "os", at(start), at(end) if end is not None else None, ended)


def spans(*pairs: tuple[float, float]) -> list[Span]:
    return [Span(at(start).timestamp(), at(end).timestamp(), "applied", "") for start, end in pairs]


def test_a_restart_is_a_line_where_the_daemon_died():
    boots = [boot(1, -5, 6, "SIGKILL"), boot(2, 8, None, None)]
    frame = lay_out_frame(spans((0, 6), (8, 10)), boots, live=2, now=at(20), running=False, open_=False)
    assert [restart.flag for restart in frame.restarts] == ["SIGKILL · restarted"]
    assert percent(frame.restarts[0].x) == pytest.approx(frame.axis.place(at(6).timestamp()), abs=0.001)


def test_only_agents_restart_and_only_while_the_task_lived():
    boots = [
        boot(1, -500, -400, "SIGKILL"),
        boot(2, -390, 6, "exit 1"),
        boot(3, 7, 7.5, "clean", role="worker"),
        boot(4, 8, 900, "SIGKILL"),
        boot(5, 901, None, None),
    ]
    frame = lay_out_frame(spans((0, 6), (8, 10)), boots, live=5, now=at(1000), running=False, open_=False)
    assert [restart.flag for restart in frame.restarts] == ["exit 1 · restarted"]


def test_a_crashed_task_shows_the_death_nobody_followed():
    boots = [boot(1, -5, 30, "out of memory")]
    frame = lay_out_frame(spans((0, 6)), boots, live=None, now=at(60), running=False, open_=True)
    assert [restart.flag for restart in frame.restarts] == ["out of memory · not restarted"]


def test_flags_close_together_take_different_tiers():
    boots = [boot(n, n * 2.0, n * 2.0 + 1, "SIGKILL") for n in range(1, 4)]
    frame = lay_out_frame(spans((0, 100)), boots, live=None, now=at(100), running=False, open_=False)
    assert len({restart.y for restart in frame.restarts}) == 3


def test_a_flag_that_is_written_to_the_left_takes_another_tier_than_the_one_it_would_cover():
    boots = [boot(n, 60.0 * n - 60, 60.0 * n, "SIGKILL") for n in (1, 2)]
    boots += [boot(3, 120, 155, "SIGKILL"), boot(4, 156, None, None)]
    frame = lay_out_frame(spans((0, 200)), boots, live=4, now=at(200), running=False, open_=False)
    first, second, third = frame.restarts
    assert (second.anchor, third.anchor) == ("start", "end")
    assert first.y == second.y != third.y


def test_no_label_of_the_axis_stands_under_a_restart():
    boots = [boot(1, -5, 5, "SIGKILL"), boot(2, 5, None, None)]
    frame = lay_out_frame(spans((0, 10)), boots, live=2, now=at(10), running=False, open_=False)
    line = percent(frame.restarts[0].x)
    assert frame.ticks
    assert all(abs(percent(tick.x) - line) > 4 for tick in frame.ticks)


def a_step(**more: object) -> Step:
    return Step("t", 0, "send", "committed", "mutating", "k", None, None, at(0), at(5), **more)  # type: ignore[arg-type]


def test_an_attempt_without_outcome_ends_where_its_boot_did_and_is_unknown():
    attempt = Attempt("t", 0, 1, 1, at(1), 1.0, "os")
    (span,) = measure_spans(a_step(), [attempt], [], boots=[boot(1, 0, 3, "SIGKILL")], live=2, now=at(60))
    assert (span.end, span.state) == (at(3).timestamp(), "unknown")
    (span,) = measure_spans(a_step(), [attempt], [], boots=[boot(1, 0, None, None)], live=1, now=at(60))
    assert (span.end, span.state) == (at(60).timestamp(), "running")


@pytest.mark.parametrize("ended", ["SIGKILL", None])
def test_an_attempt_settled_long_after_its_process_died_ends_with_the_process(ended):
    boots = [boot(1, 0, 3 if ended else None, ended), boot(2, 3, None, None)]
    attempt = Attempt("t", 0, 1, 1, at(1), 1.0, "os", at(660), "no_effect", "settled")
    (span,) = measure_spans(a_step(), [attempt], [], boots=boots, live=2, now=at(700))
    assert (span.end, span.state) == (at(3).timestamp(), "no_effect")


def test_a_step_took_what_its_attempts_took_together_whoever_ended_them():
    killed = Attempt("t", 0, 1, 1, at(1), 1.0, "os")
    replayed = Attempt("t", 0, 2, 2, at(60), 60.0, "os", at(60.2), "applied", "replayed", duration=0.2)
    attempts = [killed, replayed]
    boots = [boot(1, 0, 3, "SIGKILL"), boot(2, 50, None, None)]
    for step in (a_step(duration=0.2), a_step(duration=None)):
        seen = measure_spans(step, attempts, [], boots=boots, live=2, now=at(70))
        assert measure_duration(step, attempts, seen) == pytest.approx(2.2)
    assert measure_duration(a_step(duration=0.4), [], spans((0, 9))) == 0.4
    assert measure_duration(a_step(), [], spans((4, 4))) is None


def test_the_last_label_of_the_axis_stays_left_of_the_next_column():
    ticks = Axis.over([(0, 9.99)]).ticks()
    assert {tick.anchor for tick in ticks if percent(tick.x) <= 94} == {"middle"}
    assert [tick.anchor for tick in Axis.over([(0, 10)]).ticks() if percent(tick.x) > 94] == ["end"]


def test_a_label_near_a_folded_gap_gives_way_to_its_words_in_a_narrow_lane():
    axis = Axis.over([(0, 100), (10_000, 10_100)])
    [fold] = axis.folds
    near = [abs(percent(tick.x) - percent(fold.middle)) < 16 for tick in axis.ticks()]
    assert {True, False} == set(near)
    assert [tick.crowded for tick in axis.ticks()] == near


def test_only_runs_after_the_commit_count_as_reuse():
    first = Run("t", 0, 1, at(0), at(6), -1, None)
    second = Run("t", 1, 2, at(8), None, 0, None)
    earlier = Run("t", 2, 1, at(2), None, 0, None)
    assert count_reuses(a_step(committed_boot=1), [first, second, earlier]) == 1
    assert count_reuses(a_step(committed_boot=1), [first]) == 0
