"""The journal files: how they are found by patterns and told apart by id, and which process writes each now.

It may not read a journal's steps or tasks; the index does that.
"""
