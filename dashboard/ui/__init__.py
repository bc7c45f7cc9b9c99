"""The parts of every page: access rules, forms, URL parts, formats of numbers and times, safe text, rendering.

Nothing here knows a task, a step or a journal's rows.
"""
