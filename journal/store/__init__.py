"""The one writer of a journal: its connection, transactions and group of writes.

It knows SQL and nothing of tools, providers or the network.
"""
