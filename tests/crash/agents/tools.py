"""The tools of the crash tests' agents: one of each kind that a kill treats differently."""

from __future__ import annotations

import json
import os
import urllib.request
from datetime import timedelta
from pathlib import Path
from typing import Any

from journal import Request, env, http_tool, tool

FORGE = os.environ["FORGE_URL"]
FOLDER = Path(os.environ["FOLDER"])


@tool(effect="read_only")
def read_report(number: int) -> dict[str, object]:
    """One report; every real read leaves a line."""
    with (FOLDER / "reads").open("a") as file:
        file.write(f"{number}\n")
    return {"number": number, "text": f"Report {number}: the door of room {number} does not close"}


@http_tool(effect="mutating", provider="forge")
def pull(title: str, branch: str) -> Request:
    """A provider that dedupes by key and can be asked."""
    headers = {"Authorization": f"Bearer {env('FORGE_TOKEN')}"}
    return Request("POST", f"{FORGE}/pulls", headers=headers, json={"title": title, "head": branch})


@http_tool(effect="mutating")
def message(title: str, branch: str) -> Request:
    """A provider that knows neither keys nor status; its address is a secret."""
    return Request("POST", env("HOOK_URL"), json={"text": f"{title} ({branch})"})


@tool(effect="mutating", keyed=timedelta(hours=24))
def keyed_pull(call: Any, title: str, branch: str) -> Any:
    """Python code whose target dedupes by the key it is given."""
    headers = {"Authorization": f"Bearer {os.environ['FORGE_TOKEN']}", "Idempotency-Key": call.key}
    return _post(f"{FORGE}/pulls", {"title": title, "head": branch}, headers)


def find_message(call: Any) -> dict[str, object] | None:
    """Asks the world: the key stands in what was delivered."""
    base, _, _ = os.environ["HOOK_URL"].partition("/hooks/")
    asked = urllib.request.Request(f"{base}/ledger", headers={"Authorization": f"Bearer {os.environ['FORGE_TOKEN']}"})
    with urllib.request.urlopen(asked, timeout=20) as response:
        effects = json.load(response)["effects"]
    found = [effect for effect in effects if call.key in effect["body"]]
    return {"message": found[0]["id"]} if found else None


@tool(effect="mutating", status=find_message)
def findable_message(call: Any, title: str, branch: str) -> Any:
    """Python code whose target takes everything twice, but can be asked by key."""
    _post(os.environ["HOOK_URL"], {"text": f"{title} ({branch})", "key": call.key}, {})
    return find_message(call)


@tool(effect="mutating")
def plain_message(title: str, branch: str) -> Any:
    """Python code whose target takes everything twice and knows nothing of keys."""
    return _post(os.environ["HOOK_URL"], {"text": f"{title} ({branch})"}, {})


def _post(url: str, value: object, headers: dict[str, str]) -> Any:
    data = json.dumps(value).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)


ALL = {one.name: one for one in (read_report, pull, message, keyed_pull, findable_message, plain_message)}
