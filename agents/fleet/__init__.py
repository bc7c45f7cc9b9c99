"""The fleet as pages show it: summaries, counts and spend as frozen values.

It may read the dashboard's own tables only, and never opens a journal.
"""
