"""The style guide: each part in every state, from made-up values.

It reads no journal and no table, and is there only where STEPKEEPER_DEBUG is on."""
