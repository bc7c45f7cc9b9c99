"""A request that a provider refuses: the failure says so once, on the first run and on a resume."""

from __future__ import annotations

import pytest

from journal import Journal, Request, StepFailed, http_tool
from tests.journal.raw_server import answer, serving


@pytest.mark.parametrize("effect", ["read_only", "mutating"])
@pytest.mark.parametrize(("body", "said"), [(b"", "HTTP 400"), (b'{"error": "no"}', 'HTTP 400: {"error": "no"}')])
def test_a_refusal_names_its_status_once(path, effect, body, said):
    with serving(answer(400, body)) as server:

        @http_tool(effect=effect)
        def order(number: int) -> Request:
            return Request("POST", f"{server.url}/orders", json={"number": number})

        for _ in range(2):
            with Journal(path, agent="a", tools=[order]) as journal, journal.task("t") as task:
                with pytest.raises(StepFailed) as caught:
                    task.run(order, 1)
                assert str(caught.value) == f"Step 0 of t (order): Rejected: {said}"
        assert len(server.received) == 1
