"""Bodies over 8 KB, stored once by their hash, so that no row with a big body is rewritten."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from journal.ids import sha256_hex

if TYPE_CHECKING:
    from journal.store.transaction import Transaction

INLINE_BYTES = 8 * 1024


def keep_blob(tx: Transaction, text: str) -> tuple[str, str | None]:
    """(what stands in the row, reference): a short text itself, a long one a stub naming its hash in agent_body."""
    data = text.encode()
    if len(data) <= INLINE_BYTES:
        return text, None
    digest = sha256_hex(data)
    tx.execute("INSERT OR IGNORE INTO agent_body (sha256, body) VALUES (?, ?)", (digest, text))
    return json.dumps({"$body": digest, "bytes": len(data)}), digest
