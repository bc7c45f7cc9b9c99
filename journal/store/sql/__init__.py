"""The statements on each table, one function a statement.

It runs inside a transaction of `store` and decides nothing.
"""
