"""The confirmation page of a decision or a status query, and the POST that asks the worker for it.

It never writes to a journal: the worker delivers the decision to the journal's writer."""
