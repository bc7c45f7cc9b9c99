"""Leaf rows of the index: runs and priced model calls, unique, so that applying them twice changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from agents.index import prices
from agents.index.rollup import utc_hour
from agents.models import IndexedModelCall, IndexedRun, JournalFile
from agents.money import to_pico
from journal.models import ModelCall, Run, Step
from journal.reader import Reader

Tools = dict[tuple[str, int], str]


def put_runs(journal: JournalFile, runs: Iterable[Run]) -> set[datetime]:
    """Store runs; returns the hours they are booked under."""
    rows = [
        IndexedRun(
            journal=journal,
            task_id=run.task_id,
            run=run.run,
            boot=run.boot,
            served_through=run.served_through,
            started_at=run.started_at,
            hour=utc_hour(run.started_at),
        )
        for run in runs
    ]
    IndexedRun.objects.bulk_create(
        rows,
        batch_size=200,
        update_conflicts=True,
        unique_fields=["journal", "task_id", "run"],
        update_fields=["boot", "served_through", "started_at", "hour"],
    )
    return {row.hour for row in rows if row.hour}


def name_steps(reader: Reader, calls: Iterable[ModelCall], steps: Iterable[Step]) -> Tools:
    """The tool of each model call's step. `steps` are rows already at hand; the others are read."""
    tools = {(step.task_id, step.step_index): step.tool_name for step in steps}
    missing = {(call.task_id, call.step_index) for call in calls} - tools.keys()
    found = {
        (step.task_id, step.step_index): step.tool_name for step in (reader.load_steps(missing) if missing else ())
    }
    return dict.fromkeys(missing, "") | found | tools


def put_model_calls(journal: JournalFile, calls: Iterable[ModelCall], tools: Tools) -> set[datetime]:
    """Price and store model calls; returns the hours they are booked under."""
    rows = [_row(journal, call, tools[(call.task_id, call.step_index)]) for call in calls]
    IndexedModelCall.objects.bulk_create(
        rows,
        batch_size=200,
        update_conflicts=True,
        unique_fields=["journal", "task_id", "step_index", "call"],
        update_fields=[name for name in _COLUMNS if name not in ("journal", "task_id", "step_index", "call")],
    )
    return {row.hour for row in rows if row.hour}


def drop_rows(journal: JournalFile, task_ids: Collection[str]) -> None:
    """Forget the leaf rows of these tasks, to read them anew."""
    IndexedModelCall.objects.filter(journal=journal, task_id__in=task_ids).delete()
    IndexedRun.objects.filter(journal=journal, task_id__in=task_ids).delete()


_COLUMNS = tuple(field.name for field in IndexedModelCall._meta.concrete_fields if field.name != "id")


def _row(journal: JournalFile, call: ModelCall, tool: str) -> IndexedModelCall:
    tokens, price = prices.price_call(call)
    model = call.model or call.request_model or ""
    return IndexedModelCall(
        journal=journal,
        task_id=call.task_id,
        step_index=call.step_index,
        call=call.call,
        agent=journal.agent,
        tool=tool[:200],
        model=model[:200],
        state=call.state[:16],
        started_at=call.started_at,
        hour=utc_hour(call.started_at),
        in_uncached=tokens.in_uncached,
        in_cache_read=tokens.in_cache_read,
        in_cache_write=tokens.in_cache_write,
        out_visible=tokens.out_visible,
        out_reasoning=tokens.out_reasoning,
        tokens_in=tokens.total_in,
        tokens_out=tokens.total_out,
        cost_pico=None if price.amount is None else to_pico(price.amount),
        unpriced_why=price.why,
        matched_model=price.model[:200],
        matched_tier=price.tier[:64],
        price_version=price.version,
    )
