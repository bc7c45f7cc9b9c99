"""The fleet index: each journal's rows, tailed by revision into the dashboard's own tables.

It may read journals and never write one; it starts no job and decides nothing.
"""
