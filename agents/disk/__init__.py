"""Sizes of journals and free space of their volumes.

It may look at file sizes only and never opens a journal.
"""
