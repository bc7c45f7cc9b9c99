"""Disk: readings of what journals take and what their volumes have left.

It may look at file sizes only and never opens a journal.
"""
