"""The journal files: found by the configured patterns, told apart by their id, and who writes each now.

It may not read a journal's steps or tasks; the index does that.
"""
