"""The objects that users hold: the journal, its tasks, and `serve`.

It drives the steps; SQL stands in `store`, decisions in `reconcile`.
"""
