"""A daemon whose tasks do several things at once: async siblings, threads with branches, branches of async tasks."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from agents.demo.model import call_model
from journal import Journal, Reply, tool
from tests.crash.agents import tools


@tool(effect="mutating", keyed=timedelta(hours=24))
async def async_pull(call: Any, title: str, branch: str) -> Any:
    """Async code whose target dedupes by key."""
    return await asyncio.to_thread(tools.keyed_pull, call, title, branch)


async def ask_model(question: str) -> Reply:
    """The model, asked without blocking the loop."""
    return await asyncio.to_thread(call_model, question)


async def siblings(task: Any, count: int) -> list[Any]:
    """One question, then several effects under way at once, numbered in the order they are asked for."""
    plan = (await task.ask(ask_model, f"Plan for {task.task_id}")).content
    calls = [task.run(async_pull, title=f"{plan['title']} {n}", branch=plan["branch"]) for n in range(count)]
    return list(await asyncio.gather(*calls))


async def async_branches(task: Any, count: int) -> list[Any]:
    """Each branch is an asyncio task with steps of its own."""

    async def part(number: int) -> Any:
        with task.branch(f"part-{number}") as child:
            plan = (await child.ask(ask_model, f"Plan for {child.task_id}")).content
            return await child.run(async_pull, title=plan["title"], branch=plan["branch"])

    return list(await asyncio.gather(*(part(number) for number in range(count))))


def thread_branches(task: Any, count: int) -> list[Any]:
    """Each branch is a thread with steps of its own."""

    def part(number: int) -> Any:
        with task.branch(f"part-{number}") as child:
            plan = child.ask(call_model, f"Plan for {child.task_id}").content
            return child.run(tools.pull, title=plan["title"], branch=plan["branch"])

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(part, range(count)))


if __name__ == "__main__":
    with Journal(
        os.environ["JOURNAL"],
        agent="crash",
        tools=[*tools.ALL.values(), async_pull],
        handlers={"siblings": siblings, "async_branches": async_branches, "thread_branches": thread_branches},
        providers=os.environ["PROVIDERS"],
    ) as journal:
        journal.serve()
