"""The protocols of one step: a tool call, a read, a model call.

It yields effects and does no I/O of its own; only `settle` dispatches what is pending.
"""
